# SPDX-License-Identifier: Apache-2.0
"""Dead letters under crashes: what fails at a target reaches its dead letter, whoever dies in between.

Every other message cannot be sent: it claims to be JSON and is not, or has expired. A relay dies around a
settlement, others go on. Each failure arrives at the dead letter, nothing else does, and a key keeps its order.
"""
import collections
import contextlib
import datetime
import fcntl
import json
import os
import signal

import pytest

from kit import Crew, outbox, until

BATCH = 4
KEYS = ["k0", "k1", "k2", None]
PASSES = [1, 2, 3, 5, 8] if os.environ.get("OUTBOX_TEST_ALL") else [1, 3]
# around a settlement, which writes the failed delivery and the dead letter
POINTS = ["after_publish", "after_decide", "before_settle", "before_commit", "after_commit", "after_settle"]


class Morgue:
    """A shop with a target whose messages fail, and what became of them."""

    def __init__(self, shop, folder):
        self.shop, self.folder = shop, str(folder)
        self.crew = Crew(shop, folder)
        self.good, self.bad = [], []  # ids in the order of the log
        self.killed_with = 0

    def publish(self, count):
        """Good and bad ones in turns, of every key."""
        with contextlib.closing(self.shop.connect()) as db:
            for i in range(count):
                bad, key = i % 2 == 0, KEYS[i // 2 % len(KEYS)]
                expires = self.shop.long_ago if i % 6 == 0 else "NULL"
                row = db.execute("INSERT INTO outbox_message (type, key, payload, expires_at)"
                                 f" VALUES ('order.placed', ?, ?, {expires}) RETURNING id",
                                 (key, "{broken" if bad else "{}")).fetchone()
                (self.bad if bad else self.good).append(row[0])

    def start(self, *extra, failpoint=None):
        return self.crew.start("--to", f"dead=file:{self.folder}/dead.jsonl", "--match", "dead=-", "--start", "dead=oldest",
                               "--dead-letter", "events=dead", *extra, failpoint=failpoint, batch=BATCH)

    def die(self, failpoint):
        victim = self.start(failpoint=failpoint)
        assert victim.wait() == -signal.SIGKILL, f"{failpoint} was not passed:\n{victim.log()}"
        self.killed_with += self.shop.in_flight()

    def sleep(self, failpoint):
        """
        A relay that was stopped there. One whose other worker holds SQLite's lock, or that of the file it writes
        to, keeps everybody out: that one is void.
        """
        for _ in range(50):
            self.publish(48)
            sleeper = self.start(failpoint=failpoint)
            until(sleeper.stopped, "the relay to stop")
            if not self.shop.locked() and not any(map(is_locked, (self.crew.consumer, f"{self.folder}/dead.jsonl"))):
                return sleeper
            sleeper.signal(signal.SIGKILL)
            sleeper.wait()
            self.killed_with += self.shop.in_flight()
        raise AssertionError("it always sleeps with the lock")

    def drain(self):
        relay = self.start("--until-idle")
        assert relay.wait() in (0, 1), relay.log()  # 1: some have failed

    def dead(self):
        """The dead letters that have arrived."""
        path = os.path.join(self.folder, "dead.jsonl")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be half written

    def failures(self):
        """When each delivery to events failed the last time, as the store says."""
        rows = self.shop.rows("SELECT id, last_status_at FROM outbox_delivery WHERE target = 'events' AND state = 'failed'")
        return {row[0]: moment(row[1]) for row in rows}

    def requeue(self):
        outbox("requeue", "--store", self.shop.store, "--state", "failed", "--target", "events", "--yes")

    def close(self):
        self.crew.close()


def is_locked(path):
    """Is somebody writing to this file of a file: target?"""
    if not os.path.exists(path):
        return False
    with open(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def moment(value):
    """A time as the store or an event has it, to the microsecond."""
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1e6)
    return value


@pytest.fixture
def morgue(make, tmp_path):
    made = []

    def build(lanes=1):
        shop, _, _ = make(lanes=lanes)
        made.append(Morgue(shop, tmp_path))
        return made[0]

    yield build
    for thing in made:
        thing.close()


def expect_dead(morgue, times=1):
    """Every failure of `times` rounds is at the dead letter, in order, and nothing else."""
    events, failures = morgue.dead(), morgue.failures()
    assert sorted(failures) == sorted(morgue.bad), "what failed is not what cannot be sent"
    arrived = collections.defaultdict(list)
    for event in events:
        assert event["outboxdeadtarget"] == "events" and event["outboxdeadreason"], event
        # more than that: a relay died while it was alone in flight
        assert int(event["outboxdeadattempts"]) >= (0 if "expired" in event["outboxdeadreason"] else 1), event
        arrived[event["id"]].append(moment(event["outboxdeadat"]))
    assert set(arrived) <= set(morgue.bad), "at the dead letter without having failed"
    lost = [i for i in morgue.bad if i not in arrived]
    assert not lost, f"{len(lost)} of {len(morgue.bad)} never reached the dead letter: {lost[:5]}"
    for message, ats in arrived.items():
        assert len(set(ats)) == times, f"{message} failed {times} times; dead letters of {sorted(set(ats))}"
        assert ats[-1] == failures[message] == max(ats), f"{message}: the last failure did not arrive"
    check_order(morgue, events)
    check_good(morgue)
    left = morgue.shop.rows("SELECT seq, state FROM outbox_detour WHERE target = 'dead' AND state <> 'delivered'")
    assert not left, left
    return sum(len(ats) - len(set(ats)) for ats in arrived.values())


def check_order(morgue, events):
    """Of each round and key, the first arrivals are in the order of the log."""
    place = {message: i for i, message in enumerate(morgue.bad)}
    rounds, seen, last = collections.Counter(), set(), {}
    for event in events:
        mark = (event["id"], event["outboxdeadat"])
        if mark in seen or "partitionkey" not in event:
            continue
        seen.add(mark)
        rounds[event["id"]] += 1
        lane = (rounds[event["id"]], event["partitionkey"])
        assert place[event["id"]] > last.get(lane, -1), f"{lane}: {event['id']} after a later one"
        last[lane] = place[event["id"]]


def check_good(morgue):
    """The others arrive where they belong."""
    arrived = [json.loads(line)["id"] for line in morgue.crew.lines()]
    assert set(arrived) == set(morgue.good)


@pytest.mark.parametrize("number", PASSES)
@pytest.mark.parametrize("name", POINTS)
def test_kill(morgue, name, number):
    m = morgue()
    m.publish(48)
    m.die(f"{name}:kill:{number}")
    m.drain()
    assert expect_dead(m) <= m.killed_with


@pytest.mark.parametrize("name", POINTS)
def test_kill_after_a_requeue(morgue, name):
    """They fail again, and the relay dies again: they arrive again."""
    m = morgue()
    m.publish(24)
    m.drain()
    expect_dead(m)
    m.requeue()
    m.die(f"{name}:kill:2")
    m.drain()
    assert expect_dead(m, times=2) <= m.killed_with


def test_each_successor_dies(morgue, rng):
    m = morgue(lanes=2)
    m.publish(200)
    for _ in range(8):
        m.die(f"{rng.choice(POINTS)}:kill:{rng.randrange(1, 6)}")
    m.drain()
    assert expect_dead(m) <= m.killed_with


@pytest.mark.parametrize("name", POINTS)
def test_the_other_relay_takes_over(morgue, name):
    """Two at once share the lanes of both targets; one dies, the other one does its work."""
    m = morgue(lanes=4)
    other = m.start()
    until(lambda: m.shop.held_by(other), "the first relay to hold all lanes")
    m.publish(100)
    victim = m.start(failpoint=f"{name}:kill:2")
    until(lambda: m.shop.lanes_shown() and (victim.dead or not m.shop.held_by(other)), "the second one to get some")
    m.publish(300)
    assert victim.wait() == -signal.SIGKILL, victim.log()
    until(lambda: {e["id"] for e in m.dead()} >= set(m.bad), "every dead letter")
    other.end()
    m.drain()
    expect_dead(m)


# before_commit: it would keep the database locked in its sleep
@pytest.mark.parametrize("name", [name for name in POINTS if name != "before_commit"])
def test_who_sleeps_past_its_lease(morgue, name):
    """It wakes up with failures that are not its own any more: void here and at the dead letter."""
    m = morgue()
    sleeper = m.sleep(f"{name}:stop:3")
    other = m.start()
    until(lambda: {e["id"] for e in m.dead()} >= set(m.bad), "every dead letter, by the other one")
    sleeper.signal(signal.SIGCONT)
    sleeper.end()
    other.end()
    m.drain()
    expect_dead(m)
