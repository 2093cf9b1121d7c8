# SPDX-License-Identifier: Apache-2.0
"""init, upgrade, drop, truncate, target, doctor."""
import subprocess
import sys

import pytest


@pytest.mark.sqlite
def test_init_makes_an_outbox_and_says_that_it_switches_to_wal(bare):
    ran = bare.run("init")
    assert "created an outbox" in ran.out and "WAL mode" in ran.out
    with bare.db() as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert "outbox_message" in bare.tables()


def test_init_again_changes_nothing(shop):
    message = shop.insert()
    assert "already here" in shop.run("init").out
    assert shop.run("init", "--json").json["created"] is False
    assert shop.run("show", message, "--json").json["message"]["id"] == message


def test_init_with_lanes(bare):
    told = bare.run("init", "--lanes", "4", "--json").json
    assert (told["created"], told["lanes"]) == (True, 4)
    assert "was created with 4, not 8" in bare.run("init", "--lanes", "8", code=2).err
    schema = bare.run("upgrade", "--check", "--json").json["to"]
    assert f"{bare.name}: the outbox is already here (schema {schema}, 4 lanes)" in bare.run("init").out


def test_upgrade(shop):
    assert "nothing to do" in shop.run("upgrade").out
    told = shop.run("upgrade", "--check", "--json").json
    assert told["from"] == told["to"] and told["changed"] is False


def test_upgrade_without_an_outbox(bare):
    with bare.db() as db:
        db.execute("CREATE TABLE t (x INTEGER)")
    assert bare.run("upgrade", code=7).err


def test_the_stores_name_can_be_given(shop):
    told = shop.run("status", "--json", "--store", shop.env["OUTBOX_STORE"] + "?name=shop").json
    assert told["store"] == "shop"


def test_a_newer_schema_is_refused(shop):
    with shop.db() as db:
        db.execute("UPDATE outbox_meta SET value = '99' WHERE name = 'schema'")
        db.execute("UPDATE outbox_meta SET value = '99' WHERE name = 'min_reader'")
        changed = db.execute("SELECT count(*) FROM outbox_meta WHERE value = '99'").fetchone()[0]
    assert changed == 2
    ran = shop.run("publish", "--type", "t", "--data", "1", code=7)
    assert "99" in ran.err or "newer" in ran.err


def test_drop_wants_to_be_confirmed(shop):
    shop.insert()
    ran = shop.run("drop", code=10)
    assert "add --yes" in ran.err and "nothing was changed" in ran.err
    assert "outbox_message" in shop.tables()
    assert "removed the outbox (1 message was" in shop.run("drop", "--yes").out
    assert not shop.tables()
    with shop.db() as db:
        assert db.execute("SELECT count(*) FROM orders").fetchone() == (0,)


def test_truncate_keeps_the_tables(shop):
    shop.insert()
    shop.relay()
    assert shop.run("truncate", code=10)
    assert shop.run("truncate", "--yes", "--json").json["messages"] == 1
    assert shop.run("status", "--json").json["messages"] == 0
    shop.insert()
    shop.run("relay", "--to", "events=file:again.jsonl", "--until-idle")
    assert len(shop.lines("again.jsonl")) == 1


def test_target_list_and_drop(two):
    assert [t["name"] for t in two.run("target", "list", "--json").json["targets"]] == ["events", "partner"]
    assert "partner" in two.run("target", "list").out
    assert two.run("target", "drop", "partner", "--reason", "r", code=10)
    two.fail()
    for _ in range(3):
        two.insert()
    dropped = two.run("target", "drop", "partner", "--reason", "ended", "--yes").out
    assert "removed target partner, with 4 waiting, 0 failed and 0 held deliveries" in dropped
    dropped = two.run("target", "drop", "events", "--reason", "ended", "--yes", "--json").json
    assert (dropped["waiting"], dropped["failed"], dropped["held"]) == (3, 1, 0)
    two.run("relay", "--to", "events=null:", "--start", "events=now", "--until-idle")
    assert [t["name"] for t in two.run("target", "list", "--json").json["targets"]] == ["events"]
    assert 'no target "partner"' in two.run("target", "drop", "partner", "--reason", "r", "--yes", code=3).err
    audit = two.run("audit", "--json").json["audit"]
    assert audit[0]["target"] == "events" and audit[1]["target"] == "partner" and audit[1]["reason"] == "ended"


