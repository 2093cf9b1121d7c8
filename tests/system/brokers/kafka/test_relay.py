# SPDX-License-Identifier: Apache-2.0
"""The whole relay, from SQLite to a broker that is killed again and again: nothing is lost, and a key keeps its order."""
import os
import random
import sqlite3
import subprocess
import threading
import time

from conftest import wait_until

ROUNDS = 20 if os.environ.get("OUTBOX_TEST_ALL") else 5
OUTBOX = os.environ.get("OUTBOX")


class Publisher(threading.Thread):
    """Writes messages of some keys, one transaction each, until it is told to stop."""

    def __init__(self, path):
        super().__init__()
        self.path, self.ended, self.count = path, threading.Event(), 0

    def run(self):
        database = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        while not self.ended.is_set():
            database.execute("BEGIN IMMEDIATE")
            for _ in range(random.randrange(1, 20)):
                self.count += 1
                database.execute("INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', ?, ?)",
                                 (f"key-{self.count % 13}", f'{{"n": {self.count}}}'))
            database.execute("COMMIT")
            time.sleep(0.01)
        database.close()


def test_a_missing_topic_does_not_hold_what_comes_before(broker, tmp_path):
    """Three of one key, the second for a topic that is not there: the first is delivered, the third waits for the second."""
    topic, missing = broker.topic("before"), "not-yet"
    path = str(tmp_path / "shop.db")
    store = "sqlite:" + path
    subprocess.run([OUTBOX, "init", "--store", store], check=True, stdout=subprocess.DEVNULL)
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    for kind, where in (("first", topic), ("second", missing), ("third", topic)):
        database.execute("INSERT INTO outbox_message (type, key, topic, payload) VALUES (?, 'k', ?, '{}')", (kind, where))
    relay = subprocess.Popen([OUTBOX, "relay", "--store", store, "--to",
                              f"events=kafka://127.0.0.1:{broker.port}/{{topic}}"])
    try:
        wait_until(lambda: [r.headers["ce_type"] for r in broker.read(topic)] == ["first"], 30)
        charged = "SELECT m.type, d.attempts > 0 FROM outbox_delivery d JOIN outbox_message m USING (seq) ORDER BY seq"
        wait_until(lambda: ("second", 1) in database.execute(charged).fetchall(), 30)
        assert ("third", 1) not in database.execute(charged).fetchall()
        broker.topic(missing)
        wait_until(lambda: [r.headers["ce_type"] for r in broker.read(topic)] == ["first", "third"])
        assert [r.headers["ce_type"] for r in broker.read(missing)] == ["second"]
    finally:
        relay.terminate()
        assert relay.wait(timeout=60) == 0


def test_broker_killed_under_load(broker, tmp_path):
    topic = broker.topic("load", partitions=4)
    path = str(tmp_path / "shop.db")
    store = "sqlite:" + path
    subprocess.run([OUTBOX, "init", "--store", store], check=True, stdout=subprocess.DEVNULL)
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        relay = subprocess.Popen([OUTBOX, "relay", "--store", store, "--to",
                                  f"events=kafka://127.0.0.1:{broker.port}/{topic}"], stderr=log)
    publisher = Publisher(path)
    publisher.start()
    database = sqlite3.connect(path, timeout=60)

    def delivered():
        return database.execute("SELECT coalesce(sum(delivered), 0) FROM outbox_receipt").fetchone()[0]

    try:
        for _ in range(ROUNDS):
            before = delivered()
            wait_until(lambda: delivered() > before)  # each kill meets a relay at work
            time.sleep(random.uniform(0.2, 1.0))
            broker.kill()
            time.sleep(random.uniform(0.0, 0.5))
            broker.start()
            broker.await_ready()
        publisher.ended.set()
        publisher.join()
        pending = "SELECT count(*) FROM outbox_delivery WHERE state <> 'delivered'"
        wait_until(lambda: database.execute(pending).fetchone()[0] == 0)
        relay.terminate()
        assert relay.wait(timeout=60) == 0
    finally:
        publisher.ended.set()
        if relay.poll() is None:
            relay.kill()
        print((tmp_path / "log").read_text())
    written = database.execute("SELECT id, key FROM outbox_message ORDER BY seq").fetchall()
    arrived, first = broker.read(topic), {}
    for record in arrived:
        first.setdefault(record.id, record)
    print(f"{len(written)} messages, {len(arrived) - len(first)} twice, {ROUNDS} kills")
    assert len(written) == publisher.count
    assert set(first) == {ident for ident, _ in written}
    for key in {key for _, key in written}:
        mine = sorted((r for r in first.values() if r.key == key), key=lambda r: r.offset)
        assert [r.id for r in mine] == [ident for ident, k in written if k == key]
    charged = database.execute("SELECT count(*) FROM outbox_delivery WHERE attempts > 0").fetchone()[0]
    assert charged == 0, "an outage was charged to messages"
