# SPDX-License-Identifier: Apache-2.0
"""A configuration that changes while messages flow, and one that is wrong."""
import json
import signal
import threading
import time

import pytest

from shell import Shop, end, until

FILE = """
sources:
  - {{ name: shop, store: "sqlite:app.db" }}
  - {{ name: other, store: "sqlite:other.db", targets: [audit] }}
targets:
  - {{ name: events, to: "file:events.jsonl", batch: {batch} }}
  - {{ name: audit, to: "file:audit.jsonl" }}
{more}
log: {{ format: json, level: {level} }}
"""


class Daemon:
    """A relay with a file that can be written anew; what it says is read along."""

    def __init__(self, folder, **values):
        self.shop = Shop(folder)
        self.path = folder / "outbox.yaml"
        self.said = []
        for store in ("sqlite:app.db", "sqlite:other.db"):
            self.shop.run("init", "--store", store)
        self.write(**values)
        self.process = self.shop.start("relay", "--config", "outbox.yaml")
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.said.append(json.loads(line) if line.startswith(b"{") else {"event": "plain", "message": line})

    def write(self, batch=20, level="info", more=""):
        self.path.write_text(FILE.format(batch=batch, level=level, more=more))

    def told(self, event, since=0):
        return [line for line in self.said[since:] if line["event"] == event]

    def reload(self, event="config.reloaded"):
        """SIGHUP, and the event that answers it. Signals close together are one wish."""
        since = len(self.said)
        time.sleep(0.12)
        self.process.send_signal(signal.SIGHUP)
        return until(lambda: self.told(event, since), event)

    def relays(self):
        """How often each source's relay began."""
        return [line["source"] for line in self.told("relay.start")]


@pytest.fixture
def daemon(tmp_path):
    made = Daemon(tmp_path)
    until(lambda: len(made.relays()) == 2, "both relays")
    yield made
    if made.process.poll() is None:
        end(made.process, signal.SIGTERM)


def test_fifty_reloads_while_messages_flow(daemon):
    """Drained, exchanged, started again: nothing is lost, nothing twice, each key in order."""
    stop, published = threading.Event(), []

    def waiting():
        path = daemon.shop.folder / "events.jsonl"
        return len(published) - (path.read_bytes().count(b"\n") if path.exists() else 0)

    def publish():
        """So much that something is always in flight."""
        while not stop.is_set():
            if waiting() < 200:
                with daemon.shop.db() as db:
                    more = range(len(published), len(published) + 20)
                    db.execute("BEGIN IMMEDIATE")
                    db.executemany("INSERT INTO outbox_message (type, key, payload) VALUES ('a.b', ?, ?)",
                                   [(f"k{n % 3}", json.dumps(n)) for n in more])
                    db.execute("COMMIT")
                published.extend(more)
            time.sleep(0.002)  # the database has one writer, and the relay is one, too

    publisher = threading.Thread(target=publish)
    publisher.start()
    try:
        for i in range(50):
            daemon.write(batch=1 + i % 7)
            assert "1 kept, 1 changed" in daemon.reload()[0]["message"]
            until(lambda: daemon.relays().count("shop") == i + 2, "the relay with the new batch")
    finally:
        stop.set()
        publisher.join()
    assert len(published) > 500
    until(lambda: len(daemon.shop.lines("events.jsonl")) >= len(published), "the last delivery")
    until(lambda: len(daemon.shop.lines("audit.jsonl")) >= len(published), "the last one to audit")
    for name in ("events.jsonl", "audit.jsonl"):
        arrived = [line["data"] for line in daemon.shop.lines(name)]
        assert sorted(arrived) == list(range(len(published)))
        for key in range(3):
            mine = [n for n in arrived if n % 3 == key]
            assert mine == sorted(mine)
    assert daemon.relays().count("shop") == 51 and daemon.relays().count("other") == 1
    for event in ("lane.takeover", "lane.fenced", "relay.failed", "config.refused"):
        assert not daemon.told(event)


