# SPDX-License-Identifier: Apache-2.0
"""Numbers that are given again: lanes are refused until outbox realign, and nothing is lost. tests/system/postgres/test_rebase.py
has more of PostgreSQL's."""
import sqlite3

import pytest
from shell import end, until

REFUSED = "run: outbox realign"
TO = ("relay", "--to", "events=file:out.jsonl")
ADD = "INSERT INTO outbox_message (id, type, payload) VALUES (?, 't', '{}')"


def publish(shop, *names):
    with shop.db() as db:
        db.executemany(ADD, [(name,) for name in names])


def numbers(first, last):
    return [f"m{n}" for n in range(first, last + 1)]


def arrived(shop):
    return [line["id"] for line in shop.lines()]


def set_back(shop):
    with shop.db() as db:
        db.execute("DELETE FROM sqlite_sequence" if shop.url.startswith("sqlite:") else
                   "SELECT setval('outbox_message_seq_seq', 1, false)")


def delivered_and_purged(shop, last=20):
    publish(shop, *numbers(1, last))
    shop.run(*TO, "--until-idle")
    shop.run("purge", "--delivered-before", "0s")


def doctor(shop):
    """What it says, as if no line were broken."""
    return " ".join(shop.run("doctor", code=None).out.split())


def expect_refused(shop, names):
    assert REFUSED in shop.run("status").out.replace("\n  ", " ")
    assert REFUSED in doctor(shop)
    assert REFUSED in shop.run("purge", "--delivered-before", "0s", code=None).err
    assert REFUSED in shop.run("purge", "--delivered-before", "0s", "--dry-run", code=None).err
    listed = shop.run("list", "--json", "--limit", "1000").json["deliveries"]
    assert [(one["id"], one["state"]) for one in listed if one["id"] in names] == [(name, "pending") for name in names]
    with shop.db() as db:
        seen = db.execute("SELECT id, state FROM outbox_delivery ORDER BY seq").fetchall()
    assert [tuple(one) for one in seen if one[0] in names] == [(name, "pending") for name in names]


def expect_repaired(shop, names, before):
    assert len(arrived(shop)) == before
    shop.run("realign", "--dry-run")
    expect_refused(shop, names)
    assert "come first" in shop.run("realign", "--yes").out.replace("\n  ", " ")
    assert "Every position is correct" in shop.run("realign", "--yes").out
    shop.run(*TO, "--until-idle")
    assert arrived(shop)[before:] == names
    publish(shop, "after")
    shop.run(*TO, "--until-idle")
    assert arrived(shop)[-1] == "after"
    assert REFUSED not in doctor(shop)


def test_the_former_name_works_the_same(shop):
    delivered_and_purged(shop)
    set_back(shop)
    plans = [shop.run(name, "--dry-run", "--json").json for name in ("realign", "rebase")]
    assert plans[0] == plans[1] and plans[0]["lanes"] and plans[0]["reason"]
    assert "outbox realign" not in plans[0]["reason"]
    assert shop.run("rebase", "--help").out == shop.run("realign", "--help").out
    assert "outbox realign: " in shop.run("rebase", code=10).err
    assert "rebase" not in [c["name"] for c in shop.run("help", "--json").json["commands"]]
    shop.run("rebase", "--yes")
    assert shop.run("audit", "--json").json["audit"][0]["action"] == "rebase"


def test_when_nothing_shows_it_any_more(shop):
    """The lane was refused, then somebody put the counter right: it is refused still, and realign says why."""
    delivered_and_purged(shop)
    set_back(shop)
    assert shop.run(*TO, "--until-idle", code=None).code != 0
    with shop.db() as db:
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox_message', 20)" if shop.url.startswith("sqlite:") else
                   "SELECT setval('outbox_message_seq_seq', 20)")
    assert REFUSED in shop.run(*TO, "--until-idle", code=None).err
    reason = shop.run("realign", "--dry-run", "--json").json["reason"]
    assert reason.startswith("target events, lane 0") and "run: outbox" not in reason
    shop.run("realign", "--yes")
    publish(shop, "after")
    shop.run(*TO, "--until-idle")
    assert arrived(shop)[-1] == "after"


def test_while_a_relay_runs(shop):
    delivered_and_purged(shop)
    relay = shop.start(*TO)
    until(lambda: shop.run("status", "--json").json["targets"][0]["lanes"][0]["live"], "the relay to hold its lane")
    set_back(shop)
    publish(shop, *numbers(101, 105))
    until(lambda: REFUSED in shop.run("status", "--json").out, "the lane to be refused")
    publish(shop, *numbers(106, 130))
    expect_refused(shop, numbers(101, 130))
    assert "lane.back" not in end(relay)[2]
    expect_repaired(shop, numbers(101, 130), 20)


def test_while_none_runs(shop):
    delivered_and_purged(shop)
    set_back(shop)
    publish(shop, *numbers(101, 130))
    assert shop.run(*TO, "--until-idle", code=None).code != 0
    expect_repaired(shop, numbers(101, 130), 20)


