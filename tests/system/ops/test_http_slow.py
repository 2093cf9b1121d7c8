# SPDX-License-Identifier: Apache-2.0
"""Slow clients by the hundred: they hold a bounded number of places, and everybody else is served as before."""
import os
import time

import pytest

import raw
import slow
from console import TOKENS, Console
from shell import BINARY, until

CROWD = 500
PLACES = 64  # the server's limit, docs/admin-http.md


@pytest.fixture
def console(tmp_path):
    console = Console(tmp_path)
    yield console.up()
    console.down()


def sockets(process):
    """How many sockets it has open."""
    count = 0
    for name in os.listdir(f"/proc/{process.pid}/fd"):
        try:
            count += os.readlink(f"/proc/{process.pid}/fd/{name}").startswith("socket:")
        except FileNotFoundError:
            pass
    return count


def resident(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return [int(line.split()[1]) for line in status if line.startswith("VmRSS")][0] << 10


def sanitized():
    """Sanitizers keep what is freed for a while: their memory says nothing."""
    with open(BINARY, "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def test_five_hundred_slow_clients(console):
    console.insert(key="first")
    until(lambda: len(console.lines("events.jsonl")) == 1, "the first message")
    console.get("/api/messages")
    before = resident(console.process)
    most = 0
    with slow.Crowd(console.port, CROWD, TOKENS["ada"][1]) as crowd:
        until(lambda: crowd.connects >= CROWD, "all of them")
        for i in range(100):
            console.insert(key=f"k{i}")
            for path in ("/livez", "/readyz", "/api/outbox", "/metrics"):
                assert console.ask("GET", path, token="rob").status == 200
            if i % 10 == 0:
                assert console.get("/api/messages").json["deliveries"] is not None
            most = max(most, sockets(console.process))
            time.sleep(0.02)
        until(lambda: len(console.lines("events.jsonl")) == 101, "all messages, while they are there")
        # they are thrown out, come back, and are thrown out again
        until(lambda: crowd.dropped >= CROWD, "those who were slow to be thrown out")
        most = max(most, sockets(console.process))
        grown = resident(console.process) - before
    assert most <= PLACES + 8, most  # the listener, and those of the store and the log
    assert grown < 32 << 20 or sanitized(), f"{grown >> 20} MiB more"
    until(lambda: sockets(console.process) < 8, "that none is left behind")
    assert console.ask("GET", "/livez", token=None).status == 200


def test_a_request_that_trickles_in_ends(console):
    """A byte now and then does not make its time longer."""
    for first, each in ((b"GET /livez HTTP/1.1\r\nX: ", b"a"),
                        (raw.request(console.port, "POST /api/reload HTTP/1.1",
                                     [f"Authorization: Bearer {TOKENS['ada'][1]}",
                                      "Content-Type: application/json", "Content-Length: 60000"]), b" ")):
        with raw.connect(console.port) as sock:
            sock.sendall(first)
            sent = 0
            with pytest.raises(OSError):
                while sent < 600:  # at this pace for two minutes
                    sock.sendall(each)
                    sent += 1
                    time.sleep(0.2)


def test_an_answer_that_is_not_taken_ends(console):
    many = raw.request(console.port, "GET /api/openapi.json HTTP/1.1",
                       [f"Authorization: Bearer {TOKENS['ada'][1]}"]) * 200
    with raw.connect(console.port) as sock:
        sock.setblocking(False)
        try:
            while True:
                sock.send(many)
        except BlockingIOError:
            pass
        assert held(console, sock)
        until(lambda: not held(console, sock), "the end of it")


def held(console, sock):
    """Does the server still have this connection? By its port, in its own table."""
    port = f":{sock.getsockname()[1]:04X}"
    with open(f"/proc/{console.process.pid}/net/tcp", encoding="utf-8") as table:
        return any(line.split()[2].endswith(port) and line.split()[3] == "01" for line in table.readlines()[1:]
                   if line.split()[1].endswith(f":{console.port:04X}"))


def test_messages_are_read_by_two_at_a_time(console):
    """However many ask at once: they get their answer, or are told to come again."""
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: console.ask("GET", "/api/messages", token="rob"), range(200)))
    codes = {answer.status for answer in answers}
    assert codes <= {200, 503}, codes
    assert 200 in codes
    for answer in answers:
        if answer.status == 503:
            assert answer.headers["Retry-After"] == "1"


def test_few_descriptors_are_left_to_the_relay(tmp_path):
    """When the process has none left the server lets nobody in for a while; the relay goes on."""
    console = Console(tmp_path)
    command = console.command
    console.command = lambda *args: ["prlimit", "--nofile=40:40", *command(*args)]
    console.up()
    try:
        with slow.Crowd(console.port, 100, TOKENS["ada"][1]) as crowd:
            until(lambda: crowd.connects >= 100, "all of them")
            for i in range(20):
                console.insert(key=f"k{i}")
            until(lambda: len(console.lines("events.jsonl")) == 20, "the messages")
        until(lambda: console.ask("GET", "/livez", token=None).status == 200, "a place")
    finally:
        console.down()
