# SPDX-License-Identifier: Apache-2.0
"""A broker that is none, or one that falls silent: an error in time, never a crash, a hang or an ACK."""
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest
from conftest import message
from talker import Talker

SASL, AMQP = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"


def frame(body, kind=0, channel=0, doff=2):
    return struct.pack(">IBBH", len(body) + 8, doff, kind, channel) + body


def described(code, *fields):
    """A performative: a list behind its descriptor."""
    body = b"".join(fields)
    return b"\x00\x53" + bytes([code]) + b"\xd0" + struct.pack(">II", len(body) + 4, len(fields)) + body


def text(value):
    return b"\xa1" + bytes([len(value)]) + value


def uint(value):
    return b"\x70" + struct.pack(">I", value)


NULL, TRUE, FALSE = b"\x40", b"\x41", b"\x42"
MECHANISMS = frame(described(0x40, b"\xa3\x09ANONYMOUS"), 1)
OUTCOME = frame(described(0x44, b"\x50\x00"), 1)
OPEN = frame(described(0x10, text(b"fake")))
BEGIN = frame(described(0x11, b"\x60\x00\x00", uint(0), uint(1000), uint(1000)))
TARGET = b"\x00\x53\x29" + b"\xc0\x04\x01" + text(b"q")
SOURCE = b"\x00\x53\x28" + b"\xc0\x04\x01" + text(b"x")


def attach(name):
    return frame(described(0x12, text(name), uint(0), TRUE, b"\x50\x00", b"\x50\x00", SOURCE, TARGET))


FLOW = frame(described(0x13, uint(0), uint(1000), uint(0), uint(1000), uint(0), uint(0), uint(100)))


def disposition(first, last, settled=TRUE, state=b"\x00\x53\x24\x45", role=TRUE):
    return frame(described(0x15, role, uint(first), uint(last), settled, state))


BEGUN = [SASL + MECHANISMS, OUTCOME, AMQP + OPEN + BEGIN]

