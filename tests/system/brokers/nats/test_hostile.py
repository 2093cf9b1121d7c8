# SPDX-License-Identifier: Apache-2.0
"""A server that is none, or one that falls silent: an error in time, never a crash, a hang or an ACK."""
import pathlib
import socket
import ssl
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from talker import Talker  # noqa: E402

INFO = (b'INFO {"server_id":"X","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576,"host":"127.0.0.1",'
        b'"port":4222,"auth_required":false}\r\n')
OK = INFO + b"<PING>PONG\r\n"  # waits for the client's PING in between

# What it says at once, what it says when messages come; then it is silent.
TABLE = [
    (b"", b""),
    (b"\x00" * 100, b""),
    (b"\xff" * 70000, b""),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""),
    (b"INFO\r\n", b""),
    (b"INFO {\r\n", b""),
    (b"INFO []\r\n", b""),
    (b'INFO {"max_payload":-1,"headers":true}\r\n<PING>PONG\r\n', b""),
    (b'INFO {"max_payload":"many","headers":true}\r\n', b""),
    (b'INFO {"headers":false}\r\n<PING>PONG\r\n', b""),
    (b'INFO {"tls_required":true,"headers":true}\r\n', b""),
    (b"INFO " + b"{" * 40000 + b"\r\n", b""),
    (INFO, b""),
    (INFO + b"-ERR 'Authorization Violation'\r\n", b""),
    (INFO + b"-ERR\r\n", b""),
    (INFO + b"+OK\r\nMSG\r\n", b""),
    (OK, b""),
    (OK, b"\x00\x01\x02"),
    (OK, b"-ERR 'Slow Consumer'\r\n"),
    (OK, b"-ERR 'Stale Connection'\r\n"),
    (OK, b"-ERR 'Permissions Violation for Publish to \"x'\r\n"),
    (OK, b"-ERR 'Permissions Violation for Publish to '\r\n"),
    (OK, b"MSG a b c d e f\r\n"),
    (OK, b"MSG REPLY 1 -5\r\n"),
    (OK, b"MSG REPLY 1 99999999999999999999\r\n"),
    (OK, b"MSG REPLY 1 100000000\r\nx"),
    (OK, b'MSG REPLY 1 25\r\n{"stream":"S", "seq":1'),
    (OK, b'MSG REPLY 99 25\r\n{"stream":"S", "seq":123}\r\n'),
    (OK, b'MSG OTHER 1 25\r\n{"stream":"S", "seq":123}\r\n'),
    (OK, b'MSG PREFIX.99999999999999999999999 1 25\r\n{"stream":"S", "seq":123}\r\n'),
    (OK, b'MSG PREFIX.-1 1 25\r\n{"stream":"S", "seq":123}\r\n'),
    (OK, b'MSG PREFIX. 1 25\r\n{"stream":"S", "seq":123}\r\n'),
    (OK, b"HMSG REPLY 1 999 10\r\nNATS/1.0\r\n"),
    (OK, b"HMSG REPLY 1 9 5\r\nhello\r\n"),
    (OK, b"HMSG REPLY 1 1111111111111111111 0\r\n\r\n"),
    (OK, b'HMSG REPLY 1 5 3\r\nabc\r\n{"stream":"S", "seq":1}'),
    (OK, b"HMSG REPLY 1 12 12\r\nNATS/1.0\r\n\r\n\r\n"),
    (OK, b"HMSG REPLY 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"),
    (OK, b"HMSG REPLY 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" * 50),
    (OK, b"INFO {\r\n"),
    (OK, b"PING\r\n" * 5000),
]


