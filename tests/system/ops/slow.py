#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that take their time, by the hundred: slow.py PORT COUNT TOKEN holds them until its standard input ends.

A quarter each: headers that never end, a body a byte at a time, a large answer that is not read, connections that ask
once and then stay. Who is thrown out comes back a second later, so that the pressure never ends.
"""
import errno
import random
import socket
import sys
import threading
import time

KINDS = ("headers", "body", "unread", "idle")


class Client:
    def __init__(self, crowd, kind):
        self.crowd, self.kind = crowd, kind
        self.sock, self.left, self.due = None, b"", time.monotonic() + random.random()

    def begin(self):
        port, token = self.crowd.port, self.crowd.token
        head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        if self.kind == "headers":
            now, self.left = b"GET /livez HTTP/1.1\r\nX-Slow: ", b"a" * 4000
        elif self.kind == "body":
            now = (f"POST /api/reload HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
                   "Content-Length: 4000\r\n\r\n").encode()
            self.left = b" " * 3999
        elif self.kind == "unread":
            now, self.left = f"GET /api/openapi.json HTTP/1.1\r\n{head}\r\n".encode() * 40, b""
        else:
            now, self.left = f"GET /livez HTTP/1.1\r\n{head}\r\n".encode(), b""
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.setblocking(False)
        code = self.sock.connect_ex(("127.0.0.1", port))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, "connect")
        self.left = now + self.left
        self.first = len(now)

    def end(self):
        if self.sock:
            self.sock.close()
        self.sock, self.due = None, time.monotonic() + 0.5 + random.random()

    def go_on(self):
        """Once a second: begin, or one byte more; see whether we were thrown out."""
        self.due = time.monotonic() + 1
        try:
            if not self.sock:
                self.begin()
                self.crowd.connects += 1
                self.due = time.monotonic() + 0.05
                return
            if self.kind != "unread":
                while True:
                    data = self.sock.recv(4096)
                    if not data:
                        self.crowd.dropped += 1
                        self.end()
                        return
        except BlockingIOError:
            pass
        except OSError:
            self.crowd.dropped += 1
            self.end()
            return
        try:
            size = self.first or 1
            sent = self.sock.send(self.left[:size]) if self.left else 0
            self.left = self.left[sent:]
            self.first = max(0, self.first - sent)
        except BlockingIOError:
            pass
        except OSError:
            self.crowd.dropped += 1
            self.end()


class Crowd:
    """They run on a thread of their own until the end of the `with`."""

    def __init__(self, port, count, token):
        self.port, self.token = port, token
        self.connects = self.dropped = 0
        self.clients = [Client(self, KINDS[i % len(KINDS)]) for i in range(count)]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while not self.over.is_set():
            now = time.monotonic()
            for client in self.clients:
                if client.due <= now:
                    client.go_on()
            self.over.wait(0.02)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for client in self.clients:
            client.end()


if __name__ == "__main__":
    with Crowd(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]) as crowd:
        sys.stdin.read()
        print(f"{crowd.connects} connects, {crowd.dropped} thrown out", file=sys.stderr)