MISTAKES = {
    "not yaml": ("{[", "yaml"),
    "unknown key": ("relay: { bacth: 5 }\n", "did you mean batch?"),
    "wrong type": ("relay: { workers: many }\n", "outbox.yaml:8:"),
    "impossible together": ("relay: { breaker_min: 5s, breaker_max: 1s }\n", "breaker_max"),
    "driver that is not there": ("  - { name: x, to: 'pigeon:' }\n", '"pigeon:" is not known'),
    "option that is not there": ("  - { name: x, to: 'redis://h/?nope=1' }\n", 'unknown option "nope"'),
    "secret that cannot be read": ("  - { name: x, to: 'redis://h/', password: 'file:/nowhere/pw' }\n", "/nowhere/pw"),
    "name twice": ("  - { name: events, to: 'null:' }\n", "targets[0] has this name already"),
    "variable that is not set": ("relay: { instance: '${NOT_SET_AT_ALL}' }\n", "NOT_SET_AT_ALL"),
    "engine's own limits": ("relay: { lease: 1s, publish_timeout: 2s }\n", "lease"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_changes_nothing(daemon, mistake):
    more, words = MISTAKES[mistake]
    daemon.write(more=more, level="error", batch=3)
    told = daemon.reload("config.refused")
    assert all(line["level"] == "error" and "nothing was changed" in line["message"] for line in told)
    assert any(words in line["message"] for line in told), told
    message = daemon.shop.insert()
    until(lambda: message in [line["id"] for line in daemon.shop.lines("events.jsonl")], "a delivery")
    daemon.write()
    assert "2 kept, 0 changed" in daemon.reload()[0]["message"]  # also the level was still info
    assert daemon.relays().count("shop") == 1


def test_a_file_that_is_gone_changes_nothing(daemon):
    daemon.path.unlink()
    assert "no such file" in daemon.reload("config.refused")[0]["message"]


def test_sources_and_targets_come_and_go(daemon):
    daemon.shop.run("init", "--store", "sqlite:third.db")
    text = daemon.path.read_text()
    daemon.path.write_text(text.replace("targets:\n", '  - { name: third, store: "sqlite:third.db", targets: [audit] }\ntargets:\n'))
    assert "2 kept, 0 changed, 1 added, 0 removed" in daemon.reload()[0]["message"]
    daemon.shop.run("publish", "--store", "sqlite:third.db", "--type", "a.b", "--data", "3")
    until(lambda: [line["data"] for line in daemon.shop.lines("audit.jsonl")] == [3], "one of the third")
    daemon.path.write_text(text.replace('  - { name: other, store: "sqlite:other.db", targets: [audit] }\n', ""))
    assert "1 kept, 0 changed, 0 added, 2 removed" in daemon.reload()[0]["message"]

    def released():
        status = daemon.shop.run("status", "--store", "sqlite:third.db", "--json").json
        return not status["targets"][0]["lanes"][0]["live"]
    until(released, "the drain of a source that was removed")


def test_what_takes_effect_when(daemon):
    """The level at once, without touching a relay; an instance's name with the next start, and that is told."""
    daemon.write(level="warn", more="relay: { instance: me, shutdown_timeout: 5s }\n")
    told = daemon.reload("config.restart")[0]
    assert told["message"].endswith(": relay.instance")
    assert not daemon.told("config.reloaded")  # it is info
    daemon.write()
    since = len(daemon.said)
    assert "2 kept, 0 changed" in daemon.reload()[0]["message"]
    daemon.write(batch=3)
    daemon.reload()
    assert not daemon.told("config.restart", since)  # it is what it was started with


def test_without_a_file_there_is_nothing_to_read_again(tmp_path):
    shop = Shop(tmp_path)
    shop.run("init")
    relay = shop.start("relay", "--to", "events=file:out.jsonl")
    shop.insert()
    until(shop.lines, "a delivery")
    relay.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    shop.insert()
    until(lambda: len(shop.lines()) == 2, "a delivery after it")
    code, _, err = end(relay, signal.SIGTERM)
    assert code == 0 and "there is no file to reload" in err


def test_a_changed_target_is_the_only_one_that_delivers(daemon):
    """The relay before is gone: what is published now goes where the file says now, and nowhere else."""
    daemon.shop.insert()
    until(lambda: daemon.shop.lines("events.jsonl"), "a delivery")
    daemon.path.write_text(daemon.path.read_text().replace("events.jsonl", "elsewhere.jsonl"))
    assert "1 kept, 1 changed" in daemon.reload()[0]["message"]
    message = daemon.shop.insert()
    until(lambda: [line["id"] for line in daemon.shop.lines("elsewhere.jsonl")] == [message], "a delivery elsewhere")
    assert len(daemon.shop.lines("events.jsonl")) == 1


def routes(daemon):
    with daemon.shop.db() as db:
        return db.execute("SELECT * FROM outbox_target ORDER BY name").fetchall()


def test_what_the_store_refuses_stops_nothing(daemon):
    """A file that is good, and a target that the database will not have: everything goes on as before."""
    daemon.shop.insert()
    until(lambda: daemon.shop.lines("events.jsonl") and daemon.shop.lines("audit.jsonl"), "deliveries")
    good, before = daemon.path.read_text(), routes(daemon)
    text = good.replace("batch: 20", "match: { type: [nothing.of.this] }")
    daemon.path.write_text(text.replace("log:", "  - { name: sure, to: 'file:sure.jsonl', start: now }\n"
                                                "  - { name: extra, to: 'file:extra.jsonl', start: '2999-01-01T00:00:00Z' }\nlog:"))
    told = daemon.reload("config.refused")[0]
    assert told["source"] == "shop"
    assert 'target "extra"' in told["message"] and "is in the future" in told["message"]
    assert routes(daemon) == before
    message = daemon.shop.insert()
    for name in ("events.jsonl", "audit.jsonl"):
        until(lambda: message in [line["id"] for line in daemon.shop.lines(name)], "a delivery by the relay before")
    assert daemon.relays().count("shop") == 1 and not daemon.told("relay.failed")
    daemon.path.write_text(daemon.path.read_text().replace("'2999-01-01T00:00:00Z'", "now"))
    daemon.reload()
    until(lambda: daemon.relays().count("shop") == 2, "the relay with the new targets")
    message = daemon.shop.insert()
    until(lambda: message in [line["id"] for line in daemon.shop.lines("extra.jsonl")], "a delivery to the new one")
    assert message not in [line["id"] for line in daemon.shop.lines("events.jsonl")]
    assert len(daemon.told("config.refused")) == 1


def test_a_target_without_a_start_is_all_that_waits(daemon):
    daemon.shop.insert()
    until(lambda: daemon.shop.lines("events.jsonl") and daemon.shop.lines("audit.jsonl"), "deliveries")
    good = daemon.path.read_text()
    daemon.path.write_text(good.replace("log:", "  - { name: sure, to: 'file:sure.jsonl', start: now }\n"
                                                "  - { name: extra, to: 'file:extra.jsonl' }\nlog:"))
    told = daemon.reload("target.unserved")[0]
    assert told["target"] == "extra" and "start: oldest, start: now or a time" in told["message"]
    message = daemon.shop.insert()
    for name in ("events.jsonl", "audit.jsonl", "sure.jsonl"):
        until(lambda: message in [line["id"] for line in daemon.shop.lines(name)], f"a delivery: {name}")
    daemon.path.write_text(daemon.path.read_text().replace("extra.jsonl'", "extra.jsonl', start: oldest"))
    daemon.reload()
    until(lambda: message in [line["id"] for line in daemon.shop.lines("extra.jsonl")], "a delivery to the new one")
    assert not daemon.told("config.refused")


def test_a_refused_target_that_is_taken_back(daemon):
    """The file of before again: the trouble is over, and the end is a good one."""
    daemon.shop.insert()
    until(lambda: daemon.shop.lines("events.jsonl"), "a delivery")
    good = daemon.path.read_text()
    daemon.path.write_text(good.replace("log:", "  - { name: extra, to: 'file:extra.jsonl', start: '2999-01-01T00:00:00Z' }\nlog:"))
    daemon.reload("config.refused")
    daemon.path.write_text(good)
    daemon.reload()
    until(lambda: daemon.relays().count("shop") == 2, "the relay of the file")
    message = daemon.shop.insert()
    until(lambda: message in [line["id"] for line in daemon.shop.lines("events.jsonl")], "a delivery")
    daemon.path.write_text(good.replace("log:", "  - { name: extra, to: 'file:extra.jsonl', start: '2999-01-01T00:00:00Z' }\nlog:"))
    daemon.reload("config.refused")
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(timeout=30) == 0
