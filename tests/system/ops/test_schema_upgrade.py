# SPDX-License-Identifier: Apache-2.0
"""From schema version 1, with deliveries in every state, to this program's; nothing is lost or sent twice."""
import os
import sys
import time

import pytest

SOURCE = os.environ.get("OUTBOX_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..", ".."))
sys.path.insert(0, os.path.join(SOURCE, "tests", "system", "cli"))  # there are two pgshops
import pgshop  # noqa: E402
from before import before  # noqa: E402
from shell import Shop  # noqa: E402


def publish(db):
    for i in range(1, 7):
        db.execute(f"INSERT INTO outbox_message (id, type, key, payload) VALUES ('m{i}', 'order.placed', 'k{i}', '{{}}')")


def old_sqlite(folder):
    """As a relay of that time left it: m1 delivered, m2 failed, m3 waiting, m4 and m5 in flight, m6 new."""
    shop = Shop(folder)
    before(shop).run("init", "--lanes", "1")
    now = int(time.time() * 1e6)
    with shop.db() as db:
        publish(db)
        db.execute("INSERT INTO outbox_target (name, version, route, created_at, start_seq) VALUES ('events', 1,"
                   " '{\"types\":[],\"kind\":\"any\",\"published\":false}', ?, 0)", (now,))
        db.execute("INSERT INTO outbox_route (target, version, type_glob) VALUES ('events', 1, '*')")
        db.execute("INSERT INTO outbox_lane (target, lane, owner, lease_until) VALUES ('events', 0, 'gone', 1)")
        receipt = ("INSERT INTO outbox_receipt (target, lane, n, token, owner, settled_at, route_version, from_seq, pos,"
                   " claim_end, claim_count, claim_seq, claim_last, delivered, failed, retried, delivered_total,"
                   " retried_total) VALUES ('events', 0, ?, ?, 'gone', ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        db.execute(receipt, (1, 11, now, 0, 0, 3, 3, 1, 3, 0, 0, 0, 0, 0))
        db.execute(receipt, (2, 12, now, 0, 3, 5, 2, 4, 5, 1, 1, 1, 1, 1))
        detour = ("INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, attempts, next_attempt_at,"
                  " last_error, last_status_at, owner, n) VALUES ('events', ?, ?, ?, 0, ?, ?, ?, ?, 'no', ?, 'gone', 2)")
        db.execute(detour, (2, "m2", "k2", "failed", None, 10, None, now))
        db.execute(detour, (3, "m3", "k3", "pending", "retry", 1, now, now))
    return shop


OUTCOMES = "ROW({0}, {1}, {2}, {3}, '{{{4}}}', '{{{5}}}', '{{{6}}}', '{{{7}}}', '{{{8}}}', '{{{9}}}', '{{{10}}}')::outbox_outcomes"


def old_postgres(folder):
    """The same, by the functions of that time."""
    shop = pgshop.PgShop(folder)
    before(shop).run("init", "--lanes", "1")
    for i in range(1, 7):
        shop.sql(f"INSERT INTO outbox_message (id, type, key, payload) VALUES ('m{i}', 'order.placed', 'k{i}', '{{}}')")
    shop.sql("SELECT outbox_target_put('events', '{\"types\":[],\"kind\":\"any\",\"published\":false}', '{}', NULL, false,"
             " false, false, 1, 1, NULL)")
    shop.sql("SELECT outbox_lease('events', 'gone', 1000, 1, false, NULL, 0, NULL)")
    shop.sql("SELECT outbox_take('events', 0, 'gone', 2, NULL)")
    none = OUTCOMES.format(0, 0, 0, 0, "", "", "", "", "", "", "")
    shop.sql(f"SELECT * FROM outbox_advance('events', 0, 'gone', 2, 2, 3, 1, {none}, 3, 1000000, NULL)")
    some = OUTCOMES.format(3, 1, 3, 3, "2,3", "6,3", "10,1", "0,1000000", "NULL,NULL", "f,f", "no,no")
    shop.sql(f"SELECT * FROM outbox_advance('events', 0, 'gone', 3, 3, 4, 1, {some}, 2, 1000000, NULL)")
    return shop


@pytest.fixture(params=["sqlite", "postgres"])
def old(request, tmp_path):
    if request.param == "sqlite":
        yield old_sqlite(tmp_path)
        return
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    shop = old_postgres(tmp_path)
    yield shop
    shop.drop()


def states(shop):
    return {d["id"]: d.get("why") or d["state"] for d in shop.run("list", "--json", "--limit", 100).json["deliveries"]}


def test_an_upgrade_keeps_every_state(old):
    refused = old.run("status", code=None)
    assert refused.code != 0 and "outbox upgrade" in refused.err
    assert "1" in old.run("upgrade", "--check", code=None, people=False).out
    assert "outbox upgrade" in old.run("status", code=None).err  # it only looked
    old.run("upgrade")
    assert "nothing to do" in old.run("upgrade").out
    found = states(old)
    assert found["m1"] == "delivered" and found["m2"] == "failed" and found["m3"] == "retry"
    assert found["m4"] == found["m5"] == "sending" and found["m6"] == "new"
    # the owner that was at work is gone: its messages go again, the failed one waits for a person
    old.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=None)
    sent = (old.folder / "out.jsonl").read_text()
    assert [i for i in range(1, 7) if f'"id":"m{i}"' in sent] == [3, 4, 5, 6]
    old.run("requeue", "m2")
    old.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert set(states(old).values()) == {"delivered"}


