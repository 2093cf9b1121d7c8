# SPDX-License-Identifier: Apache-2.0
"""init, sql, upgrade and realign on PostgreSQL, and what people are told when it is out of reach."""
import os
import re
import subprocess

import pytest

import pgshop
from shell import BINARY


def pipe(shop, first, second, code=0):
    """outbox ... | something, as people would type it."""
    env = {**shop.env, "PATH": f"{shop.folder}:{shop.env['PATH']}"}
    if not (shop.folder / "outbox").exists():
        (shop.folder / "outbox").symlink_to(os.path.abspath(BINARY))
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {first} | {second}"], cwd=shop.folder, env=env, text=True,
                          capture_output=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def outline(shop, schema="public"):
    """Every table, column, index, constraint, trigger and function of an outbox, without its schema's name."""
    rows = shop.sql(f"""
        SELECT 'column', c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod) || a.attnotnull
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE a.attnum > 0
            AND c.relnamespace = '{schema}'::regnamespace AND c.relname LIKE 'outbox%'
        UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = '{schema}'
            AND indexname LIKE 'outbox%'
        UNION ALL SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint
            WHERE connamespace = '{schema}'::regnamespace
        UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t
            JOIN pg_class c ON c.oid = t.tgrelid AND c.relnamespace = '{schema}'::regnamespace WHERE NOT tgisinternal
        UNION ALL SELECT 'function', p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
            WHERE pronamespace = '{schema}'::regnamespace AND prokind = 'f'
        UNION ALL SELECT 'meta', name, value FROM {schema}.outbox_meta ORDER BY 1, 2, 3""")
    return [tuple(re.sub(r"-?\d{5,}|" + schema, "", str(cell)) for cell in row) for row in rows]


def test_init_says_what_it_made_and_again_changes_nothing(pg_bare):
    ran = pg_bare.run("init", people=False)
    assert f"{pg_bare.name}: created an outbox (postgres " in ran.out and "4 lanes" in ran.out
    assert "WAL" not in ran.out
    before = outline(pg_bare)
    assert "nothing changed" in pg_bare.run("init").out
    assert outline(pg_bare) == before


def test_init_in_a_schema_and_the_advice_names_it(pg_bare):
    ran = pg_bare.run("init", "--schema", "my app", people=False)
    assert f"outbox relay --to NAME=URL \\\n      --store '{pg_bare.url}?schema=my%20app'" in ran.out
    assert 'Publish: INSERT INTO "my app".outbox_message (type, key, payload)' in ran.out
    assert pg_bare.sql('SELECT count(*) FROM "my app".outbox_message') == [(0,)]
    url = f"{pg_bare.url}?schema=my%20app"
    assert pg_bare.run("init", "--schema", "my app", "--store", url, "--json").json["created"] is False
    refused = pg_bare.run("init", "--schema", "other", "--store", url, code=2)
    assert "--schema other, but the store's URL says schema=my app; give one of the two" in refused.err
    assert pg_bare.run("status", code=7)
    assert pg_bare.run("status", "--store", url, "--json").json["messages"] == 0


def test_a_role_that_may_only_create_in_its_schema_can_init(pg_bare):
    pg_bare.sql(f"CREATE ROLE owner_{pg_bare.name} LOGIN; CREATE SCHEMA app AUTHORIZATION owner_{pg_bare.name}")
    url = pg_bare.url.replace("postgres@", f"owner_{pg_bare.name}@")
    try:
        assert pg_bare.run("init", "--schema", "app", "--store", url, "--json").json["created"] is True
        refused = pg_bare.run("init", "--schema", "else", "--store", url, code=6)
        assert "permission denied" in refused.err
    finally:
        pg_bare.sql("DROP SCHEMA app CASCADE")
        pg_bare.sql(f"DROP ROLE owner_{pg_bare.name}")


@pytest.mark.parametrize("options", [[], ["--lanes", "7"], ["--doorbell"], ["--partition", "auto"]])
def test_the_printed_schema_is_what_init_makes(pg_bare, options):
    pg_bare.run("init", "--schema", "alpha_one", *options)
    text = pipe(pg_bare, f"outbox sql postgres --schema alpha_two {' '.join(options)}", "psql -q -v ON_ERROR_STOP=1")
    assert not text
    assert outline(pg_bare, "alpha_two") == outline(pg_bare, "alpha_one")
    url = f"{pg_bare.url}?schema=alpha_two"
    pg_bare.run("doctor", "--store", url)
    with pg_bare.db() as db:
        db.execute("INSERT INTO alpha_two.outbox_message (type, payload) VALUES ('t', '{\"n\":1}')")
    pg_bare.run("relay", "--store", url, "--to", "events=file:out.jsonl", "--until-idle")
    assert [line["data"] for line in pg_bare.lines()] == [{"n": 1}]
    assert "nothing to do" in pg_bare.run("upgrade", "--check", "--store", url).out


