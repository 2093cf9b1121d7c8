# SPDX-License-Identifier: Apache-2.0
"""SQLite: a new database and one that the version before made are the same after an upgrade, and stay readable."""
import hashlib
import pathlib
import subprocess

import pytest

from before import ROOT, before
from shell import Shop

SQL = pathlib.Path(ROOT) / "sql" / "sqlite"
# What people have: these files never change again. What comes later is a file of its own.
FROZEN = {
    "schema.sql": "54ba81cf4ef9e1d65b4b00374337b1543c2b8e68a86124bd6e9463d405916ca5",
    "v2.sql": "8cbacc186bf63bc23069f2d38eccfa5b523255d61aa3e1de4a95d0e27256b047",
    "v3.sql": "79d20a7f413a903f9bcebad520d52a973bf9a199cd4609e917e6e802a243ef54",
    "v4.sql": "52d957cd37830543f5d97a388dfc8de6727723f465672109bccb39f8393a5646",
    "v5.sql": "baf7cfc736eaac542e980c932d8c63b5f50400ba22517ba580b54d10ee14edcc",
    "v6.sql": "4f2e399df16a93c351b8f0064e4e49497f07c3557011d23b81780eb4899daa16",
}


@pytest.mark.parametrize("name", FROZEN)
def test_what_holds_data_never_changes(name):
    assert hashlib.sha256((SQL / name).read_bytes()).hexdigest() == FROZEN[name]


def shop_in(folder):
    folder.mkdir()
    return Shop(folder)