def test_what_version_2_brings_works_after_it(old):
    old.run("upgrade")
    old.run("requeue", "m2")
    args = ["--to", "dead=file:dead.jsonl", "--match", "dead=-", "--start", "dead=oldest", "--dead-letter", "events=dead"]
    old.run("publish", "--type", "t", "--id", "late", "--data", "{}", "--expires", "2020-01-01T00:00:00Z")
    old.run("relay", "--to", "events=file:out.jsonl", *args, "--until-idle", code=None)
    assert '"id":"late"' in (old.folder / "dead.jsonl").read_text()
    old.run("redact", "m1", "--reason", "asked for")
    assert "redacted" in old.run("show", "m1", "--raw-payload").out


def told(shop, sql):
    try:
        shop.sql(sql)
    except Exception as e:  # pylint: disable=broad-except
        return str(e)
    return ""


def closed_postgres(shop):
    for column, value in (("xid", "'5'::xid8"), ("seq", "900")):
        made_up = f"INSERT INTO outbox_message ({column}, type, payload) OVERRIDING SYSTEM VALUE VALUES ({value}, 't', '1')"
        assert told(shop, made_up), column
    assert "never changes" in told(shop, "UPDATE outbox_message SET payload = '1'")
    by_hand = "BEGIN; SET LOCAL outbox.redact = '1'; UPDATE outbox_message SET {} WHERE seq = {}; COMMIT"
    tombstone = "payload = '{\"redacted\":true}'"
    for change, seq in ((f"type = 'x', {tombstone}", 1), ("payload = '1'", 1), (f"{tombstone}, key = 'xy'", 1), (tombstone, 2)):
        assert told(shop, by_hand.format(change, seq)), change
    kept = "INSERT INTO outbox_amended (seq, n, at, payload) SELECT 1, 1, now(), {} FROM outbox_message WHERE seq = 1; "
    for was, change in (("'x'", "payload = '1'"), ("payload", "payload = '1', key = 'other'"), ("payload", "payload = '1', topic = 'x'")):
        told(shop, "ROLLBACK")
        assert "never changes" in told(shop, by_hand.format(change, 1).replace("UPDATE", kept.format(was) + "UPDATE")), change


def test_the_log_is_as_closed_as_before(old):
    """One kind of change is let through, by the program itself; nothing that people could say by hand."""
    old.run("upgrade")
    if isinstance(old, pgshop.PgShop):
        closed_postgres(old)
        return
    with old.db() as db:
        for say in ("SELECT 1", "INSERT INTO outbox_meta VALUES ('redact', 1)", "UPDATE outbox_meta SET name = 'amend' WHERE name = 'redact'"):
            db.execute(say)
            for change, seq in (("payload = '1'", 1), ("type = 'x', payload = '{\"redacted\":true}'", 1),
                                ("payload = '{\"redacted\":true}'", 2)):
                with pytest.raises(Exception, match="never changes"):
                    db.execute(f"UPDATE outbox_message SET {change} WHERE seq = {seq}")
        db.execute("INSERT INTO outbox_amended (seq, n, at, payload) SELECT seq, 1, 1, payload FROM outbox_message WHERE seq = 1")
        for change in ("payload = '1', key = 'other'", "payload = '1', topic = 'x'", "payload = '1', id = 'x'"):
            with pytest.raises(Exception, match="never changes"):
                db.execute(f"UPDATE outbox_message SET {change} WHERE seq = 1")