def test_a_message_that_stayed_hides_nothing(shop):
    """Behind a failed message that is kept, everything was purged."""
    publish(shop, *numbers(1, 5))
    shop.insert(id="bad", payload="{broken")
    publish(shop, *numbers(6, 20))
    shop.run(*TO, "--until-idle", code=None)
    shop.run("purge", "--delivered-before", "0s")
    with shop.db() as db:
        assert [one[0] for one in db.execute("SELECT id FROM outbox_message").fetchall()] == ["bad"]
        db.execute("DELETE FROM sqlite_sequence" if shop.url.startswith("sqlite:") else
                   "SELECT setval('outbox_message_seq_seq', 6)")
    publish(shop, *numbers(101, 130))
    assert shop.run(*TO, "--until-idle", code=None).code != 0
    expect_repaired(shop, numbers(101, 130), 20)


@pytest.mark.sqlite
def test_rows_that_are_left_keep_their_numbers(shop):
    """SQLite continues after the last row: nothing is given again, so nothing is refused."""
    publish(shop, *numbers(1, 20))
    shop.run(*TO, "--until-idle")
    set_back(shop)
    publish(shop, *numbers(21, 30))
    shop.run(*TO, "--until-idle")
    assert arrived(shop) == numbers(1, 30)


@pytest.mark.sqlite
def test_a_log_that_lost_its_end(shop):
    """A part of an older copy: no purge has noted what was there, so the refusal does, before others get the numbers."""
    publish(shop, *numbers(1, 20))
    shop.run(*TO, "--until-idle")
    with shop.db() as db:
        keep = db.execute("SELECT sql FROM sqlite_master WHERE name = 'outbox_message_keep'").fetchone()[0]
        db.execute("DROP TRIGGER outbox_message_keep")
        db.execute("DELETE FROM outbox_message WHERE seq > 10")
        db.execute(keep)
        db.execute("UPDATE sqlite_sequence SET seq = 10")
    assert shop.run(*TO, "--until-idle", code=None).code != 0
    publish(shop, *numbers(101, 130))
    assert shop.run(*TO, "--until-idle", code=None).code != 0
    expect_repaired(shop, numbers(101, 130), 20)


@pytest.mark.sqlite
def test_truncate_is_known_as_well(shop):
    publish(shop, *numbers(1, 20))
    shop.run(*TO, "--until-idle")
    shop.run("truncate", "--yes")
    set_back(shop)
    publish(shop, *numbers(101, 130))
    assert shop.run(*TO, "--until-idle", code=None).code != 0
    expect_repaired(shop, numbers(101, 130), 20)


@pytest.mark.sqlite
@pytest.mark.parametrize("seq", [-5, 0, 9223372036854775807])
def test_seq_is_given_by_the_log(shop, seq):
    with shop.db() as db:
        with pytest.raises(sqlite3.DatabaseError, match="seq is given by the log"):
            db.execute("INSERT INTO outbox_message (seq, type, payload) VALUES (?, 't', '{}')", (seq,))
        db.execute("INSERT INTO outbox_message (id, type, payload) VALUES ('a', 't', '{}'), ('b', 't', '{}')")
        # one that is left out has taken a number
        db.execute("INSERT INTO outbox_message (id, type, payload) VALUES ('a', 't', '{}'), ('c', 't', '{}')"
                   " ON CONFLICT (id) DO NOTHING")
    shop.run(*TO, "--until-idle")
    assert arrived(shop) == ["a", "b", "c"]


@pytest.mark.sqlite
def test_doctor_looks_at_the_sequence(shop):
    publish(shop, "a", "b")
    with shop.db() as db:
        db.execute("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'outbox_message'")
    assert "sqlite_sequence says 1, but the log has message 2" in doctor(shop)
    with shop.db() as db:
        db.execute("UPDATE sqlite_sequence SET seq = 4611686018427387900 WHERE name = 'outbox_message'")
    assert "nothing can be published" in doctor(shop)


@pytest.mark.parametrize("lanes", ["4", "1"])
def test_lanes_changed_by_hand(bare, lanes):
    bare.run("init", "--lanes", "2")
    publish(bare, *numbers(1, 10))
    bare.run(*TO, "--until-idle")
    with bare.db() as db:
        db.execute("UPDATE outbox_meta SET value = ? WHERE name = 'lanes'", (lanes,))
    publish(bare, *numbers(11, 30))
    ran = bare.run(*TO, "--until-idle", code=None)
    assert ran.code != 0 and "outbox_meta says " + lanes in ran.err
    assert "outbox_meta says " + lanes in doctor(bare)
    assert len(arrived(bare)) == 10
    with bare.db() as db:
        db.execute("UPDATE outbox_meta SET value = '2' WHERE name = 'lanes'")
    bare.run(*TO, "--until-idle")
    assert sorted(arrived(bare)) == sorted(numbers(1, 30))
