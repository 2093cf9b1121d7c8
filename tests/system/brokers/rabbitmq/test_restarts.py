# SPDX-License-Identifier: Apache-2.0
"""The whole way, database to queue, while the broker is killed again and again: nothing lost, order per key, nothing charged."""
import contextlib
import json
import os
import sqlite3
import subprocess
import time

OUTBOX = os.environ.get("OUTBOX_BIN", "outbox")
ROUNDS = 20 if os.environ.get("OUTBOX_TEST_ALL") else 5
KEYS = 25


def publish(path, first, count):
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as db, db:
        db.executemany("INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', ?, ?)",
                       [(f"key-{n % KEYS}", json.dumps({"n": n})) for n in range(first, first + count)])
    return first + count


def delivered(path):
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as db:
        return db.execute("SELECT coalesce(sum(delivered), 0) FROM outbox_receipt").fetchone()[0]


def await_delivered(path, goal):
    end = time.monotonic() + 60
    while delivered(path) < goal:
        assert time.monotonic() < end, "the relay does not deliver"
        time.sleep(.005)


def run(*words, **more):
    return subprocess.run([OUTBOX, *map(str, words)], check=True, capture_output=True, timeout=240, **more).stdout


def judge(arrived, total):
    """Nothing lost, and each key's first deliveries in order. Returns how many came more than once."""
    first = {}
    for properties, body in arrived:
        first.setdefault(json.loads(body)["n"], properties.headers["cloudEvents:partitionkey"])
    assert sorted(first) == list(range(total)), f"lost: {sorted(set(range(total)) - set(first))[:10]}"
    for key in range(KEYS):
        order = [n for n, k in first.items() if k == f"key-{key}"]
        assert order == sorted(order), f"key-{key} out of order"
    return len(arrived) - len(first)


def test_killed_under_load(broker, name, tmp_path):
    path = tmp_path / "shop.db"
    store = f"sqlite:{path}"
    broker.make(name, name, x_queue_type="quorum")
    broker.settle()
    run("init", "--store", store)
    target = "events=" + broker.url(f"?exchange={name}")
    total = publish(path, 0, 2000)
    with open(tmp_path / "log", "wb") as log:
        relay = subprocess.Popen([OUTBOX, "relay", "--store", store, "--to", target], stdout=log, stderr=log)
    try:
        for _ in range(ROUNDS):
            before = delivered(path)
            total = publish(path, total, 1000)
            await_delivered(path, before + 100)  # each kill meets a relay at work
            broker.kill()
            total = publish(path, total, 50)
            broker.start()
        relay.terminate()
        assert relay.wait(60) == 0
    finally:
        relay.kill()
        relay.wait()
    run("relay", "--store", store, "--to", target, "--until-idle")
    twice = judge(broker.take(name), total)
    print(f"{total} messages, {ROUNDS} kills: 0 lost, {twice} twice")
    with contextlib.closing(sqlite3.connect(path)) as db:
        # an outage charges nobody
        assert db.execute("SELECT coalesce(max(attempts), 0), count(*) FROM outbox_delivery"
                          " WHERE state <> 'delivered'").fetchone() == (0, 0)
        assert db.execute("SELECT coalesce(max(attempts), 0) FROM outbox_delivery").fetchone() == (0,)


def test_bad_messages_among_good_ones(broker, name, tmp_path):
    """A queue that is missing for one type: its messages fail in the end, and all others pass."""
    path = tmp_path / "shop.db"
    store = f"sqlite:{path}"
    broker.make(name, name, bind="order.placed")
    run("init", "--store", store)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?)",
                       [("order.lost" if n % 7 == 6 else "order.placed", f"key-{n}", json.dumps({"n": n}))
                        for n in range(100)])
    done = subprocess.run([OUTBOX, "relay", "--store", store, "--to", "events=" + broker.url(f"?exchange={name}"),
                           "--once"], check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    assert sorted(json.loads(body)["n"] for _, body in broker.take(name)) == [n for n in range(100) if n % 7 != 6]
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT state, last_error FROM outbox_delivery WHERE state <> 'delivered'").fetchall()
    assert len(rows) == 14 and all("unroutable" in error for _, error in rows), rows[:2]