def test_the_printed_schema_goes_where_the_session_looks(pg_bare):
    pg_bare.sql("CREATE SCHEMA mine")
    pg_bare.env["PGOPTIONS"] = "-c search_path=mine,public"
    pipe(pg_bare, "outbox sql postgres", "psql -q -v ON_ERROR_STOP=1")
    assert pg_bare.sql("SELECT count(*) FROM mine.outbox_message") == [(0,)]
    paths = pg_bare.sql("SELECT DISTINCT c FROM pg_proc, unnest(proconfig) c WHERE c LIKE 'search_path%'")
    assert paths == [("search_path=mine, pg_temp",)]


def test_the_printed_schema_twice_fails_and_changes_nothing(pg):
    before = outline(pg)
    assert "already exists" in pipe(pg, "outbox sql postgres", "psql -q -v ON_ERROR_STOP=1", code=3)
    assert outline(pg) == before


def test_the_printed_schema_of_sqlite(tmp_path):
    from shell import Shop
    shop = Shop(tmp_path)
    pipe(shop, "outbox sql sqlite --lanes 3", "sqlite3 -bail app.db")
    shop.insert(payload='{"n":1}')
    shop.relay()
    assert shop.run("init", "--json").json == {"store": "app", "driver": shop.run("init", "--json").json["driver"],
                                               "schema": 6, "lanes": 3, "created": False}
    assert shop.run("doctor", "--json").json["healthy"] is True
    with shop.db() as db:
        printed = set(db.execute("SELECT type, name, sql FROM sqlite_master"))
        assert db.execute("SELECT value > 0 FROM outbox_meta WHERE name = 'store_id'").fetchone() == (1,)
    other = Shop(tmp_path / "other")
    other.folder.mkdir()
    other.run("init")
    with other.db() as db:
        assert set(db.execute("SELECT type, name, sql FROM sqlite_master")) == printed


def test_sql_knows_its_stores(bare):
    assert "outbox_message" in bare.run("sql", "postgresql", "--json").json["sql"]
    assert 'no SQL for "memory"; use one of: sqlite, postgres' in bare.run("sql", "memory", code=2).err
    assert "has no schemas" in bare.run("sql", "sqlite", "--schema", "x", code=2).err
    assert "--doorbell: sqlite does not have it" in bare.run("sql", "sqlite", "--doorbell", code=2).err


def test_upgrade_check_tells_and_changes_nothing(pg):
    assert pg.run("upgrade", "--check", "--json").json["due"] is False
    pg.sql("UPDATE outbox_meta SET value = '0' WHERE name = 'schema'")
    assert pg.run("upgrade", "--check", code=7)  # that is no outbox at all
    pg.sql("UPDATE outbox_meta SET value = '9' WHERE name IN ('schema', 'min_reader')")
    assert "schema 9, this program knows 6; use a newer outbox" in pg.run("upgrade", "--check", code=7).err
    assert "use a newer outbox" in pg.run("init", code=7).err


def test_realign_wants_to_be_confirmed(pg):
    pg.relay()
    if pg.run("realign", "--dry-run", code=None).code == 13:
        pytest.skip("this program cannot realign yet")
    assert "add --yes" in pg.run("realign", code=10).err
    assert pg.run("realign", "--dry-run", "--json").json["dry_run"] is True


def test_init_says_what_is_special(pg_bare):
    out = " ".join(pg_bare.run("init", "--partition", "auto", "--doorbell", people=False).out.split())
    assert "The log is partitioned. The relay creates and drops partitions, so its role must own them" in out
    assert "Its doorbell is on" in out


def test_the_doorbell_can_be_hung_and_taken_down(pg):
    bell = "SELECT count(*) FROM pg_trigger WHERE tgname = 'outbox_bell'"
    assert "its doorbell is on" in pg.run("init", "--doorbell").out
    assert pg.sql(bell) == [(1,)]
    pg.run("init")
    assert pg.sql(bell) == [(1,)]
    pg.run("init", "--no-doorbell")
    assert pg.sql(bell) == [(0,)]


