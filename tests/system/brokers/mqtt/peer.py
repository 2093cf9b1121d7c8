# SPDX-License-Identifier: Apache-2.0
"""A stand-in for brokers that mosquitto is not: it speaks just enough MQTT 5 to say what a test wants it to say."""
import pathlib
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from talker import Talker  # noqa: E402  pylint: disable=wrong-import-position

CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, DISCONNECT = 0x20, 0x30, 0x40, 0x50, 0x62, 0x70, 0xe0
REASON_STRING, SERVER_REFERENCE, RECEIVE_MAXIMUM = 0x1f, 0x1c, 0x21


def varint(number):
    out = b""
    while True:
        number, low = divmod(number, 128)
        out += bytes([low | (0x80 if number else 0)])
        if not number:
            return out


def packet(kind, body):
    return bytes([kind]) + varint(len(body)) + body


def text(words):
    return struct.pack(">H", len(words)) + words.encode()


def connack(code=0, properties=b""):
    return packet(CONNACK, bytes([0, code]) + varint(len(properties)) + properties)


def answer(kind, ident, code=0, reason=""):
    properties = bytes([REASON_STRING]) + text(reason) if reason else b""
    return packet(kind, struct.pack(">HB", ident, code) + varint(len(properties)) + properties)


def disconnect(code, properties=b""):
    return packet(DISCONNECT, bytes([code]) + varint(len(properties)) + properties)


def exactly(client, size):
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise OSError("gone")
        data += more
    return data


def read_packet(client):
    """(first byte, body)"""
    kind, size, shift = exactly(client, 1)[0], 0, 0
    while True:
        byte = exactly(client, 1)[0]
        size |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return kind, exactly(client, size)


def identifier(body):
    """Of a PUBLISH: behind its topic."""
    at = 2 + struct.unpack(">H", body[:2])[0]
    return struct.unpack(">H", body[at:at + 2])[0]


class Peer(Talker):
    """Greets with `greeting`; answers the n-th PUBLISH (from 0) and PUBREL with what the functions return (None: nothing)."""

    def __init__(self, greeting=connack(), published=None, released=None):
        self.greeting, self.published, self.released = greeting, published, released
        self.seen, self.connections, self.lock, self.client = [], 0, threading.Lock(), None
        super().__init__(self.converse)

    def converse(self, client):
        read_packet(client)
        with self.lock:
            self.connections += 1
        client.sendall(self.greeting)
        self.client = client
        while True:
            kind, body = read_packet(client)
            if kind & 0xf0 == PUBLISH:
                self.seen.append((kind, body))  # before the answer: it counts what came
                self.say(client, self.published, identifier(body), len(self.seen) - 1)
            elif kind & 0xf0 == PUBREL & 0xf0:
                self.say(client, self.released, struct.unpack(">H", body[:2])[0], len(self.seen) - 1)

    @staticmethod
    def say(client, choose, ident, number):
        said = choose(ident, number) if choose else None
        if said:
            client.sendall(said)

    def url(self, path="shop/{type}", options=""):
        return f"mqtt://127.0.0.1:{self.port}/{path}{options}"