def test_doctor(shop):
    assert "none is registered: messages wait" in shop.run("doctor").out
    shop.relay()
    ran = shop.run("doctor", "--to", "events=file:out.jsonl")
    assert "broker" in ran.out and "ok" in ran.out
    told = shop.run("doctor", "--json").json
    assert told["healthy"] is True
    assert {f["area"] for f in told["findings"]} == {"store", "target"}


def test_doctor_warns(shop):
    shop.fail()
    shop.insert()
    ran = shop.run("doctor", "--to", "far=file:/nowhere/at/all.jsonl", code=1)
    assert "1 failed: outbox list" in " ".join(ran.out.split())
    assert "no relay works for it and 1 delivery waits" in " ".join(ran.out.split())
    levels = {f["subject"]: f["level"] for f in
              shop.run("doctor", "--to", "far=file:/nowhere/at/all.jsonl", "--json", code=1).json["findings"]}
    assert levels["far"] == "error"


def test_doctor_asks_the_brokers_of_the_file(shop):
    shop.folder.joinpath("outbox.yaml").write_text(f"""sources: [{{ name: app, store: '{shop.env["OUTBOX_STORE"]}' }}]
targets:
  - {{ name: near, to: 'file:near.jsonl' }}
  - {{ name: far, to: 'redis://127.0.0.1:1/?stream=x', password: planted-secret }}
""")
    shop.run("doctor", "--config", "outbox.yaml")
    assert not (shop.folder / "near.jsonl").exists(), "made without being asked"
    ran = shop.run("doctor", "--config", "outbox.yaml", "--brokers", "--json", code=1)
    told = {f["subject"]: f["level"] for f in ran.json["findings"] if f["area"] == "broker"}
    assert told == {"near": "ok", "far": "error"}
    assert "planted-secret" not in ran.out + ran.err
    assert "give --config" in shop.run("doctor", "--brokers", code=2).err


@pytest.mark.sqlite
def test_a_locked_database_is_told_as_busy(shop):
    with shop.db() as db:
        db.execute("BEGIN IMMEDIATE")
        ran = shop.run("publish", "--store", "sqlite:app.db?busy=100ms", "--type", "t", "--data", "1", code=11)
        db.execute("ROLLBACK")
    assert ran.err


@pytest.mark.sqlite
@pytest.mark.parametrize("left", [None, b""], ids=["missing", "empty"])
def test_a_wal_whose_database_is_gone_is_not_lost(shop, left):
    """Somebody moved the file while an application had it open: what it committed is in the -wal alone."""
    code = ("import os, sqlite3\n"
            "db = sqlite3.connect('app.db', isolation_level=None)\n"
            "db.execute(\"INSERT INTO outbox_message (id, type, payload) VALUES ('last', 'a', '{}')\")\n"
            "os._exit(0)\n")
    subprocess.run([sys.executable, "-c", code], cwd=shop.folder, check=True)
    wal, away = shop.folder / "app.db-wal", shop.folder / "away.db"
    assert wal.stat().st_size > 0
    shop.path.rename(away)
    if left is not None:
        shop.path.write_bytes(left)
    before = wal.read_bytes()
    for command in (["init"], ["init", "--lanes", "2"], ["status"], ["publish", "--type", "t", "--data", "1"]):
        said = shop.run(*command, code=3).err
        assert "its -wal exists: the file was moved or removed" in said and "init would delete" in said
        assert "put it back beside the -wal" in said and "run: outbox init" not in said
        assert wal.read_bytes() == before and shop.path.exists() is (left is not None)
    away.rename(shop.path)
    assert shop.run("show", "last", "--json").json["message"]["id"] == "last"
    # the other remedy
    shop.path.unlink()
    for file in shop.folder.glob("app.db-*"):
        file.unlink()
    assert "created an outbox" in shop.run("init").out
