# SPDX-License-Identifier: Apache-2.0
"""Codes that mosquitto cannot be made to send, and peers that are no brokers: from a stand-in that speaks MQTT 5, not from a
real broker. Each row of the table in docs/transports/mqtt.md is said here once in every packet that can have it."""
import os
import pathlib
import re
import select
import socket
import struct
import subprocess

import pytest
from peer import (DISCONNECT, PUBACK, PUBCOMP, PUBREC, RECEIVE_MAXIMUM, SERVER_REFERENCE, Peer, answer, connack, disconnect,
                  packet, text)

PAGE = pathlib.Path(__file__).parents[4] / "docs/transports/mqtt.md"


def rows():
    """(code, name, verdict, one topic, connection) of the page's table."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if re.fullmatch("0x[0-9a-f]{2}", cells[0]):
            yield int(cells[0], 16), *cells[1:5]


ROWS = list(rows())
REFUSALS = [row for row in ROWS if row[0] >= 0x80]
STATUS = {"ECONN": "conn", "EPROTO": "proto", "EAUTH": "auth", "ECONFIG": "config", "EFULL": "full"}
COUNTS = {"ACKED": (1, 0, 0, 0), "REJECTED": (0, 1, 0, 0), "RETRY": (0, 0, 1, 0), "UNKNOWN": (0, 0, 0, 1)}


@pytest.fixture(scope="module", autouse=True)
def stand_in(request):
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\nmqtt: the answers of test_peer.py come from a stand-in for a broker")


@pytest.fixture
def peer():
    made = []

    def start(**behaviour):
        made.append(Peer(**behaviour))
        return made[-1]

    yield start
    for one in made:
        one.close()


def said(verdict, code):
    acked, rejected, retry, unknown = COUNTS[verdict]
    return f"publish ok acked {acked} rejected {rejected} retry {retry} unknown {unknown} unset 0 native {code} "


def test_the_table_is_there():
    assert len(ROWS) > 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]:02x}")
def test_answers_to_messages(peer, probe, row):
    """PUBACK, with topics from a template and with one topic; PUBREC and PUBCOMP for QoS 2."""
    code, name, verdict, place, _ = row
    one = peer(published=lambda ident, _: answer(PUBACK, ident, code, "the peer's words"))
    out = probe(one.url())
    assert said(verdict, code) in out, out
    if code >= 0x80:
        assert f'topic "shop/order.placed": {name} (0x{code:02x})' in out and "the peer's words" in out, out
    if place != "-":
        out = probe(one.url("shop/all"))
        assert f"publish {STATUS[place]} acked 0 rejected 0 retry 0 unknown 0 unset 1 native {code} " in out, out
    elif code >= 0x80:
        assert said(verdict, code) in probe(one.url("shop/all"))
    two = peer(published=lambda ident, _: answer(PUBREC, ident, code),
               released=lambda ident, _: answer(PUBCOMP, ident, 0))
    assert said(verdict, code if code >= 0x80 else 0) in probe(two.url(options="?qos=2"))
    three = peer(published=lambda ident, _: answer(PUBREC, ident, 0),
                 released=lambda ident, _: answer(PUBCOMP, ident, code))
    assert said(verdict, code) in probe(three.url(options="?qos=2"))


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row[0]:02x}")
def test_connections_refused_and_ended(peer, probe, row):
    """CONNACK; DISCONNECT after the first of three messages was answered. With EAUTH and EFULL what was never sent counts as such."""
    code, name, _, _, status = row
    out = probe(peer(greeting=connack(code)).url())
    assert out.startswith(f"connect {STATUS[status]} native {code} ") and f"{name} (0x{code:02x})" in out, out
    one = peer(greeting=connack(0, struct.pack(">BH", RECEIVE_MAXIMUM, 2)),
               published=lambda ident, n: answer(PUBACK, ident) if n == 0 else disconnect(code))
    out = probe(one.url(), 3)
    assert f"publish {STATUS[status]} acked 1 " in out and f"the broker ended the connection: {name} (0x{code:02x})" in out, out
    assert "rejected 0 retry 0 unknown 2 unset 0 native" in out or "rejected 0 retry 0 unknown 1 unset 1 native" in out, out


def test_a_code_that_does_not_exist_yet(peer, probe):
    one = peer(published=lambda ident, _: answer(PUBACK, ident, 0xee))
    assert said("RETRY", 0xee) in probe(one.url())
    assert "Unknown reason code (0xee)" in probe(one.url())
    assert said("ACKED", 0x42) in probe(peer(published=lambda ident, _: answer(PUBACK, ident, 0x42)).url())


def test_another_server_is_named(peer, probe):
    reference = bytes([SERVER_REFERENCE]) + text("mqtt.example:8883")
    out = probe(peer(greeting=connack(0x9d, reference)).url())
    assert "connect config" in out and "it names mqtt.example:8883" in out, out


@pytest.mark.parametrize("code,status", [(1, "config"), (2, "config"), (3, "conn"), (4, "auth"), (5, "auth")])
def test_3_1_1_refuses_with_numbers_of_its_own(peer, probe, code, status):
    out = probe(peer(greeting=packet(0x20, bytes([0, code]))).url(options="?version=3.1.1"))
    assert out.startswith(f"connect {status} "), out


def test_a_broker_of_3_1_1_is_recognised(peer, probe):
    out = probe(peer(greeting=packet(0x20, bytes([0, 1]))).url())
    assert out.startswith("connect config ") and "version=3.1.1" in out, out


def waits(client):
    """Has it nothing to say for a moment?"""
    return not select.select([client], [], [], .1)[0]


@pytest.mark.parametrize("window", [1, 7])
def test_never_more_on_its_way_than_the_broker_takes(peer, probe, window):
    """The peer answers only when the window is full, and looks whether one more comes before."""
    on_their_way, waited = [], []

    def publish(ident, number):
        on_their_way.append(ident)
        if len(on_their_way) < window and number < 19:
            return None
        waited.append(waits(one.client))
        done = b"".join(answer(PUBACK, one) for one in reversed(on_their_way))
        on_their_way.clear()
        return done

    one = peer(greeting=connack(0, struct.pack(">BH", RECEIVE_MAXIMUM, window)), published=publish)
    assert "publish ok acked 20 " in probe(one.url(), 20), one.seen
    assert all(waited) and len(waited) >= 20 // window


def test_the_guilty_is_found_among_answers_in_any_order(peer, probe):
    waiting = []

    def publish(ident, number):
        waiting.append(ident)
        if number < 3:
            return None
        return b"".join(answer(PUBACK, one, 0x87 if one == waiting[1] else 0) for one in reversed(waiting))

    out = probe(peer(published=publish).url(), 4, 10, 20, "a,b,c,d")
    assert "acked 3 rejected 0 retry 1 unknown 0 unset 0 native 135 " in out and 'topic "shop/b"' in out, out


def test_nothing_is_sent_behind_our_back(peer, probe):
    """After a deadline the client is gone with all it held, and a second batch needs a new connection."""
    one = peer(greeting=connack(0, struct.pack(">BH", RECEIVE_MAXIMUM, 2)))
    out = probe(one.url(), 5, 10, 1, "t", 2, 2)
    assert "publish timedout acked 0 rejected 0 retry 0 unknown 2 unset 3 " in out, out
    assert "publish conn acked 0 " in out and "not connected" in out, out
    assert len(one.seen) == 2 and not any(kind & 0x08 for kind, _ in one.seen), one.seen


def test_whoever_links_it_is_not_killed_by_sigpipe(peer, probe):
    """The peer answers, ends and resets: our word of farewell is a write to a broken pipe."""
    def publish(ident, _):
        one.client.sendall(answer(PUBACK, ident))
        one.client.shutdown(socket.SHUT_WR)
        one.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.client.close()

    one = peer(published=publish)
    for _ in range(5):  # now and then we are faster than the reset
        assert "publish ok acked 1 " in probe(one.url())


@pytest.mark.parametrize("size", [1, 100, 200, 16200, 16400, 2097000, 2097300])
def test_the_size_is_the_packets(peer, probe, size):
    """What the driver counts is what comes, wherever a length needs one byte more."""
    small = peer(greeting=connack(0, b"\x27\0\0\0\x0a"))
    told = int(re.search(r"would have (\d+) bytes; this broker takes 10", probe(small.url(), 1, 10, 20, "t", size))[1])
    assert not small.seen
    one = peer(greeting=connack(0, b"\x27" + struct.pack(">I", told)), published=lambda ident, _: answer(PUBACK, ident))
    assert "publish ok acked 1 " in probe(one.url(), 1, 10, 20, "t", size)
    [(kind, body)] = one.seen
    assert len(packet(kind, body)) == told


def test_an_idle_connection_that_ended_is_opened_again(peer, probe):
    """The peer ends it after the first batch, in order: the second batch finds a new one."""
    one = peer(published=lambda ident, _: answer(PUBACK, ident) + packet(DISCONNECT, b"\x8d\x00"))
    out = probe(one.url(), 1, 10, 20, "t", 2, 3)
    assert out.count("publish ok acked 1 ") >= 2 and one.connections >= 2, out


# What it says at once, what it says when a message comes; then it is silent.
OK = connack()
GARBAGE = [
    (b"", b""), (b"\x00" * 100, b""), (b"\xff" * 70000, b""), (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""),
    (b"\x20", b""), (b"\x20\x00", b""), (b"\x20\x02\x00", b""), (b"\x20\xff\xff\xff\xff\xff", b""),
    (b"\x20\x05\x00\x00\x02\x21\x00", b""), (connack(0, b"\x21\x00\x00"), b""),
    (connack(0, b"\x27\x00\x00\x00\x00"), b""), (packet(PUBACK, b"\x00\x01"), b""), (answer(PUBACK, 1) + OK, b""),
    (OK, b""), (OK, b"\x00\x01\x02"), (OK, packet(PUBACK, b"")), (OK, packet(PUBACK, b"\x00")),
    (OK, packet(PUBACK, b"\x00\x00")), (OK, answer(PUBACK, 777)), (OK, answer(PUBREC, 777)), (OK, answer(PUBCOMP, 1)),
    (OK, answer(PUBREC, 1) + answer(PUBREC, 1)), (OK, packet(PUBACK, b"\x00\x01\x00\xff\xff\xff\xff\xff")),
    (OK, packet(0x90, b"\x00\x01\x00\x00")), (OK, packet(0x30, b"\x00\x01a\x00hello")), (OK, packet(0xd0, b"") * 500),
    (OK, OK), (OK, packet(DISCONNECT, b"")), (OK, b"\x40\x7f\x00"), (OK, b"\xf0\x02\x18\x00"),
]


@pytest.mark.parametrize("row", range(len(GARBAGE)))
def test_garbage_is_an_error(peer, probe, row):
    greeting, words = GARBAGE[row]
    one = peer(greeting=greeting, published=lambda *_: words)
    out = probe(one.url(), 3, 1, 1, timeout=20)
    assert " acked 0 " in out if "connect ok" in out else out.startswith("connect "), out


def test_a_property_that_does_not_exist(peer):
    """libmosquitto 2.0.11 ends the process for it (docs/transports/mqtt.md); a later one may not. Never an acknowledgement."""
    one = peer(greeting=connack(0, b"\x77\x00"), published=lambda ident, _: answer(PUBACK, ident))
    done = subprocess.run([os.environ["MQTT_PROBE"], one.url(), "1", "5"], capture_output=True, check=False, timeout=60)
    refused = done.returncode == 1 and done.stdout.startswith(b"connect ") and not done.stdout.startswith(b"connect ok")
    assert refused or b"Assertion `mosq' failed" in done.stderr, done


def test_the_peer_can_also_tell_the_truth(peer, probe):
    """So that the rows above fail for what they say, not for the peer itself."""
    one = peer(published=lambda ident, _: answer(PUBACK, ident))
    assert "publish ok acked 3 " in probe(one.url(), 3)
