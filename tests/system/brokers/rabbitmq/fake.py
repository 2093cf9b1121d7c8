# SPDX-License-Identifier: Apache-2.0
"""A broker that says what a test wants: enough of AMQP 0-9-1 to log a publisher in, then a script.

    with Fake(script) as fake: ...      # fake.port; script(session) runs when the channel and exchange are ready
"""
import contextlib
import socket
import struct
import threading

START, START_OK, TUNE, TUNE_OK, OPEN, CLOSE = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 50)
OPEN_OK = (10, 41)
CHANNEL_OPEN, CONFIRM_SELECT, EXCHANGE_DECLARE, PUBLISH = (20, 10), (85, 10), (40, 10), (60, 40)


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(channel, ids, payload=b""):
    return frame(1, channel, struct.pack(">HH", *ids) + payload)


def short(text):
    return bytes([len(text)]) + text.encode()


def long(text):
    return struct.pack(">I", len(text)) + text.encode()


def ack(tag, multiple=False):
    return method(1, (60, 80), struct.pack(">QB", tag, multiple))


def nack(tag, multiple=False):
    return method(1, (60, 120), struct.pack(">QB", tag, multiple))


def returned(ident, body=b"x"):
    head = struct.pack(">HHQH", 60, 0, len(body), 1 << 7) + short(ident)
    return (method(1, (60, 50), struct.pack(">H", 312) + short("NO_ROUTE") + short("e") + short("k")) +
            frame(2, 1, head) + (frame(3, 1, body) if body else b""))


def channel_close(code, text):
    return method(1, (20, 40), struct.pack(">H", code) + short(text) + struct.pack(">HH", 60, 40))


def connection_close(code, text):
    return method(0, (10, 50), struct.pack(">H", code) + short(text) + struct.pack(">HH", 0, 0))


class Session:
    """One client. `published` counts whole messages."""

    def __init__(self, sock, frame_max):
        self.sock, self.frame_max, self.input, self.published = sock, frame_max, b"", 0

    def send(self, data):
        self.sock.sendall(data)

    def take(self, size):
        while len(self.input) < size:
            data = self.sock.recv(65536)
            if not data:
                raise ConnectionError
            self.input += data
        taken, self.input = self.input[:size], self.input[size:]
        return taken

    def frame(self):
        kind, channel, size = struct.unpack(">BHI", self.take(7))
        return kind, channel, self.take(size + 1)[:-1]

    def expect(self, ids):
        while True:
            kind, _, payload = self.frame()
            if kind == 1 and struct.unpack(">HH", payload[:4]) == ids:
                return

    def log_in(self):
        if self.take(8) != b"AMQP\0\0\x09\x01":
            raise ConnectionError
        self.send(method(0, START, b"\0\x09" + struct.pack(">I", 0) + long("PLAIN") + long("en_US")))
        self.expect(START_OK)
        self.send(method(0, TUNE, struct.pack(">HIH", 2047, self.frame_max, 0)))
        self.expect(OPEN)
        self.send(method(0, OPEN_OK, short("")))
        self.expect(CHANNEL_OPEN)
        self.send(method(1, (20, 11), long("")))
        self.expect(CONFIRM_SELECT)
        self.send(method(1, (85, 11)))

    def receive(self, count):
        """Read until so many messages came."""
        left = None
        while self.published < count:
            kind, _, payload = self.frame()
            if kind == 2:
                left = struct.unpack(">Q", payload[4:12])[0]
            elif kind == 3:
                left -= len(payload)
            if kind in (2, 3) and left == 0:
                self.published += 1


class Fake:
    def __init__(self, script, context=None, frame_max=131072, greet=None):
        self.script, self.context, self.frame_max, self.greet = script, context, frame_max, greet
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.over = threading.Event()

    def serve(self, sock):
        with contextlib.suppress(OSError, ConnectionError):
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            if self.greet is not None:
                self.greet(sock)
                return
            session = Session(sock, self.frame_max)
            session.log_in()
            self.script(session)
            self.over.wait()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                sock = self.listener.accept()[0]
                threading.Thread(target=self.run, args=(sock,), daemon=True).start()

    def run(self, sock):
        with sock:
            self.serve(sock)

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.listener.close()
