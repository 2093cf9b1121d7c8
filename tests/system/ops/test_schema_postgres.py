# SPDX-License-Identifier: Apache-2.0
"""A new database and one that the version before made and this one upgraded are the same, to the last definition."""
import concurrent.futures
import hashlib
import subprocess

import pytest

from before import ROOT, before
from places import pgshop
from shell import until

SQL = ROOT / "sql" / "postgres"
# What holds data never changes: what comes later is a file of its own.
FROZEN = {
    "tables": "59b62ab9526159b0b97de1059d2aa3d3d70a6d44e2a6b34333736a7edbf88e93",
    "types": "e215636ffcbc0d6231463d4c8cd7050268f9aec157adba0d68f45a59c017bf9d",
    "v2": "a4471781e0a85f99714048b5ecf341389ecd6ca737faeedb4ce1a4b8f2de887a",
    "v3": "68d37b01ced89bc29ae669028c5ae3ce70d375a0e18c336978eab326fcf4da7e",
    "v4": "106c7509eb0ab09b7bbbf45d4789411f3f8e386bb124c8b20408b0d1c9a66ad9",
    "v5": "bc55be899dd1de64d0f92e69b295195c401e1bb8e79b13e9f9cf0baea8fefd4b",
    "v6": "5d3a90bf94da0d315448958f5824cc09857e33e855598bfb4f2c645a1f11d1ab",
}
# Kinds of databases: what `outbox init` is told, and whether roles.sql is run before the upgrade.
KINDS = {
    "plain": (["--lanes", "2"], False),
    "partitions, doorbell": (["--partition", "auto", "--doorbell"], False),
    "roles": ([], True),
}
# Each gives rows of: what it is, its name, and how it is.
LOOKS = {
    "relation": "SELECT relkind, relname, ROW(relkind, relpersistence, reloptions, relrowsecurity, relispartition,"
                " pg_get_expr(relpartbound, c.oid), coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's'::\"char\""
                " ELSE 'r' END, relowner)), CASE WHEN relkind = 'v' THEN pg_get_viewdef(c.oid) END)::text"
                " FROM pg_class c WHERE relnamespace = 'public'::regnamespace",
    "column": "SELECT c.relname, a.attnum || ' ' || a.attname, ROW(format_type(a.atttypid, a.atttypmod), a.attnotnull,"
              " a.attidentity, a.attgenerated, a.attcollation, a.attstorage, a.attacl, pg_get_expr(d.adbin, d.adrelid))::text"
              " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
              " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
              " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'c') AND NOT a.attisdropped"
              " AND a.attnum > 0",
    "constraint": "SELECT conrelid::regclass::text, conname, ROW(pg_get_constraintdef(oid), convalidated, conislocal,"
                  " coninhcount, connoinherit)::text FROM pg_constraint WHERE connamespace = 'public'::regnamespace",
    "index": "SELECT indrelid::regclass::text, indexrelid::regclass::text, ROW(pg_get_indexdef(indexrelid), indisvalid)::text"
             " FROM pg_index WHERE indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)",
    "trigger": "SELECT tgrelid::regclass::text, tgname, ROW(pg_get_triggerdef(oid), tgenabled, tgparentid <> 0)::text"
               " FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)",
    "sequence": "SELECT seqrelid::regclass::text, '', ROW(seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache,"
                " seqcycle)::text FROM pg_sequence",
    "function": "SELECT oid::regprocedure::text, prokind, ROW(pg_get_functiondef(oid), proacl, proowner::regrole)::text"
                " FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "type": "SELECT typname, typtype, typacl::text FROM pg_type WHERE typnamespace = 'public'::regnamespace",
    "row of outbox_meta": "SELECT name, '', value FROM outbox_meta",
}
# Each changes one thing. To see that it is seen is to know that the comparison looks at it.
CHANGES = [
    "ALTER TABLE outbox_target ADD COLUMN more text",
    "ALTER TABLE outbox_detour ALTER COLUMN attempts SET DEFAULT 1",
    "ALTER TABLE outbox_lane SET (fillfactor = 60)",
    "ALTER TABLE outbox_detour DROP CONSTRAINT outbox_detour_why_check",
    "ALTER TABLE outbox_message DISABLE TRIGGER outbox_message_tombstone",
    "DROP INDEX outbox_detour_ahead",
    "ALTER TABLE outbox_message ALTER COLUMN seq SET CACHE 10",
    "ALTER FUNCTION outbox_picks ROWS 11",
    "ALTER FUNCTION outbox_stats SET enable_sort = off",
    "CREATE OR REPLACE FUNCTION outbox_scan_max() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint'",
    "GRANT EXECUTE ON FUNCTION outbox_get TO PUBLIC",
    "GRANT SELECT (id) ON outbox_message TO PUBLIC",
    "GRANT SELECT ON outbox_backlog TO PUBLIC",
    "CREATE OR REPLACE VIEW outbox_failed AS SELECT d.seq, d.id, d.target, d.type, d.key, d.lane, d.attempts, d.owner,"
    " d.last_error, d.event_time, d.created_at, d.last_status_at AS failed_at FROM outbox_detoured d",
    "CREATE FUNCTION outbox_due() RETURNS void LANGUAGE sql AS ''",
]


