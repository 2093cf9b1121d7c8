# SPDX-License-Identifier: Apache-2.0
"""doctor on PostgreSQL: each thing that can be wrong is made wrong, and is told with its remedy."""
import contextlib
import pathlib
import subprocess

import pgshop
from shell import until


def findings(shop, *args, code=None):
    told = shop.run("doctor", "--json", *args, code=code).json
    return {(f["subject"], f["level"]): f["text"] for f in told["findings"]}


def bad(shop, *args):
    return {key: text for key, text in findings(shop, *args).items() if key[1] in ("warning", "error")}


def test_a_healthy_one(pg):
    pg.insert()
    pg.relay()
    told = findings(pg, code=0)
    for subject in ("schema", "connection", "durability", "clock", "rights", "log", "indexes", "plan", "positions",
                    "vacuum", "held snapshot"):
        assert (subject, "ok") in told, told
    assert told["positions", "ok"] == "1 target, none ahead of the log"
    assert "version 6 in schema public, 4 lanes" in pg.run("doctor").out


def test_a_sequence_that_hands_out_blocks(pg):
    pg.sql("ALTER TABLE outbox_message ALTER COLUMN seq SET CACHE 20")
    told = bad(pg)
    assert set(told) == {("log", "error")}
    assert "CACHE 20" in told["log", "error"]
    # the remedy works as it stands
    pg.sql("ALTER TABLE outbox_message ALTER COLUMN seq SET CACHE 1 SET INCREMENT 1 SET NO CYCLE")
    assert not bad(pg)


def test_indexes_and_the_plan(pg):
    pg.insert()
    pg.relay()
    pg.sql("DROP INDEX outbox_message_xid")
    pg.sql("ALTER TABLE outbox_message DROP CONSTRAINT outbox_message_pkey")
    told = bad(pg)
    assert "outbox_message_xid is missing" in told["indexes", "error"]
    assert "would walk through the whole log (Seq Scan on outbox_message" in told["plan", "error"]
    pg.sql("CREATE INDEX outbox_message_xid ON outbox_message (xid, seq)")
    pg.sql("ALTER TABLE outbox_message ADD CONSTRAINT outbox_message_pkey PRIMARY KEY (seq)")
    pg.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox_detour_due'::regclass")
    assert "REINDEX INDEX CONCURRENTLY outbox_detour_due" in bad(pg)["indexes", "error"]
    pg.sql("REINDEX INDEX CONCURRENTLY outbox_detour_due")
    assert not bad(pg)


def test_triggers(pg):
    for trigger in ("outbox_message_keep", "outbox_message_accept"):
        pg.sql(f"ALTER TABLE outbox_message DISABLE TRIGGER {trigger}")
        assert "1 of the 2 triggers" in bad(pg)["log", "error"]
        pg.sql(f"ALTER TABLE outbox_message ENABLE TRIGGER {trigger}")
        assert not bad(pg)


def test_settings_that_lose_messages(pg):
    pg.sql(f"ALTER DATABASE {pg.name} SET synchronous_commit = off")
    said = bad(pg)["durability", "warning"]
    assert "ALTER ROLE postgres SET synchronous_commit = on" in said and "but none that was sent" in said
    pg.sql(f"ALTER DATABASE {pg.name} RESET synchronous_commit")
    assert not bad(pg)


def test_autovacuum_that_is_off(pg):
    pg.sql("ALTER TABLE outbox_lane SET (autovacuum_enabled = false)")
    assert "autovacuum is off for outbox_lane" in bad(pg)["vacuum", "warning"]


@contextlib.contextmanager
def role(shop, name, rights):
    name = f"{name}_{shop.name}"
    shop.sql(f"CREATE ROLE {name} LOGIN; {rights.format(role=name)}")
    try:
        yield shop.url.replace("postgres@", f"{name}@")
    finally:
        shop.sql(f"DROP OWNED BY {name}")
        shop.sql(f"DROP ROLE {name}")


def test_rights(pg):
    with role(pg, "looker", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role};"
                            "GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO {role}") as url:
        told = bad(pg, "--store", url)
        assert "may look but not relay, it has no " in told["rights", "warning"]
        assert "INSERT on outbox_receipt" in told["rights", "warning"]
        assert "postgres-roles.md" in told["rights", "warning"]


