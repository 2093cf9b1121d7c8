# SPDX-License-Identifier: Apache-2.0
"""People add columns of their own to outbox_message (a tenant, a shard): nothing of the outbox may mind."""
import pathlib
import re

import pytest

# names that the outbox's own views and functions use beside those of a message
NAMES = ("tenant", "target", "lane", "lanes", "state", "owner", "version", "max", "late", "pos", "low", "x", "types")


def add_columns(shop, table="outbox_message", names=NAMES):
    with shop.db() as db:
        for name in names:
            db.execute(f"ALTER TABLE {table} ADD COLUMN {name} text")


def states(shop):
    return sorted(row["state"] for row in shop.run("list", "--json").json["deliveries"])


def told(shop):
    return {f["subject"]: f["text"] for f in shop.run("doctor", "--json", code=None).json["findings"]}


def tour(shop, add):
    """Through detours, and everything that reads a message; add() comes before there is a target, or behind it."""
    good = [shop.insert(key=str(i)) for i in range(3)]
    add("before")
    failed = shop.fail(2)
    add("after")
    good.append(shop.insert(key="k0", tenant="acme"))  # behind one that failed
    shop.relay()
    assert states(shop) == ["delivered"] * 4 + ["failed"] * 2
    assert "order.placed" in shop.run("show", failed[0]).out
    shop.run("requeue", failed[0])
    shop.relay(code=1)
    assert shop.run("status", "--json").json["targets"][0]["failed"] == 2
    shop.run("discard", failed[0], "--reason", "wrong")
    waiting = shop.insert(tenant="acme")
    shop.run("defer", waiting, "--until", "2099-01-01T00:00:00Z")
    shop.relay()
    shop.run("redact", good[0], "--reason", "asked for")
    shop.run("redact", failed[0], "--reason", "asked for")
    shop.run("replay", "--target", "events", "--to", "file:again.jsonl", "--from-log", "--dry-run")
    with shop.db() as db:
        assert db.execute("SELECT count(*) FROM outbox_delivery").fetchall()[0][0] == 7
        assert db.execute("SELECT count(*) FROM outbox_failed").fetchall()[0][0] == 1
        assert db.execute("SELECT failed, deferred FROM outbox_backlog").fetchall()[0] == (1, 1)
    told_of = shop.run("purge", "--delivered-before", "0", "--archive", "old.jsonl.zst", "--json").json
    assert told_of["messages"] == 5
    shop.run("requeue", failed[1])
    shop.relay(code=1)
    assert states(shop) == ["failed", "pending"]
    assert len(shop.lines()) == 4


@pytest.mark.parametrize("when", ["before", "after"])
def test_columns_of_ones_own(shop, when):
    tour(shop, lambda now: now == "before" and when == "after" and add_columns(shop, names=("tenant",))
         or now == when and add_columns(shop, names=[n for n in NAMES if when == "before" or n != "tenant"]))
    assert "tenant" in told(shop)["columns"]


def test_columns_that_went_again(shop):
    add_columns(shop, names=("tenant", "shard"))
    shop.relay()
    with shop.db() as db:
        db.execute("ALTER TABLE outbox_message DROP COLUMN shard")
    tour(shop, lambda now: None)
    assert "shard" not in told(shop)["columns"]


def test_no_star_where_tables_meet():
    """A star is as wide as its table: never for two tables that people may widen apart, nor in SQLite's views."""
    folder = pathlib.Path(__file__).parents[3] / "sql"
    stars = re.compile(r"(SELECT \*|k\.\*)\s+FROM\s+outbox_kept|INSERT INTO outbox_(message|kept)\s+(AS \w+\s+)?SELECT|"
                       r"SELECT \*[^;]*?UNION ALL\s+SELECT \* FROM outbox_(?!audit)")
    for path in sorted(folder.glob("*/*.sql")):
        text = re.sub(r"--.*", "", path.read_text())
        assert not stars.search(text), f"{path}: name the columns: {stars.search(text)[0]}"
        assert path.parent.name != "sqlite" or not re.search(r"\w\.\*|SELECT \*", text), f"{path}: name the columns"