@pytest.fixture(scope="module")
def reasons():
    """What stands between a person and the database."""
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    return {"port": pgshop.server().port}


@pytest.mark.parametrize("url, code, text", [
    ("u:hunter2@127.0.0.1:1/shop", 5, "nothing listens there: is the server running, are host and port right?"),
    ("postgres@127.0.0.1:{port}/nosuch", 3, 'database "nosuch" does not exist; create it first (createdb)'),
    ("nix:hunter2@127.0.0.1:{port}/postgres", 6, "or CREATE ROLE it"),
    ("u@no.such.host.invalid/shop", 5, "is the host's name right?"),
    ("u@127.0.0.1:port/shop", 2, "the store's URL, port: \"port\" is not a whole number from 1 to 65535"),
    ("postgres@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert=/etc/hostname", 6, "switch ssl on at the server"),
    ("postgres@127.0.0.1:{port}/postgres?sslmod=require", 2, 'unknown option "sslmod"'),
    ("postgres@127.0.0.1:{port}/postgres?options=-cdefault_transaction_read_only%3Don", 5, "this is a standby"),
    ("postgres@127.0.0.1:{port}/postgres?password_file=/nowhere/at/all", 2, "password_file"),
    ("/postgres?host=/nowhere/at/all", 5, "no server has its socket there"),
    ("postgres@127.0.0.1:{port}/postgres?schema=nowhere", 7, "create one: outbox init --store"),
])
def test_who_is_out_of_reach_and_what_to_do(bare, reasons, url, code, text):
    ran = bare.run("status", "--store", "postgres://" + url.format(**reasons), code=code)
    assert text in ran.err, str(ran)
    assert "hunter2" not in ran.err


def test_a_wrong_schema_leads_to_the_outbox_that_is_there(pg_bare):
    pg_bare.run("init", "--store", f"{pg_bare.url}?schema=shop_a", code=0)
    for command in ("status", "doctor"):
        ran = pg_bare.run(command, "--store", f"{pg_bare.url}?schema=shop_b", code=None)
        assert ran.code != 0 and 'one in schema "shop_a": put schema=shop_a' in " ".join((ran.out + ran.err).split()), str(ran)


def test_a_wrong_password_is_told_and_never_shown(pg_bare):
    user = f"app_{pg_bare.name}"
    pg_bare.sql(f"CREATE ROLE {user} LOGIN PASSWORD 'right'")
    hba = os.path.join(pg_bare.server.data, "pg_hba.conf")
    with open(hba, encoding="utf-8") as file:
        before = file.read()
    try:
        with open(hba, "w", encoding="utf-8") as file:
            file.write(f"host all {user} all scram-sha-256\n" + before)
        pg_bare.sql("SELECT pg_reload_conf()")
        at = f"127.0.0.1:{pg_bare.server.port}/{pg_bare.name}"
        (pg_bare.folder / "secret").write_text("right\n")
        (pg_bare.folder / "secret").chmod(0o600)

        def told(url):
            return pg_bare.run("status", "--store", url, code=6).err
        from shell import until
        until(lambda: "a password is required" in pg_bare.run("status", "--store", f"postgres://{user}@{at}", code=None).err,
              "the server to ask for passwords")
        assert "user or password is wrong" in told(f"postgres://{user}:hunter2@{at}")
        assert "hunter2" not in told(f"postgres://{user}:hunter2@{at}")
        for url in (f"postgres://{user}:right@{at}", f"postgres://{user}@{at}?password_file=secret"):
            ran = pg_bare.run("status", "--store", url, code=7)
            assert "right" not in ran.err, ran.err
    finally:
        with open(hba, "w", encoding="utf-8") as file:
            file.write(before)
        pg_bare.sql("SELECT pg_reload_conf()")
        pg_bare.sql(f"DROP ROLE {user}")


def test_options_that_only_postgres_has(bare):
    store = "sqlite:app.db"
    assert "only a PostgreSQL table has partitions" in bare.run("init", "--partition", "auto", "--store", store, code=2).err
    assert "only PostgreSQL has one" in bare.run("init", "--doorbell", "--store", store, code=2).err
    assert "only a PostgreSQL database has schemas" in bare.run("init", "--schema", "x", "--store", store, code=2).err
    assert '"all" is not one of none or auto' in bare.run("init", "--partition", "all", "--store", store, code=2).err
    bare.run("init", "--partition", "none", "--store", store)