# What it says when first spoken to, and then each time that it hears more; then it is silent.
CONNECTING = [
    [b"\x00" * 100],
    [b"\xff" * 70000],
    [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
    [b"AMQP\x00\x00\x09\x01"],  # 0-9-1 is what it speaks
    [AMQP + OPEN + BEGIN],  # no SASL
    [SASL],
    [SASL + frame(b"", 1)],
    [SASL + MECHANISMS[:-3]],
    [SASL + frame(described(0x40, b"\xa3\x05PLAIN"), 1)],
    [SASL + frame(described(0x40, b"\xa3\xffPLAIN"), 1)],
    [SASL + MECHANISMS, frame(described(0x44, b"\x50\x01"), 1)],
    [SASL + MECHANISMS, frame(described(0x44, b"\x50\x03"), 1)],
    [SASL + MECHANISMS, OUTCOME, b"HTTP/1.1 200 OK\r\n\r\n"],
    [SASL + MECHANISMS, OUTCOME, AMQP + struct.pack(">IBBH", 0xffffffff, 2, 0, 0) + b"\x00" * 100],
    [SASL + MECHANISMS, OUTCOME, AMQP + struct.pack(">IBBH", 3, 2, 0, 0)],
    [SASL + MECHANISMS, OUTCOME, AMQP + frame(described(0x10, text(b"fake")), doff=200)],
    [SASL + MECHANISMS, OUTCOME, AMQP + frame(b"\x00\x53\x10\xd0\xff\xff\xff\xff\xff\xff\xff\xff")],
    [SASL + MECHANISMS, OUTCOME, AMQP + frame(b"\x00" * 50)],
    [SASL + MECHANISMS, OUTCOME, AMQP + frame(described(0x99))],
    [SASL + MECHANISMS, OUTCOME, AMQP + OPEN + frame(described(0x18))],
    [SASL + MECHANISMS, OUTCOME, AMQP + OPEN + OPEN + BEGIN + BEGIN],
    [SASL + MECHANISMS, OUTCOME, AMQP + OPEN + frame(BEGIN[8:], channel=500)],
    BEGUN + [frame(described(0x12))],
    BEGUN + [attach(b"another")],
    BEGUN + [frame(described(0x16, uint(77), TRUE))],
    BEGUN + [frame(described(0x17))],
]
PUBLISHING = [
    [b"\x00\x01\x02"],
    [disposition(0, 0xffffffff, settled=FALSE, state=NULL)],
    [disposition(5000, 5001)],  # nothing that was sent
    [disposition(1, 0)],
    [disposition(0, 0, role=FALSE)],
    [disposition(0, 0, state=b"\x00\x53\x23\x45", settled=FALSE)],
    [disposition(0, 0, state=b"\x00\x53\x99\x45")],
    [disposition(0, 0, state=text(b"accepted"))],
    [frame(described(0x15))],
    [frame(described(0x14, uint(0), uint(0), b"\xa0\x01x", uint(0), FALSE) + b"hello")],  # a message, to us
    [frame(described(0x13, uint(0), uint(0), uint(0), uint(0), uint(99), uint(0), uint(0xffffffff)))],
    [frame(b"") * 5000],
]


class Fake(Talker):
    def __init__(self, answers, then=(), dribble=0):
        self.answers, self.then, self.dribble = answers, then, dribble
        super().__init__(self.converse)

    def say(self, client, data):
        for piece in [bytes([byte]) for byte in data] if self.dribble else [data]:
            client.sendall(piece)
            time.sleep(self.dribble)

    @staticmethod
    def hear(client):
        data = client.recv(65536)
        if not data:
            raise OSError("gone")
        time.sleep(0.05)
        return data

    def converse(self, client):
        for answer in self.answers:
            heard = self.hear(client)
            self.say(client, answer)
        if self.then:
            while b"\x00\x53\x12" not in heard:
                heard = self.hear(client)
            name = heard[heard.index(b"outbox-"):][:8]
            self.say(client, attach(name) + FLOW)
            self.hear(client)
            for answer in self.then:
                self.say(client, answer)
        while client.recv(65536):
            pass


def url(fake, scheme="amqp1", rest=""):
    return f"{scheme}://127.0.0.1:{fake.port}/q{rest}"


@pytest.mark.parametrize("row", range(len(CONNECTING)))
def test_garbage_while_connecting(probe, row):
    fake = Fake(CONNECTING[row])
    try:
        answer = probe(url(fake), connected=False).connect(1000)
        assert answer.status in ("conn", "auth", "timedout", "proto"), answer
    finally:
        fake.close()


@pytest.mark.parametrize("row", range(len(PUBLISHING)))
def test_garbage_instead_of_an_outcome(probe, row):
    fake = Fake(BEGUN, PUBLISHING[row])
    try:
        p = probe(url(fake), connected=False)
        assert p.connect(5000).status == "ok"
        answer = p.publish([message("a"), message("b"), message("c")], 1000)
        assert "ACKED" not in answer.verdicts, answer
        assert answer.status != "ok" or set(answer.verdicts) == {"UNKNOWN"}, answer
    finally:
        fake.close()


def test_the_fake_can_also_tell_the_truth(probe):
    """So that the rows above fail for what they say, not for the fake itself."""
    fake = Fake(BEGUN, [disposition(0, 2)])
    assert probe(url(fake)).publish([message("a"), message("b"), message("c")]).verdicts == ["ACKED"] * 3
    fake.close()


def test_one_byte_at_a_time_does_not_stretch_the_deadline(probe):
    fake = Fake([BEGUN[0]], dribble=0.3)
    assert probe(url(fake), connected=False).connect(1000).status == "timedout"
    fake.close()


def test_half_a_tls_record(tmp_path, probe):
    """The rest of the record never comes, nor that of a handshake."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", "k.pem", "-out", "c.pem", "-days", "2", "-subj", "/CN=x"], cwd=tmp_path, check=True,
                   capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c.pem", tmp_path / "k.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            silent = listener.accept()  # no handshake at all
            client, _ = listener.accept()
            secure = context.wrap_socket(client.dup(), server_side=True)
            secure.recv(100)
            client.sendall(b"\x17\x03\x03\x01\x00half")
            time.sleep(15)
            silent[0].close()

        threading.Thread(target=serve, daemon=True).start()
        for words in ("TLS: no answer", "logging in"):
            answer = probe(f"amqp1s://127.0.0.1:{listener.getsockname()[1]}/q?verify=no", connected=False).connect(1000)
            assert answer.status == "timedout" and words in answer.text, answer
