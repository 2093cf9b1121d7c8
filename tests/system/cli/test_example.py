# SPDX-License-Identifier: Apache-2.0
"""The promise on the first page: what was committed is delivered, what was rolled back never was."""
import subprocess

import pytest


def sqlite3_shell(shop, sql):
    done = subprocess.run(["sqlite3", "app.db", sql], cwd=shop.folder, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr


ORDER = """BEGIN; INSERT INTO orders VALUES ({n}, 9.5); INSERT INTO outbox_message (type, key, payload)
           VALUES ('order.placed', '{n}', '{{"n":{n}}}'); {end}"""


@pytest.mark.sqlite
def test_committed_orders_are_delivered_and_rolled_back_ones_are_not(shop):
    for n in range(1, 9):
        sqlite3_shell(shop, ORDER.format(n=n, end="ROLLBACK" if n % 4 == 0 else "COMMIT"))
    shop.relay()
    events = shop.lines()
    assert [e["data"]["n"] for e in events] == [1, 2, 3, 5, 6, 7]
    assert {e["specversion"] for e in events} == {"1.0"}
    assert {e["type"] for e in events} == {"order.placed"}
    status = shop.run("status", "--json").json
    target = status["targets"][0]
    assert status["messages"] == 6
    assert (target["name"], target["delivered"], target["pending"], target["failed"]) == ("events", 6, 0, 0)


def test_a_savepoint_rolled_back_publishes_nothing(shop):
    with shop.db() as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO outbox_message (type, payload) VALUES ('kept', '1')")
        db.execute("SAVEPOINT s")
        db.execute("INSERT INTO outbox_message (type, payload) VALUES ('undone', '2')")
        db.execute("ROLLBACK TO s")
        db.execute("COMMIT")
    shop.relay()
    assert [e["type"] for e in shop.lines()] == ["kept"]


def test_a_second_relay_delivers_nothing_twice(shop):
    shop.insert()
    shop.relay()
    shop.relay()
    assert len(shop.lines()) == 1


@pytest.mark.sqlite
def test_views_can_be_queried_with_the_plain_shell(shop):
    message = shop.fail()[0]
    done = subprocess.run(["sqlite3", "app.db", "SELECT id, target FROM outbox_failed"],
                          cwd=shop.folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{message}|events"
