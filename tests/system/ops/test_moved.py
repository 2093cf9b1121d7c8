# SPDX-License-Identifier: Apache-2.0
"""A SQLite file is moved or replaced under a running relay: it says so, and goes on when the file is back."""
import re
import sqlite3

import pytest

from console import Console
from shell import until

QUICK = "relay: { poll: 50ms, lease: 900ms, publish_timeout: 300ms }\n"


@pytest.fixture
def relay(tmp_path):
    console = Console(tmp_path, more=QUICK).up()
    yield console
    console.down()


def log(c):
    return (c.folder / "relay.log").read_text()


def rules(c):
    return {f["rule"] for f in c.get("/api/alerts").json["findings"]}


def see_it_away(c):
    until(lambda: c.ask("GET", "/readyz", token=None).status == 503, "a relay that is not ready")
    until(lambda: "source_down" in rules(c), "the alert")
    until(lambda: re.search(r"alert\.fired .*\bsource_down \(", log(c)), "the alert in the log")
    until(lambda: re.search(r"store\.away .*shop\.db.*moved, removed or replaced", log(c)), f"store.away in {log(c)}")


def see_it_back(c):
    until(lambda: c.ask("GET", "/readyz", token=None).status == 200, "readiness")
    until(lambda: not rules(c), "the alert's end")
    until(lambda: "store.back" in log(c), "store.back")


def test_moved_and_put_back(relay):
    first = relay.insert()
    until(lambda: [line["id"] for line in relay.lines("events.jsonl")] == [first], "a delivery")
    away = relay.folder / "away.db"
    # an application that has it open as well, and commits what only the -wal has
    app = sqlite3.connect(relay.path, isolation_level=None)
    app.execute("SELECT count(*) FROM outbox_message").fetchone()
    relay.path.rename(away)
    see_it_away(relay)
    app.execute("INSERT INTO outbox_message (id, type, payload) VALUES ('meanwhile', 'a', '{}')")
    said = relay.run("init", "--config", "outbox.yaml", code=3).err
    assert "put it back beside the -wal" in said and not relay.path.exists()
    assert [line["id"] for line in relay.lines("events.jsonl")] == [first]
    away.rename(relay.path)
    see_it_back(relay)
    last = relay.insert()
    until(lambda: len(relay.lines("events.jsonl")) == 3, "the deliveries")
    assert [line["id"] for line in relay.lines("events.jsonl")] == [first, "meanwhile", last]
    assert app.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    app.close()


def test_replaced_by_a_copy(relay):
    """The relay goes on with the file that is there now, not with the one it had open."""
    first = relay.insert()
    until(lambda: len(relay.lines("events.jsonl")) == 1, "a delivery")
    copy = relay.folder / "copy.db"
    with relay.db() as db:
        db.execute(f"VACUUM INTO '{copy}'")
    relay.path.rename(relay.folder / "old.db")
    see_it_away(relay)
    for file in relay.folder.glob("shop.db-*"):
        file.unlink()
    with sqlite3.connect(copy) as db:
        db.execute("PRAGMA journal_mode = WAL")
    copy.rename(relay.path)
    see_it_back(relay)
    last = relay.insert()
    until(lambda: relay.lines("events.jsonl")[-1]["id"] == last, "a delivery from the new file")
    # the copy may be older than the receipt of the first
    assert {line["id"] for line in relay.lines("events.jsonl")} == {first, last}
