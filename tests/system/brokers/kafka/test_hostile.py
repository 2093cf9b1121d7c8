# SPDX-License-Identifier: Apache-2.0
"""Servers that are no brokers, and answers that were damaged on the way: an error in time, never a crash or an ACK."""
import os
import pathlib
import random
import socket
import struct
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from talker import Talker  # noqa: E402


def request(client):
    """One request's correlation id."""
    data = b""
    while len(data) < 12:
        more = client.recv(65536)
        if not more:
            raise OSError("ended")
        data += more
    return data[8:12]


def answer(make):
    def behave(client):
        while True:
            client.sendall(make(request(client)))
    return behave


def drip(client):
    correlation = request(client)
    for byte in struct.pack(">i", 5000) + correlation + bytes(4992):
        client.sendall(bytes([byte]))
        time.sleep(0.2)


def silence(client):
    time.sleep(30)


def framed(body):
    return lambda correlation: struct.pack(">i", len(body) + 4) + correlation + body


HOSTILE = {
    "closes at once": lambda client: None,
    "says nothing": silence,
    "one byte after the other": drip,
    "http": lambda client: client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "closes after the request": lambda client: request(client),
    "negative length": answer(lambda c: struct.pack(">i", -1) + c + b"x" * 64),
    "endless length": answer(lambda c: struct.pack(">i", 0x7FFFFFFF) + c + b"x" * 64),
    "no length": answer(lambda c: struct.pack(">i", 0) + c),
    "empty answer": answer(framed(b"")),
    "another's answer": answer(lambda c: struct.pack(">i", 12) + b"\x12\x34\x56\x78" + bytes(8)),
    "huge array": answer(framed(struct.pack(">hi", 0, 0x7FFFFFFF))),
    "negative array": answer(framed(struct.pack(">hi", 0, -7))),
    "error code": answer(framed(struct.pack(">hi", 35, 0))),
    "nothing supported": answer(framed(struct.pack(">hi", 0, 0))),
    "nonsense versions": answer(framed(struct.pack(">hi", 0, 3) + struct.pack(">hhh", 0, 9, -9) * 3)),
    "all ones": answer(framed(b"\xff" * 200)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_broker(probe, name):
    fake = Talker(HOSTILE[name])
    try:
        transport = probe(f"kafka://127.0.0.1:{fake.port}/orders")
        told = transport.connect(1000)
        assert told.status in ("conn", "timedout")
        assert told.message.partition(f":{fake.port}: ")[2].strip(), "no reason was given: " + told.message
        result, items = transport.publish([("a", "k", None, 1)], ms=500)
        assert result.status == "conn" and items["a"].verdict == "UNSET"
    finally:
        fake.close()


def test_random_answers(probe):
    chance = random.Random(20261115)
    for _ in range(30):
        body = chance.randbytes(chance.randrange(0, 400))
        fake = Talker(answer(framed(body)))
        transport = probe(f"kafka://127.0.0.1:{fake.port}/orders")
        assert transport.connect(200).status in ("conn", "timedout"), body
        fake.close()


class Damage:
    """Between the transport and the broker: after `whole` bytes of answers, one byte in `rate` is another one."""

    def __init__(self, whole, rate, seed):
        self.whole, self.rate, self.chance = whole, rate, random.Random(seed)

    def behave(self, client):
        broker = socket.create_connection(("127.0.0.1", int(os.environ["KAFKA_PROXIED"])))

        def up():
            try:
                while data := client.recv(65536):
                    broker.sendall(data)
            except OSError:
                pass
            broker.close()

        threading.Thread(target=up, daemon=True).start()
        while data := bytearray(broker.recv(65536)):
            for i in range(len(data)):
                self.whole -= 1
                if self.whole < 0 and self.chance.randrange(self.rate) == 0:
                    data[i] = self.chance.randrange(256)
            client.sendall(bytes(data))


@pytest.mark.parametrize("whole", [0, 200, 400, 700, 1000, 1500])
def test_damaged_answers(broker, probe, whole):
    topic = broker.topic(f"damaged-{whole}")
    fake = Talker(Damage(whole, 20, whole).behave, int(os.environ["KAFKA_PROXY"]))
    acked = set()
    try:
        transport = probe(f"kafka://127.0.0.1:{fake.port}/{topic}")
        for n in range(4):
            if transport.connect(700).status != "ok":
                continue
            messages = [(f"d-{n}-{i}", "k", None, 10) for i in range(20)]
            _, items = transport.publish(messages, ms=700)
            acked |= {i.id for i in items.values() if i.verdict == "ACKED"}
    finally:
        fake.close()
    assert acked <= {r.id for r in broker.read(topic)}