class Fake(Talker):
    """Says its lines to everybody who connects."""

    def __init__(self, greeting, answer, dribble=0):
        self.greeting, self.answer, self.dribble = greeting, answer, dribble
        super().__init__(self.converse)

    @staticmethod
    def listen(client, words, seen):
        while words not in seen:
            data = client.recv(65536)
            if not data:
                raise OSError("gone")
            seen += data
        return seen

    def converse(self, client):
        seen = b""
        for part in self.greeting.split(b"<PING>"):
            if part != self.greeting.split(b"<PING>")[0]:
                seen = self.listen(client, b"PING\r\n", seen)
            for piece in [part] if not self.dribble else [bytes([byte]) for byte in part]:
                client.sendall(piece)
                time.sleep(self.dribble)
        seen = self.listen(client, b"PUB ", seen)
        reply = seen[seen.index(b"PUB "):].split(b" ")[2]
        inbox = reply.rsplit(b".", 1)[0]
        client.sendall(self.answer.replace(b"REPLY", reply).replace(b"PREFIX", inbox))
        while client.recv(65536):
            pass


@pytest.mark.parametrize("row", range(len(TABLE)))
def test_garbage_is_an_error(probe, row):
    fake = Fake(*TABLE[row])
    try:
        out = probe(f"nats://127.0.0.1:{fake.port}/S.{{type}}", 3, 1, 1, timeout=20)
        assert " acked 0 " in out if "connect ok" in out else out.startswith("connect "), out
        assert "publish ok acked" not in out or "acked 0" in out, out
    finally:
        fake.close()


def test_the_fake_can_also_tell_the_truth(probe):
    """So that the rows above fail for what they say, not for the fake itself."""
    fake = Fake(OK, b'MSG REPLY 1 25\r\n{"stream":"S", "seq":123}\r\n')
    assert "acked 1 " in probe(f"nats://127.0.0.1:{fake.port}/S.{{type}}", 1, 1, 1)
    fake.close()


def test_an_acknowledgement_of_another_stream_is_none(probe):
    fake = Fake(OK, b'MSG REPLY 1 25\r\n{"stream":"S", "seq":123}\r\n')
    out = probe(f"nats://127.0.0.1:{fake.port}/S.{{type}}?stream=T", 1, 1, 1)
    assert "acked 0 rejected 1 " in out and 'stored by stream "S", not by "T"' in out, out
    fake.close()


def test_one_byte_at_a_time_does_not_stretch_the_deadline(probe):
    fake = Fake(INFO, b"", dribble=0.3)
    assert probe(f"nats://127.0.0.1:{fake.port}/x", 1, 1, 1, timeout=15).startswith("connect timedout")
    fake.close()


def test_half_a_pong(probe):
    fake = Fake(INFO + b"<PING>PO", b"")
    assert probe(f"nats://127.0.0.1:{fake.port}/x", 1, 1, 1, timeout=15).startswith("connect timedout")
    fake.close()


def test_a_handshake_without_an_end(probe):
    # nats:// does not even begin it
    for scheme, options, status in (("tls", "?verify=no", "timedout"), ("nats", "", "config")):
        fake = Fake(b'INFO {"tls_required":true,"headers":true,"max_payload":1048576}\r\n', b"")
        out = probe(f"{scheme}://127.0.0.1:{fake.port}/x{options}", 1, 1, 1, timeout=15)
        assert out.startswith(f"connect {status}"), out
        fake.close()


def test_half_a_tls_record(tmp_path, probe):
    """The rest of the record never comes."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", "k.pem", "-out", "c.pem", "-days", "2", "-subj", "/CN=x"], cwd=tmp_path, check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        client, _ = listener.accept()
        client.sendall(b'INFO {"tls_required":true,"headers":true,"max_payload":1048576}\r\n')
        secure = context.wrap_socket(client.dup(), server_side=True)
        seen = b""
        while b"PING\r\n" not in seen:
            seen += secure.recv(65536)
        secure.sendall(b"PONG\r\n")
        while b"PUB " not in seen:
            seen += secure.recv(65536)
        client.sendall(b"\x17\x03\x03\x01\x00half")
        time.sleep(15)

    threading.Thread(target=serve, daemon=True).start()
    out = probe(f"tls://127.0.0.1:{listener.getsockname()[1]}/x?verify=no", 3, 3, 1, timeout=15)
    assert "connect ok" in out and "publish timedout acked 0 " in out, out
    listener.close()
