# SPDX-License-Identifier: Apache-2.0
"""Two versions at once on one store, while messages flow: the database first, then the programs one by one."""
import contextlib
import signal
import threading
import time

import pytest

from before import before
from places import bare_place
from shell import until

KEYS = 5


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    return bare_place(request.param, tmp_path, request)


class Flow:
    """An application that goes on publishing, and relays that come and go."""

    def __init__(self, new, old):
        self.new, self.old = new, old
        self.published, self.error = [], None
        self.stop = threading.Event()
        self.relays = {}
        self.sink = open(new.folder / "said", "ab")  # noqa: SIM115
        self.thread = threading.Thread(target=self.publish)

    def publish(self):
        """By one connection all the time, as applications do."""
        try:
            with self.new.db() as db:
                while not self.stop.is_set():
                    n = len(self.published)
                    db.execute("INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', ?, ?)",
                               (f"k{n % KEYS}", str(n)))
                    self.published.append(n)
                    time.sleep(0.005)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def start(self, shop, name, *args):
        self.relays[name] = shop.start("relay", "--to", "events=file:out.jsonl", "--lease", "2s", "--instance", name, *args,
                                       stdout=self.sink, stderr=self.sink)

    def end(self, name):
        process = self.relays.pop(name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, self.said()

    def said(self):
        return (self.new.folder / "said").read_text()

    def arrived(self):
        return [line["data"] for line in self.new.lines()]

    def flows(self, what):
        """Everything that is published from now on arrives."""
        count = len(self.published) + 5
        until(lambda: self.error or (len(self.published) >= count and len(set(self.arrived())) >= count), what)
        assert not self.error, self.error
        for name, process in self.relays.items():
            assert process.poll() is None, f"{name} has ended while {what} was expected:\n{self.said()}"

    def works(self, name):
        """This relay holds a lane and delivers."""
        def holds():
            targets = self.new.run("status", "--json").json["targets"]
            lanes = next(target["lanes"] for target in targets if target["name"] == "events")
            return any((lane["owner"] or "").startswith(name) and lane["live"] for lane in lanes)
        until(holds, f"{name} to hold a lane")

    def finish(self):
        self.stop.set()
        self.thread.join()
        until(lambda: len(set(self.arrived())) >= len(self.published), "the last delivery")
        for name in list(self.relays):
            self.end(name)
        arrived = self.arrived()
        assert sorted(arrived) == self.published, "nothing is lost, and nothing twice: everybody was drained"
        for key in range(KEYS):
            mine = [n for n in arrived if n % KEYS == key]
            assert mine == sorted(mine)
        assert not self.error, self.error

    def close(self):
        self.stop.set()
        if self.thread.ident:
            self.thread.join()
        for process in self.relays.values():
            process.kill()
            process.wait()
        self.sink.close()


@contextlib.contextmanager
def flow(new, old):
    made = Flow(new, old)
    try:
        made.thread.start()
        yield made
        made.finish()
    finally:
        made.close()


def sessions(shop):
    """Those of relays, on PostgreSQL."""
    return {row[0] for row in shop.sql("SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                                       " AND application_name LIKE 'outbox%'")}


def upgrade_beside(new, f):
    """Sessions that are open, with their plans and statements, go on through it."""
    on_postgres = new.kind == "postgres"
    before_it = sessions(new) if on_postgres else set()
    assert before_it or not on_postgres, "no relay is connected"
    new.run("upgrade", "--check", code=2, people=False)
    new.run("upgrade")
    f.flows("the version before on the new schema")
    assert not on_postgres or before_it & sessions(new), f"every relay had to connect again:\n{f.said()}"


def test_two_versions_at_once(shop):
    new, old = shop, before(shop)
    old.run("init", "--lanes", "2")
    with flow(new, old) as f:
        f.start(old, "old-a")
        f.start(old, "old-b")
        f.flows("two of the version before")
        upgrade_beside(new, f)
        f.end("old-a")
        f.start(new, "new-a")
        f.works("new-a")
        f.works("old-b")
        f.flows("both versions side by side")
        f.end("old-b")
        f.start(new, "new-b")
        f.works("new-b")
        f.flows("two of the new version")
        # and back: a rollback of the program alone
        f.end("new-a")
        f.start(old, "old-c")
        f.works("old-c")
        f.flows("the version before once more")
    # what people and scripts of the version before do
    old.run("status")
    old.run("list", "--state", "delivered", "--limit", 5)
    old.run("doctor", code=None)
    old.run("purge", "--delivered", "1s", "--yes", code=None)


def test_the_version_before_feeds_a_dead_letter(shop):
    """Registered by the new one; both versions fail messages, and each failure arrives."""
    new, old = shop, before(shop)
    old.run("init")
    old.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    new.run("upgrade")
    dead = ["--to", "dead=file:dead.jsonl", "--match", "dead=-", "--start", "dead=oldest"]
    new.run("relay", "--to", "events=file:out.jsonl", *dead, "--dead-letter", "events=dead", "--until-idle")
    ids = [new.insert(key="k", payload="{broken") for _ in range(3)]
    old.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)
    assert not new.lines("dead.jsonl")
    new.run("relay", *dead, "--until-idle")
    arrived = new.lines("dead.jsonl")
    assert [line["id"] for line in arrived] == ids
    assert {line["outboxdeadtarget"] for line in arrived} == {"events"}
    # requeued by the version before, failed by it, and again
    old.run("requeue", ids[1], "--target", "events")
    old.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)
    new.run("relay", *dead, "--until-idle")
    assert [line["id"] for line in new.lines("dead.jsonl")] == [*ids, ids[1]]
    old.run("requeue", ids[2], "--target", "events")
    new.run("relay", "--to", "events=file:out.jsonl", *dead, "--dead-letter", "events=dead", "--until-idle", code=1)
    assert [line["id"] for line in new.lines("dead.jsonl")] == [*ids, ids[1], ids[2]]
