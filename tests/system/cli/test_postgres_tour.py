# SPDX-License-Identifier: Apache-2.0
"""The five-minute tour on PostgreSQL, from init to purge, with psql and psycopg as the application."""
import pathlib
import subprocess
import sys

from shell import end, until

ROOT = pathlib.Path(__file__).parents[3]


def psql(shop, text, code=0):
    done = subprocess.run(["psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"], input=text, env=shop.env, text=True,
                          capture_output=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout.strip() or done.stderr.strip()


ORDER = """BEGIN; INSERT INTO orders VALUES ({n}, 9.5); INSERT INTO outbox_message (type, key, payload)
           VALUES ('order.placed', '{n}', '{{"n":{n}}}'); {end};"""


def test_the_tour(pg):
    for n in range(1, 9):
        psql(pg, ORDER.format(n=n, end="ROLLBACK" if n % 4 == 0 else "COMMIT"))
    bad = psql(pg, "INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '99', '{broken') RETURNING id")
    pg.relay(code=1)
    assert sorted(e["data"]["n"] for e in pg.lines()) == [1, 2, 3, 5, 6, 7]
    assert {e["source"] for e in pg.lines()} == {f"/outbox/{pg.name}"}

    told = pg.run("status", "--json").json
    target = told["targets"][0]
    assert told["messages"] == 7 and told["driver"].startswith("postgres ")
    assert (target["delivered"], target["failed"], target["pending"], target["lag"]) == (6, 1, 0, 0)
    assert len(target["lanes"]) == 4
    assert "events has failed deliveries" in pg.run("status").out

    rows = pg.run("list", "--state", "failed", "--json").json["deliveries"]
    assert [r["id"] for r in rows] == [bad]
    text = pg.run("show", bad).out
    assert "to events: failed" in text and "a requeue will not help: its payload is not JSON" in text
    assert psql(pg, "SELECT target || ' ' || id FROM outbox_failed") == f"events {bad}"
    assert psql(pg, "SELECT state, count(*) FROM outbox_delivery GROUP BY 1 ORDER BY 1") == "delivered|6\nfailed|1"

    pg.run("requeue", bad, "--reason", "once more")
    assert pg.run("show", bad, "--json").json["deliveries"][0]["state"] == "pending"
    pg.relay(code=1)
    pg.run("discard", bad, "--reason", "test data")
    assert pg.run("show", bad, "--json").json["deliveries"][0]["state"] == "discarded"
    assert [r["action"] for r in pg.run("audit", "--json").json["audit"]] == ["discard", "requeue"]

    pg.run("doctor")
    assert pg.run("purge", "--delivered-before", "0", "--dry-run", "--json").json["messages"] == 7
    assert "purged 7 messages" in pg.run("purge", "--delivered-before", "0", "--archive", "old.jsonl.zst").out
    assert (pg.folder / "old.jsonl.zst").stat().st_size > 0
    assert pg.run("status", "--json").json["messages"] == 0
    psql(pg, ORDER.format(n=20, end="COMMIT"))
    pg.relay()
    assert pg.lines()[-1]["data"] == {"n": 20}
    pg.run("doctor")


def test_what_commits_late_is_delivered_and_delays_nobody(pg):
    with pg.db() as db:
        db.execute("BEGIN")
        db.execute("INSERT INTO outbox_message (type, payload, id) VALUES ('t', '1', 'late')")
        pg.insert(id="early")
        pg.relay()
        assert [e["id"] for e in pg.lines()] == ["early"]
        db.execute("COMMIT")
    pg.relay()
    assert [e["id"] for e in pg.lines()] == ["early", "late"]


def test_python_publishes(pg):
    """psycopg publishes, our relay delivers: the order and its message, or neither."""
    def publish(order, total):
        return subprocess.run([sys.executable, ROOT / "examples" / "python" / "publish.py", f"dbname={pg.name}",
                               str(order), str(total)], env=pg.env, capture_output=True, text=True, check=False)
    done = publish(7, 1.5)
    assert done.returncode == 0, done.stderr
    refused = publish(8, -1)
    assert (refused.returncode, "negative" in refused.stderr) == (1, True)
    pg.relay()
    assert [(e["id"], e["data"]) for e in pg.lines()] == [(done.stdout.strip(), {"id": 7, "total": 1.5})]
    assert psql(pg, "SELECT id FROM orders") == "7"


def test_a_daemon_delivers_while_psql_publishes(pg):
    relay = pg.start("relay", "--to", "events=file:out.jsonl")
    try:
        for n in range(5):
            psql(pg, ORDER.format(n=n, end="COMMIT"))
        until(lambda: len(pg.lines()) == 5, "five deliveries")
        assert pg.run("doctor", "--json").json["healthy"]
    finally:
        code, out, _ = end(relay)
    assert (code, out) == (0, "")


def test_a_message_never_changes(pg):
    pg.insert(id="m")
    assert "never changes after its insert" in psql(pg, "UPDATE outbox_message SET type = 'x'", code=3)
    assert "removed by retention" in psql(pg, "DELETE FROM outbox_message", code=3)


def test_copies_say_that_they_are_copies(pg):
    """A dump that was restored elsewhere: the relay refuses, and says what to do."""
    pg.insert()
    pg.relay()
    dump = subprocess.run(["pg_dump", "-d", pg.name], env=pg.env, capture_output=True, check=True).stdout
    pg.sql("UPDATE outbox_meta SET value = '42' WHERE name = 'cluster'")
    ran = pg.run("relay", "--to", "events=file:out.jsonl", "--once", code=14)
    assert "run: outbox realign" in ran.err
    pg.sql(f"CREATE DATABASE copy_{pg.name}", database="postgres")
    try:
        done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", f"copy_{pg.name}"], input=dump, env=pg.env,
                              capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        url = pg.url.replace(pg.name, f"copy_{pg.name}")
        assert pg.run("doctor", "--store", url, "--json", code=0).json["healthy"]
    finally:
        pg.sql(f"DROP DATABASE copy_{pg.name} WITH (FORCE)", database="postgres")