def test_the_documented_relay_role_is_enough(pg):
    with role(pg, "relay", "") as url, role(pg, "publisher", ""):
        roles = pathlib.Path(__file__).parents[3] / "sql" / "postgres" / "roles.sql"
        subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", "schema=public", "-v",
                        f"publisher=publisher_{pg.name}", "-v", f"relay=relay_{pg.name}", "-f", roles], env=pg.env, check=True)
        pg.insert()
        pg.run("relay", "--store", url, "--to", "events=file:out.jsonl", "--until-idle")
        told = findings(pg, "--store", url, code=0)
        assert ("rights", "ok") in told and not any(subject == "not checked" for subject, _ in told), told


def test_partitions(pg_bare):
    pg_bare.run("init", "--partition", "auto")
    pg_bare.insert()
    pg_bare.relay()
    told = findings(pg_bare)
    assert ("indexes", "ok") in told and ("plan", "ok") in told and ("log", "ok") in told, told
    assert any(subject == "partitions" for subject, _ in told), told
    with role(pg_bare, "other", "GRANT ALL ON ALL TABLES IN SCHEMA public TO {role};"
                                "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}") as url:
        assert "does not own the outbox's tables" in bad(pg_bare, "--store", url)["partitions", "warning"]


def test_row_level_security(pg):
    pg.sql("ALTER TABLE outbox_message ENABLE ROW LEVEL SECURITY")
    assert ("row security", "note") in findings(pg, code=0)
    with role(pg, "relay", "GRANT ALL ON ALL TABLES IN SCHEMA public TO {role};"
                           "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}") as url:
        told = bad(pg, "--store", url)
        assert "outbox_message hides rows from relay_" in told["row security", "error"]
        assert "DISABLE ROW LEVEL SECURITY" in told["row security", "error"]


def test_positions_of_another_history(pg):
    pg.insert()
    pg.relay()
    pg.sql("UPDATE outbox_meta SET value = '42' WHERE name = 'cluster'")
    assert "made on server 42" in bad(pg)["server identity", "error"]
    pg.sql("UPDATE outbox_meta SET value = outbox_cluster() WHERE name = 'cluster'")
    assert not bad(pg)
    pg.sql("ALTER SEQUENCE outbox_message_seq_seq RESTART")
    assert "4 lanes are refused by relays; target events, lane 0" in bad(pg)["positions", "error"]


def test_who_holds_back_vacuum(pg):
    with pg.db() as db:
        db.execute("BEGIN")
        db.execute("INSERT INTO outbox_message (type, payload) VALUES ('t', '1')")
        db.execute(f"PREPARE TRANSACTION '{pg.name}'")
    told = findings(pg, code=0)
    assert f"prepared transaction '{pg.name}'" in told["held snapshot", "note"]
    pg.sql(f"COMMIT PREPARED '{pg.name}'")
    with pg.db() as db:
        db.execute("SET application_name = 'reporting'")
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        pid = db.execute("SELECT pg_backend_pid()").fetchone()[0]
        text = until(lambda: findings(pg, code=0).get(("held snapshot", "note")), "a snapshot older than five seconds")
        assert f"pid {pid} (reporting, idle in transaction) holds xmin for " in text
        assert "delivery is not affected" in text
        db.execute("ROLLBACK")


def test_behind_a_pooler(pg):
    with pgshop.Bouncer(pg.server) as bouncer:
        url = f"postgres://postgres@127.0.0.1:{bouncer.port}/{pg.name}"
        told = findings(pg, "--store", url, code=0)
        assert "through a pooler such as PgBouncer" in told["connection", "note"]
        pg.insert()
        pg.run("relay", "--store", url, "--to", "events=file:out.jsonl", "--until-idle")
        assert len(pg.lines()) == 1


def test_passwords_stay_hidden(pg):
    url = pg.url.replace("postgres@", "postgres:hunter2@")
    pg.insert(payload="{broken")
    pg.run("relay", "--store", url, "--to", "events=file:out.jsonl", "--until-idle", code=1)
    for args in (["doctor"], ["status"], ["init"], ["list"], ["upgrade", "--check"], ["target", "list"]):
        ran = pg.run(*args, "--store", url, code=None, people=False)
        assert ran.code in (0, 1) and "hunter2" not in ran.out + ran.err
