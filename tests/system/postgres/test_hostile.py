# SPDX-License-Identifier: Apache-2.0
"""Servers that are none, and answers that were damaged on the way: an error in time, never a crash, a flood or a lie."""
import os
import random
import re
import struct
import subprocess

import pytest
from kit import BINARY, PATIENCE, SEED, until
from proxy import Fault, Proxy
from talker import Talker

STRIDE = 1 if os.environ.get("OUTBOX_TEST_ALL") else 31
SECRET = "planted-password"
NOISE = random.Random(1).randbytes(4096)
KNOWN = {5, 6, 7, 12, 14}  # out of reach, refused, no outbox, too late, no answer of ours


def message(kind, body=b"", length=None):
    return kind + struct.pack("!i", len(body) + 4 if length is None else length) + body


def error(text):
    return message(b"E", b"SFATAL\0VFATAL\0C28000\0M" + text + b"\0\0")


LET_IN = message(b"R", struct.pack("!i", 0)) + message(b"Z", b"I")
COLUMN = struct.pack("!ihihih", 0, 0, 25, -1, -1, 0)
# name: (what is said to whoever connects, what is said again and again after that)
SERVERS = {
    "silence": (b"", b""),
    "garbage": (NOISE, b""),
    "garbage without an end": (b"", NOISE),
    "a web server": (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b""),
    "another protocol": (b"\x05\x00\x0b\x03\x10\x00\x00\x00", b""),
    "TLS, then garbage": (b"S" + NOISE, b""),
    "a message of 2 GiB": (b"N" + message(b"R", b"", 0x7fffffff), b"x" * 4096),
    "an error of 2 GiB": (b"N" + message(b"E", b"SFATAL\0M", 0x7fffffff), b"x" * 4096),
    "a length of -1": (b"N" + message(b"R", b"", -1), b""),
    "a length of 0": (b"N" + message(b"R", b"", 0), b""),
    "an unknown way to sign in": (b"N" + message(b"R", struct.pack("!i", 99)), b""),
    "SASL that goes nowhere": (b"N" + message(b"R", struct.pack("!i", 10) + b"NONSENSE\0\0"), b""),
    "an error for the terminal": (b"N" + error(b"\x1b]0;owned\x07\x1b[2J\r\nall is well\n\xff\xfe"), b""),
    "an error of 30,000 bytes": (b"N" + error(b"x" * 29000), b""),
    "notices without an end": (b"N" + LET_IN, message(b"N", b"SNOTICE\0C00000\0Mhear, hear\0\0")),
    "settings without an end": (b"N" + LET_IN, message(b"S", b"name\0value\0")),
    "rows without a question": (b"N" + LET_IN + message(b"T", struct.pack("!h", 1) + b"a\0" + COLUMN), message(
        b"D", struct.pack("!hi", 1, 3) + b"abc")),
    "more columns than sent": (b"N" + LET_IN + message(b"T", struct.pack("!h", 32000) + b"a\0" + COLUMN), b""),
    "a row of other columns": (b"N" + LET_IN + message(b"T", struct.pack("!h", 1) + b"a\0" + COLUMN) + message(
        b"D", struct.pack("!hii", 2, 0x7ffffff0, -2)), b""),
    "a copy nobody wants": (b"N" + LET_IN + message(b"H", b"\0\0\0"), message(b"d", b"x" * 1000)),
}


def saying(first, again):
    """First this, then that again and again, whatever is asked."""
    def behave(client):
        client.recv(4096)
        client.sendall(first)
        while again:
            client.sendall(again)
        while client.recv(4096):
            pass
    return behave


@pytest.fixture(name="talker")
def fixture_talker():
    """talker(name): the URL of such a server."""
    made = []

    def make(name):
        made.append(Talker(saying(*SERVERS[name])))
        return f"postgres://app:{SECRET}@127.0.0.1:{made[-1].port}/shop?timeout=1s&connect_timeout=1s"

    yield make
    for server in made:
        server.close()


def ask(url, *words):
    """A command that must not trust its store: it ends by itself, and says why on one clean line."""
    done = subprocess.run([BINARY, *words, "--store", url], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE, check=False)
    said = done.stderr.decode()  # it is UTF-8
    assert done.returncode >= 0, f"ended by signal {-done.returncode}: {said}"
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", said), repr(said)
    assert SECRET not in said + done.stdout.decode()
    return done.returncode, said


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_is_none(talker, name):
    code, said = ask(talker(name), "status")
    assert code in KNOWN or (code == 2 and "invalid response to SSL negotiation" in said), f"{code}: {said}"
    assert len(said) < 1000 and said.count("\n") <= 2, said


def test_a_relay_outlives_them_all(talker, make, server, tmp_path):
    """It says of each that it is away, delivers from the one that is good meanwhile, and obeys."""
    shop, _, producer = make(server)
    sources = {f"s{i}": talker(name) for i, name in enumerate(SERVERS)}
    lines = [f"  - {{ name: {name}, store: '{url}' }}\n" for name, url in {**sources, "good": shop.store}.items()]
    (tmp_path / "outbox.yaml").write_text(f"sources:\n{''.join(lines)}targets: [{{ name: events, to: 'file:out.jsonl' }}]\n")
    log = tmp_path / "log"
    with open(log, "wb") as sink:
        process = subprocess.Popen([BINARY, "relay", "--config", "outbox.yaml"], cwd=tmp_path, stdin=subprocess.DEVNULL,
                                   stdout=sink, stderr=sink)
    try:
        until(lambda: all(re.search(rf"source\.away .*\b{name}\b", log.read_text()) for name in sources),
              f"a word about each source: {log.read_text()}")
        producer.publish(20)
        until(lambda: (tmp_path / "out.jsonl").exists() and len((tmp_path / "out.jsonl").read_text().splitlines()) >= 20,
              "what was published in the good one")
    finally:
        process.terminate()
        code = process.wait(PATIENCE)
    said = log.read_text()
    assert code == 0, f"ended with {code}: {said}"
    assert SECRET not in said and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", said), repr(said)


def test_damaged_answers(make, server):
    """One byte of what a real server says is another one: any answer or a clear error, and the process lives."""
    shop, crew, producer = make(server)
    producer.publish(20)
    codes = set()
    with Proxy(server.port) as proxy:
        url = shop.store.replace(f":{server.port}/", f":{proxy.port}/") + "?timeout=500ms&connect_timeout=1s"
        for words in (["status"], ["list", "--limit", "20"], ["relay", "--to", "events=null:", "--once"]):
            ask(url, *words)
            until(lambda: all(link.over.is_set() for link in proxy.links), "the connection to end")
            total = proxy.bytes()[1]
            assert total > 500
            for at in range(SEED % STRIDE, total, STRIDE):
                proxy.plan(Fault(flip_down=at, reset=False))
                codes.add(ask(url, *words)[0])
    assert len(codes) > 1, "nothing was ever damaged"
    # and nothing of it stays: what is published now arrives
    relay = crew.start()
    until(lambda: shop.held_by(relay), f"the relay to take its lanes; it says:\n{relay.log()}")
    producer.publish(20)
    until(lambda: len(crew.lines()) >= 20, "all that was published")