@pytest.mark.parametrize("name", FROZEN)
def test_a_version_never_changes(name):
    assert hashlib.sha256((SQL / f"{name}.sql").read_bytes()).hexdigest() == FROZEN[name]


@pytest.fixture(name="shop")
def make_shop(tmp_path, request):
    """Makes databases without an outbox."""
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)

    def make():
        made = pgshop.PgShop(tmp_path)
        request.addfinalizer(made.drop)
        return made
    return make


def described(shop):
    """Everything in it, a line each."""
    return {f"{kind} {one} {two}: {how}" for kind, sql in LOOKS.items() for one, two, how in shop.sql(sql)}


@pytest.fixture(name="roles")
def make_roles(shop):
    """Two roles of the server, and what gives them their rights in a database."""
    any_database = shop()
    names = [f"{any_database.name}_{role}" for role in ("publisher", "relay")]
    for name in names:
        any_database.sql(f"CREATE ROLE {name}")
    given = []

    def give(to):
        given.append(to)
        done = subprocess.run(["psql", "-X", "-q", "-v", "schema=public", "-v", f"publisher={names[0]}", "-v",
                               f"relay={names[1]}", "-f", SQL / "roles.sql"], env=to.env, capture_output=True, text=True,
                              check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        # and what the owner decided to let everybody do
        to.sql("GRANT EXECUTE ON FUNCTION outbox_get TO PUBLIC; GRANT SELECT ON outbox_backlog TO PUBLIC")
    yield give
    for database in given:
        for name in names:
            database.sql(f"DROP OWNED BY {name}")
    for name in names:
        any_database.sql(f"DROP ROLE {name}")


@pytest.mark.parametrize("kind", KINDS)
def test_new_and_upgraded_are_the_same(shop, roles, kind):
    options, with_roles = KINDS[kind]
    new, old = shop(), shop()
    new.run("init", *options)
    before(old).run("init", *options)
    assert described(new) != described(old)
    for made in (new, old) if with_roles else ():
        roles(made)
    old.run("upgrade")
    one, other = described(new), described(old)
    differ = [f"only {who}: {what}" for who, what in
              [("new", line) for line in sorted(one - other)] + [("upgraded", line) for line in sorted(other - one)]]
    assert not differ


def psql(shop, *args, text=None):
    done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", *map(str, args)], input=text, env=shop.env, capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stderr


def schema_two(shop):
    """As the program of version 2 left it, as far as it holds data."""
    before(shop).run("init", "--lanes", "2")
    assert psql(shop, "-f", SQL / "message.sql", "-f", SQL / "v2.sql")[0] == 0
    shop.sql("REVOKE ALL ON FUNCTION outbox_message_tombstone, outbox_message_accept FROM PUBLIC; UPDATE outbox_meta SET value = '2' WHERE name = 'schema'")


def test_what_sql_prints_is_what_an_upgrade_runs(shop):
    new, one, two, checked = shop(), shop(), shop(), shop()
    new.run("init", "--lanes", "2")
    for made in (one, checked):
        before(made).run("init", "--lanes", "2")
    schema_two(two)
    told = checked.run("upgrade", "--check", code=2, people=False).out
    assert "CREATE TABLE outbox_amended" in told and "dead_letter" in told and "outbox upgrade --check --sql" in told
    script = checked.run("upgrade", "--check", "--sql", code=2, people=False).out
    assert checked.run("upgrade", "--check", "--json", code=2).json["sql"] == script
    for made, text in ((one, one.run("sql", "postgres", "--from", "1", people=False).out), (two, two.run("sql", "postgres", "--from", "2", people=False).out),
                       (checked, script)):
        assert psql(made, text=text) == (0, "")
        assert described(made) == described(new)
    code, err = psql(two, text=two.run("sql", "postgres", "--from", "1", people=False).out)
    assert code == 3 and "this leads from outbox schema 1 on, and here is 6; nothing was changed" in err
    assert not new.run("upgrade", "--check", "--sql").out
    code, err = psql(two, text=two.run("sql", "postgres", "--drop", people=False).out)
    assert (code, err) == (0, "")
    assert not [line for line in two.sql("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                                         " UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace")]


def waiting(shop):
    """How many sessions wait for a lock."""
    return shop.sql("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")[0][0]


def upgrade_beside(made, meanwhile):
    """What meanwhile() answers, called while an upgrade waits for a table that somebody uses."""
    looker = pgshop.psycopg2.connect(made.url)
    looker.cursor().execute("SELECT FROM outbox_detour")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        try:
            upgrade = pool.submit(made.run, "upgrade", code=None)
            until(lambda: waiting(made), "the upgrade to wait")
            answer = meanwhile(pool)
        finally:
            looker.close()
        assert upgrade.result().code == 0, upgrade.result().err
    return answer


def test_who_reads_a_view_meanwhile_waits_and_goes_on(shop):
    made = shop()
    before(made).run("init")
    made.run("upgrade", "--check", code=2, people=False)

    def read(pool):
        """One that had to wait: between its tries the upgrade lets others through."""
        for _ in range(1000):
            reader = pool.submit(made.sql, "SELECT FROM outbox_backlog")
            until(lambda one=reader: waiting(made) > 1 or one.done(), "the reader to wait or to go through")
            if not reader.done():
                return reader
        raise AssertionError("no reader ever waited for the upgrade")
    assert upgrade_beside(made, read).result() == []


@pytest.mark.parametrize("first, then", [
    ("outbox_message", "outbox_target"), ("outbox_target", "outbox_message"), ("outbox_detour", "outbox_backlog"),
    ("outbox_message", "outbox_stats(10, now())"),
])
def test_an_upgrade_gives_way(shop, first, then):
    """Whoever has locked one thing and then wants another that the upgrade holds gets it; nobody dies of it."""
    made = shop()
    before(made).run("init")
    reader = pgshop.psycopg2.connect(made.url)
    with concurrent.futures.ThreadPoolExecutor() as pool, reader, reader.cursor() as cursor:
        cursor.execute(f"SELECT FROM {first}")
        upgrade = pool.submit(made.run, "upgrade", code=None)
        until(lambda: waiting(made), "the upgrade to wait")
        cursor.execute(f"SELECT FROM {then}")
        reader.commit()
        assert upgrade.result().code == 0, upgrade.result().err
    reader.close()


def test_an_upgrade_that_gets_nowhere_says_so(shop):
    made = shop()
    before(made).run("init")
    reader = pgshop.psycopg2.connect(made.url)
    reader.cursor().execute("SELECT FROM outbox_message")
    said = made.run("upgrade", code=11).err
    assert "nothing was changed: end that transaction" in said and "run outbox upgrade again" in said, said
    reader.close()
    made.run("upgrade")


def test_what_others_make_meanwhile_is_theirs(shop):
    made = shop()
    before(made).run("init")
    upgrade_beside(made, lambda _: made.sql("CREATE FUNCTION price() RETURNS integer LANGUAGE sql AS 'SELECT 5'"))
    assert made.sql("SELECT has_function_privilege('public', 'price()', 'EXECUTE')") == [(True,)]


def test_a_view_that_was_dropped_is_made_anew(shop):
    new, old = shop(), shop()
    new.run("init")
    before(old).run("init")
    old.sql("DROP VIEW outbox_backlog, outbox_delivery, outbox_failed, outbox_unread, outbox_position")
    old.run("upgrade")
    assert described(old) == described(new)


def test_every_difference_is_seen(shop):
    made = shop()
    made.run("init")
    first = described(made)
    for change in CHANGES:
        then = described(made)
        made.sql(change)
        assert described(made) != then, change
    assert described(made) != first


def test_what_is_printed_is_what_init_makes(shop):
    """By psql alone."""
    by_init, by_psql = shop(), shop()
    by_init.run("init", "--partition", "auto", "--doorbell", "--lanes", 3)
    printed = by_psql.run("sql", "postgres", "--partition", "auto", "--doorbell", "--lanes", 3, "--json").json["sql"]
    done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"], input=printed, env=by_psql.env, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert described(by_init) == described(by_psql)


@pytest.mark.parametrize("options", [[], ["--partition", "auto"]])
def test_what_runs_behind_it_waits_as_long_as_before(shop, options):
    """In the transaction of who runs it among other migrations."""
    made = shop()
    printed = made.run("sql", "postgres", *options, "--json").json["sql"]
    begin, end = "\nBEGIN ISOLATION LEVEL READ COMMITTED;\n", "\nCOMMIT;\n"
    assert printed.count(begin) == 1 and printed.count(end) == 1 and printed.endswith(end)
    about = printed.split(begin)[0]
    assert begin.strip() in about and end.strip() in about, "its comment names the two lines"
    script = printed.replace(begin, begin + "SET LOCAL lock_timeout = '7s';\n")[:-len(end)] + "\nSHOW lock_timeout;" + end
    done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"], input=script, env=made.env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split() == ["7s"], done


@pytest.mark.parametrize("mine", [
    "CREATE FUNCTION outbox_uuid() RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$",
    "CREATE FUNCTION outbox_release(text, integer, text) RETURNS void LANGUAGE sql AS ''",
])
def test_nothing_of_an_application_is_replaced(shop, mine):
    made = shop()
    made.sql(mine)
    then = made.sql("SELECT prosrc FROM pg_proc WHERE proname LIKE 'outbox%'")
    ran = made.run("init", code=None)
    assert ran.code != 0 and "outbox_" in ran.err, ran.err
    assert made.sql("SELECT prosrc FROM pg_proc WHERE proname LIKE 'outbox%'") == then
