# SPDX-License-Identifier: Apache-2.0
"""Live views: server-sent events as a browser reads them."""
import contextlib
import http.client
import json
import signal
import socket
import time

import pytest

from console import TOKENS, Console
from shell import PATIENCE, until


@pytest.fixture
def console(tmp_path):
    made = Console(tmp_path)
    yield made
    made.down()


class Stream:
    def __init__(self, console, headers=None, token="rob"):
        self.connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
        self.connection.request("GET", "/api/events", headers={
            **({"Authorization": f"Bearer {TOKENS[token][1]}"} if token else {}), **(headers or {})})
        self.response = self.connection.getresponse()

    def next(self):
        """The next event: its fields; None at the end."""
        fields = {}
        while True:
            line = self.response.readline()
            if not line:
                return None
            line = line.decode().rstrip("\n")
            if not line and fields:
                return fields
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                assert name in ("event", "id", "data"), line
                fields[name] = value

    def wait(self, event, condition=lambda data: True):
        deadline = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < deadline, f"waited in vain for {event}"
            got = self.next()
            assert got is not None, f"the stream ended before {event}"
            data = json.loads(got["data"])
            if got["event"] == event and condition(data):
                return got, data

    def close(self):
        self.connection.close()


def targets(data):
    """Empty until the relay has registered them."""
    return data["sources"][0]["targets"]


def test_samples_and_alerts(console):
    console.up()
    with contextlib.closing(Stream(console)) as stream:
        assert stream.response.status == 200
        assert stream.response.headers["Content-Type"].startswith("text/event-stream")
        first, data = stream.wait("sample", targets)
        assert [t["name"] for t in targets(data)] == ["events"] and "lanes" not in targets(data)[0]
        console.insert(payload="{broken")
        _, alert = stream.wait("alert", lambda d: d["rule"] == "failed")
        assert alert["state"] == "firing" and alert["target"] == "events" and alert["text"]
        second, data = stream.wait("sample")
        assert int(second["id"]) > int(first["id"])
        console.post("/api/messages/discard", {"state": "failed", "reason": "seen"})
        _, alert = stream.wait("alert", lambda d: d["rule"] == "failed")
        assert alert["state"] == "resolved"


def test_coming_back_with_a_last_event_id(console):
    console.up()
    for last in ("17", "not a number", "9" * 30):
        with contextlib.closing(Stream(console, {"Last-Event-ID": last})) as stream:
            assert stream.wait("sample")[1]["sources"], "whatever was seen last: the newest sample comes at once"


def test_nobody_looks_without_a_token(console):
    console.up()
    with contextlib.closing(Stream(console, token=None)) as stream:
        assert stream.response.status == 401


def test_there_is_an_end_to_the_number_of_streams(console):
    console.up()
    streams = []
    try:
        for _ in range(100):
            streams.append(Stream(console))
            if streams[-1].response.status != 200:
                break
        assert streams[-1].response.status in (429, 503) and streams[-1].response.headers["Retry-After"]
        good = [s for s in streams if s.response.status == 200]
        assert len(good) >= 4
        console.get("/api/outbox")
        for stream in good:
            stream.wait("sample")
        for stream in streams:
            stream.close()
        until(lambda: works(console), "room for a new one after the others left")
    finally:
        for stream in streams:
            stream.close()


def works(console):
    with contextlib.closing(Stream(console)) as stream:
        return stream.response.status == 200


def test_who_does_not_read_holds_nothing_up(console):
    """Streams that are opened and never read, while others look, act, and messages flow."""
    console.up()
    deaf = []
    for _ in range(4):
        s = socket.create_connection(("127.0.0.1", console.port))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.sendall(f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n"
                  f"Authorization: Bearer {TOKENS['rob'][1]}\r\n\r\n".encode())
        deaf.append(s)
    for i in range(20):
        console.insert(key=f"k{i}")
    until(lambda: console.states() == {"delivered": 20}, "deliveries")
    with contextlib.closing(Stream(console)) as stream:
        stream.wait("sample", lambda d: sum(t["delivered"] for t in targets(d)) == 20)
    for s in deaf:
        s.close()


def test_draining_ends_them(console):
    console.up()
    with contextlib.closing(Stream(console)) as stream:
        stream.wait("sample")
        console.post("/api/drain")
        got = stream.next()
        while got and got["event"] != "end":
            got = stream.next()
        # the process may be gone before it could say so; either way the stream is over
        assert got is None or json.loads(got["data"]) == {"reason": "draining"}
        assert console.process.wait(timeout=60) == 0


@pytest.mark.parametrize("how", ["taken away", "expired"])
def test_a_token_that_ends_ends_them(console, how):
    """Who was let in once does not look on for ever."""
    console.up()
    with contextlib.closing(Stream(console)) as stream, contextlib.closing(Stream(console, token="ada")) as other:
        stream.wait("sample")
        operate, ada = TOKENS["ada"]
        rest = "" if how == "taken away" else f"rob read {TOKENS['rob'][1]} 2020-01-01T00:00:00Z\n"
        console.tokens.write_text(f"ada {operate} {ada}\n{rest}")
        console.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE
        while stream.next():
            assert time.monotonic() < deadline, "it still looks on"
        other.wait("sample")
        other.wait("sample")