def outline(shop):
    """Every object with its text, every column as SQLite understands it, and what the outbox says it is."""
    with shop.db() as db:
        found = {(kind, name): (table, text) for kind, name, table, text in
                 db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")}
        for kind, name in list(found):
            if kind in ("table", "view"):
                found["columns", name] = db.execute(f'PRAGMA table_xinfo("{name}")').fetchall()
            if kind == "index":
                found["columns", name] = db.execute(f'PRAGMA index_xinfo("{name}")').fetchall()
        found["meta", ""] = sorted(db.execute("SELECT name, value FROM outbox_meta WHERE name <> 'store_id'"))
    return found


def test_new_and_upgraded_are_the_same(tmp_path):
    new, upgraded = shop_in(tmp_path / "new"), shop_in(tmp_path / "upgraded")
    before(upgraded).run("init")
    assert outline(upgraded)["meta", ""] == [("lanes", 1), ("min_reader", 1), ("schema", 1)]
    upgraded.run("upgrade")
    new.run("init")
    wanted, found = outline(new), outline(upgraded)
    assert len(wanted) > 50 and ("view", "outbox_delivery") in wanted and ("trigger", "outbox_detour_again") in wanted
    assert {at: (wanted.get(at), found.get(at)) for at in {*wanted, *found} if wanted.get(at) != found.get(at)} == {}
    upgraded.run("upgrade")
    assert outline(upgraded) == wanted


def sqlite3(shop, text):
    done = subprocess.run(["sqlite3", "-bail", "app.db"], input=text, cwd=shop.folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_what_sql_prints_is_what_an_upgrade_runs(tmp_path):
    new, one, two = (shop_in(tmp_path / name) for name in ("new", "one", "two"))
    new.run("init")
    for made in (one, two):
        before(made).run("init")
    with two.db() as db:  # as the program of version 2 left it, as far as it holds data
        db.executescript((SQL / "v2.sql").read_text() + "UPDATE outbox_meta SET value = 2 WHERE name = 'schema'")
    told = one.run("upgrade", "--check", code=2, people=False).out
    assert "CREATE TABLE outbox_amended" in told and "CREATE TABLE outbox_band" in told and "--check --sql" in told
    script = one.run("sql", "sqlite", "--from", "1", people=False).out
    assert one.run("upgrade", "--check", "--sql", code=2, people=False).out == script
    assert one.run("upgrade", "--check", "--json", code=2).json["sql"] == script
    for made, text in ((one, script), (two, two.run("sql", "sqlite", "--from", "2", people=False).out)):
        assert sqlite3(made, text) == (0, "")
        assert outline(made) == outline(new)
    code, err = sqlite3(one, script)
    assert code and "this is for an outbox of schema 1" in err
    assert outline(one) == outline(new)
    assert not new.run("upgrade", "--check", "--sql").out
    assert sqlite3(one, one.run("sql", "sqlite", "--drop", people=False).out) == (0, "")
    with one.db() as db:
        assert not db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'outbox%'").fetchall()


def test_doctor_asks_for_what_is_missing_and_an_upgrade_makes_it(tmp_path):
    shop = Shop(tmp_path)
    shop.run("init")
    whole = outline(shop)
    with shop.db() as db:
        db.execute("DROP TRIGGER outbox_message_keep")
    told = " ".join(shop.run("doctor", code=1).out.split())
    assert "3 of 4 triggers of outbox_message are there" in told and "outbox upgrade --store sqlite:" in told
    shop.run("upgrade", "--check")
    assert outline(shop) != whole
    shop.run("upgrade")
    assert outline(shop) == whole
    shop.run("doctor")


def test_the_view_of_deliveries_is_read_in_place(tmp_path):
    """The conditions that four of its parts share are theirs: the log is not gone through once for all that is asked."""
    shop = Shop(tmp_path)
    shop.run("init")
    with shop.db() as db:
        plan = [row[3] for row in db.execute("EXPLAIN QUERY PLAN SELECT * FROM outbox_delivery WHERE id = 'x'")]
    assert not {"CO-ROUTINE m", "MATERIALIZE m", "SCAN m"} & set(plan), plan
    assert len([step for step in plan if step.startswith("SEARCH m USING INDEX sqlite_autoindex_outbox_message_1 (id=?")]) == 4
    assert "SEARCH l USING PRIMARY KEY (target=? AND lane=?)" in plan


FAILING = {
    "insert": "INSERT INTO outbox_detour (target, seq, id, lane, state, attempts, last_error, last_status_at)"
              " VALUES ('events', 1, 'm1', 0, 'failed', 3, 'no', 7)",
    "update": "UPDATE outbox_detour SET state = 'failed', attempts = 3, last_error = 'no', last_status_at = 7 WHERE seq = 1",
}


@pytest.mark.parametrize("how", FAILING)
@pytest.mark.parametrize("recursive", ["OFF", "ON"])
def test_whichever_way_it_fails_it_is_one_row_and_one_dead_letter(tmp_path, how, recursive):
    """Counted, and returned, as the one row that the statement itself wrote."""
    shop = Shop(tmp_path)
    shop.run("init")
    with shop.db() as db:
        db.execute(f"PRAGMA recursive_triggers = {recursive}")
        for name, dead in (("events", "dead"), ("dead", None)):
            db.execute("INSERT INTO outbox_target (name, version, route, created_at, start_seq, dead_letter)"
                       " VALUES (?, 1, '', 0, 0, ?)", (name, dead))
        if how == "update":
            db.execute("INSERT INTO outbox_detour (target, seq, id, lane, state, why, last_status_at)"
                       " VALUES ('events', 1, 'm1', 0, 'pending', 'retry', 1)")
        done = db.execute(FAILING[how] + " RETURNING target, state")
        assert done.fetchall() == [("events", "failed")]
        assert db.execute("SELECT changes()").fetchone() == (1,)
        arrived = db.execute("SELECT seq, state, why, attempts, next_attempt_at, dead_target, dead_reason, dead_attempts, dead_at"
                             " FROM outbox_detour WHERE target = 'dead'").fetchall()
        assert arrived == [(1, "pending", "retry", 0, 7, "events", "no", 3, 7)]
        # failed already: not once more
        db.execute("UPDATE outbox_detour SET state = 'failed', attempts = 9 WHERE target = 'events'")
        assert db.execute("SELECT dead_attempts FROM outbox_detour WHERE target = 'dead'").fetchall() == [(3,)]
