# SPDX-License-Identifier: Apache-2.0
"""Roles with the least rights, as sql/postgres/roles.sql gives them, and what nobody may do."""
import pathlib
import re
import subprocess
import uuid

import pytest

import pgshop

psycopg2 = pgshop.psycopg2
if psycopg2:
    from psycopg2.extras import Json

ROLES = pathlib.Path(__file__).parents[3] / "sql" / "postgres" / "roles.sql"
MAY_CALL = {"outbox_publish", "outbox_publish_batch", "outbox_cancel", "outbox_slot", "outbox_uuid"}


class Role:
    """Somebody who may do little."""

    def __init__(self, shop, name, schema):
        self.name = f"{shop.name}_{name}"
        self.url = f"postgres://{self.name}@127.0.0.1:{shop.server.port}/{shop.name}"
        self.schema = schema
        shop.sql(f"CREATE ROLE {self.name} LOGIN")

    def sql(self, text, args=None):
        connection = psycopg2.connect(self.url, options=f"-c search_path={self.schema}")
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(text, args)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


def grant(shop):
    done = subprocess.run(["psql", "-X", "-q", "-v", "schema=app", "-v", f"publisher={shop.publisher.name}", "-v",
                           f"relay={shop.relay.name}", "-f", ROLES], env=shop.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.fixture
def app(pg_bare):
    """An outbox in its own schema beside a business table, a publisher and a relay."""
    pg_bare.sql("CREATE TABLE orders (id integer PRIMARY KEY)")
    pg_bare.run("init", "--schema", "app", "--lanes", "2")
    pg_bare.publisher = Role(pg_bare, "publisher", "app")
    pg_bare.relay = Role(pg_bare, "relay", "app")
    grant(pg_bare)
    yield pg_bare
    for role in (pg_bare.publisher.name, pg_bare.relay.name):
        pg_bare.sql(f"DROP OWNED BY {role}")
        pg_bare.sql(f"DROP ROLE {role}")


def outbox(shop, *args, **how):
    return shop.run(*args, "--store", f"{shop.relay.url}?schema=app", **how)


def test_a_publisher_publishes(app):
    [(id, seq)] = app.publisher.sql("INSERT INTO outbox_message (type, key, payload, kind, published) "
                                    "VALUES ('order.placed', '1', '{}', NULL, NULL) RETURNING id, seq")
    assert len(id) == 36 and seq == 1
    for payload, column, stored in (('{"a":"\\n"}', "payload", '{"a":"\\n"}'), (Json({"a": 1}), "payload", '{"a": 1}'),
                                    (psycopg2.Binary(b"\0\xff"), "payload_bin", b"\0\xff")):
        [(id, seq, repeated)] = app.publisher.sql(
            "SELECT id, seq, repeated FROM outbox_publish(%s, %s, key => %s)", ("order.placed", payload, "1"))
        assert not repeated
        [(back,)] = app.sql(f"SELECT {column} FROM app.outbox_message WHERE id = '{id}' AND seq = {seq}")
        assert (bytes(back) if column == "payload_bin" else back) == stored
    # a literal, a jsonb value, every name
    assert app.publisher.sql("SELECT (outbox_publish('order.placed', '{\"id\":42}')).seq") == [(5,)]
    assert app.publisher.sql("SELECT (outbox_publish('order.placed', jsonb_build_object('id', 42))).seq") == [(6,)]
    for repeated in (False, True):
        assert app.publisher.sql("""
            SELECT * FROM outbox_publish(type => 'a', payload => 'b', key => 'c', headers => '{"h":"1"}', id => 'mine',
                kind => 'command', source => '/s', subject => 'd', topic => 'e', correlation_id => 'f',
                causation_id => 'g', traceparent => 'h', published => true, priority => 3,
                event_time => '2020-01-01Z', due_at => '2020-01-02Z', expires_at => '2099-01-03Z',
                content_type => 'text/plain', lock_key => true)""") == [("mine", 7, repeated)]
    assert app.sql("""SELECT kind, source, subject, topic, correlation_id, causation_id, traceparent, published, priority,
        event_time::date::text, due_at::date::text, expires_at::date::text, content_type, headers::jsonb, payload
        FROM app.outbox_message WHERE id = 'mine'""") == [
            ("command", "/s", "d", "e", "f", "g", "h", True, 3, "2020-01-01", "2020-01-02", "2099-01-03", "text/plain",
             {"h": "1"}, "b")]


def test_a_publisher_cancels_what_is_scheduled(app):
    outbox(app, "relay", "--to", "events=file:out.jsonl", "--until-idle")
    app.publisher.sql("SELECT outbox_publish('t', '{}', id => 'm1', due_at => now() + interval '1 hour')")
    assert app.publisher.sql("SELECT outbox_cancel('m1', 'paid')") == [(True,)]
    assert app.publisher.sql("SELECT outbox_cancel('m1')") == [(False,)]
    assert app.sql("SELECT state, reason FROM app.outbox_delivery") == [("discarded", "paid")]
    assert app.sql("SELECT actor, reason FROM app.outbox_audit WHERE action = 'cancel'") == [(app.publisher.name, "paid")]
    app.publisher.sql("SELECT outbox_publish('t', '{}', id => 'm2', due_at => now() + interval '1 hour')")
    outbox(app, "cancel", "m2", "--reason", "r")
    assert app.sql("SELECT count(*) FROM app.outbox_delivery WHERE state = 'discarded'") == [(2,)]
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        app.publisher.sql("SELECT outbox_cancel_as('m1', 'r', 'somebody else', NULL)")


@pytest.mark.parametrize("call, why", [
    ("'', '{}'", "type is text of 1 to 500 characters"),
    ("'t', NULL", "give payload (text) or payload_bin (bytea), one of the two"),
    ("'t', '{}', priority => 1000000", "priority is a number from -100 to 100"),
    ("'t', '{}', headers => '[]'", "headers is a JSON object of strings"),
    ("'t', '{}', kind => 'x'", "kind is event or command"),
    ("'t', '{}', id => ''", "id is text of 1 to 255 characters"),
])
def test_what_is_wrong_is_named(app, call, why):
    with pytest.raises(psycopg2.errors.CheckViolation, match="") as caught:
        app.publisher.sql(f"SELECT outbox_publish({call})")
    assert f'"{why}"' in str(caught.value)


LONG = [(column, "repeat('x', 2048)", "repeat('x', 2049)", f"{column} is text of at most 2048 characters") for column in (
    "content_type", "source", "subject", "topic", "correlation_id", "causation_id", "traceparent")]


@pytest.mark.parametrize("column, good, wrong, why", LONG + [
    ("id", "repeat('\u00e4', 255)", "repeat('\u00e4', 256)", "id is text of 1 to 255 characters"),
    ("id", "'x'", "''", "id is text of 1 to 255 characters"),
    ("type", "repeat('x', 500)", "repeat('x', 501)", "type is text of 1 to 500 characters"),
    ("type", "'x'", "''", "type is text of 1 to 500 characters"),
    ("key", "repeat('x', 255)", "repeat('x', 256)", "key is text of at most 255 characters"),
    ("key", "NULL", "''", "key is not empty; leave it NULL"),
    ("kind", "'event'", "'Event'", "kind is event or command"),
    ("kind", "'command'", "''", "kind is event or command"),
    ("priority", "100", "101", "priority is a number from -100 to 100"),
    ("priority", "-100", "-101", "priority is a number from -100 to 100"),
    ("headers", "'{\"a\":\"b\"}'", "'[]'", "headers is a JSON object of strings"),
    ("headers", "'{}' || repeat(' ', 262142)", "'{}' || repeat(' ', 262143)", "headers is at most 256 KiB"),
    ("payload_bin", "NULL", "''", "give payload (text) or payload_bin (bytea), one of the two"),
])
def test_what_an_insert_may_say(app, column, good, wrong, why):
    """The broken rule has the name of a constraint, and the detail no payload."""
    row = {"id": "'mine'", "type": "'t'", "payload": "'secret'"}
    insert = "INSERT INTO outbox_message ({}) VALUES ({})"
    with pytest.raises(psycopg2.errors.CheckViolation) as caught:
        app.publisher.sql(insert.format(", ".join({**row, column: 0}), ", ".join({**row, column: wrong}.values())))
    assert caught.value.diag.constraint_name == why and f'"{why}"' in str(caught.value)
    assert caught.value.diag.message_detail.startswith("Failing row contains (") and "secret" not in str(caught.value)
    app.publisher.sql(insert.format(", ".join({**row, column: 0}), ", ".join({**row, column: good}.values())))
    assert app.sql("SELECT count(*) FROM app.outbox_message") == [(1,)]


def test_an_id_is_a_time_and_randomness(app):
    [(then,)] = app.sql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    ids = {row[0] for row in app.publisher.sql("INSERT INTO outbox_message (id, type, payload) SELECT NULL, 't', '{}'"
                                               " FROM generate_series(1, 50) RETURNING id")
           + app.publisher.sql("INSERT INTO outbox_message (type, payload) SELECT 't', '{}'"
                               " FROM generate_series(1, 50) RETURNING id")}
    [(now,)] = app.sql("SELECT ceil(extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    assert len(ids) == 100
    for made in map(uuid.UUID, ids):
        assert made.version == 7 and made.variant == uuid.RFC_4122 and then <= made.int >> 80 <= now


@pytest.mark.parametrize("statement", [
    "SELECT payload FROM outbox_message",
    "SELECT * FROM outbox_message",
    "INSERT INTO outbox_message (type, payload) VALUES ('t', '{}') RETURNING payload",
    "UPDATE outbox_message SET type = 'x'",
    "DELETE FROM outbox_message",
    "SET outbox.janitor = 'on'; DELETE FROM outbox_message",
    "TRUNCATE outbox_message",
    "INSERT INTO outbox_message (xid, type, payload) VALUES (pg_current_xact_id(), 't', '{}')",
    "INSERT INTO outbox_message (seq, type, payload) OVERRIDING SYSTEM VALUE VALUES (99, 't', '{}')",
    "COPY outbox_message (seq, type, payload) FROM STDIN",
    "SELECT setval('outbox_message_seq_seq', 99)",
    "SELECT nextval('outbox_message_seq_seq')",
    "SELECT last_value FROM outbox_message_seq_seq",
    "SELECT * FROM outbox_receipt",
    "INSERT INTO outbox_receipt (target, lane, n) VALUES ('events', 0, 9)",
    "UPDATE outbox_receipt SET token = 1",
    "DELETE FROM outbox_receipt",
    "SELECT * FROM outbox_target",
    "SELECT * FROM outbox_delivery",
    "UPDATE outbox_detour SET state = 'delivered'",
    "DELETE FROM outbox_meta",
    "SELECT outbox_target_drop('events', 'me', 'why', NULL)",
    "SELECT outbox_truncate(1, NULL)",
    "CREATE TABLE app.mine (x integer)",
    "SELECT * FROM public.orders",
])
def test_a_publisher_can_do_nothing_else(app, statement):
    app.publisher.sql("SELECT outbox_publish('t', '{}')")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        app.publisher.sql(statement)
    assert app.sql("SELECT count(*) FROM app.outbox_message") == [(1,)]


def functions(app, role):
    return {name for name, in app.sql(
        f"SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'app'::regnamespace "
        f"AND has_function_privilege('{role}', oid, 'EXECUTE')")}


def test_functions_are_for_those_who_need_them(app):
    app.sql("CREATE ROLE nobody_" + app.name)
    try:
        everybody = functions(app, "nobody_" + app.name)
        assert everybody == MAY_CALL - {"outbox_publish", "outbox_publish_batch", "outbox_cancel"}
        assert functions(app, app.publisher.name) == MAY_CALL
        assert len(functions(app, app.relay.name)) > 50
    finally:
        app.sql("DROP ROLE nobody_" + app.name)


def test_definers_keep_to_their_schema(app):
    """Whatever runs with the owner's rights names its schema, or has a path that nobody else writes to."""
    assert app.sql("""SELECT proname FROM pg_proc WHERE pronamespace = 'app'::regnamespace AND prosecdef
        AND proname <> 'outbox_message_accept'
        AND NOT coalesce(proconfig, '{}') @> '{"search_path=app, pg_temp"}'""") == []
    app.sql("CREATE SCHEMA evil")
    app.sql(f"GRANT ALL ON SCHEMA evil TO {app.publisher.name}")
    app.publisher.sql("""CREATE FUNCTION evil.outbox_uuid() RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$;
        CREATE TABLE evil.outbox_message (id text, type text, payload text);
        SET search_path = evil, app; SELECT app.outbox_publish('t', '{}');
        INSERT INTO app.outbox_message (type, payload) VALUES ('t', '{}')""")
    assert app.sql("SELECT count(*) FROM app.outbox_message WHERE id <> 'evil'") == [(2,)]
    assert app.sql("SELECT count(*) FROM evil.outbox_message") == [(0,)]


def test_nobodys_own_operators_decide(app):
    """The log's rules, which run with the owner's rights, know no search_path."""
    app.sql("CREATE SCHEMA evil")
    app.sql(f"GRANT ALL ON SCHEMA evil TO {app.publisher.name}")
    used = app.sql("SELECT prosrc FROM pg_proc WHERE pronamespace = 'app'::regnamespace"
                   " AND proname IN ('outbox_message_accept', 'outbox_uuid')")
    names = {name for text, in used for name in re.findall(r"\b([a-z_0-9]+)\"?\(", text)}
    assert {"length", "currval", "json_typeof", "uuid_send", "pg_current_xact_id"} <= names
    # every function and every operator of the server that goes by a name used there, with the same arguments
    made = app.sql(f"""SELECT format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN RAISE ''evil ran''; END $f$',
            proname, pg_get_function_identity_arguments(oid), pg_get_function_result(oid))
        FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ('{{{",".join(names)}}}') AND prokind = 'f'
            AND provariadic = 0 AND prorettype <> 'internal'::regtype AND NOT 'internal'::regtype = ANY (proargtypes)""")
    for left in ("text", "integer", "bigint", "smallint", "xid8", "boolean", "double precision"):
        for right in {left, "integer"}:
            made.append((f"CREATE FUNCTION evil.no({left}, {right}) RETURNS boolean LANGUAGE plpgsql AS"
                         " $f$ BEGIN RAISE 'evil ran'; END $f$",))
            made += [(f"CREATE OPERATOR evil.{sign} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = evil.no)",)
                     for sign in ("<>", "=", "<", ">", "*")]
    assert len(made) > 60
    app.publisher.sql(";".join(one for one, in made))
    path = "SET search_path = evil, pg_catalog, app;"
    with pytest.raises(psycopg2.errors.CheckViolation, match="kind is event or command"):
        app.publisher.sql(path + "INSERT INTO app.outbox_message (id, key, type, payload, kind, priority, headers)"
                          " VALUES ('mine', 'k', 't', '{}', 'x', 5, '{}')")
    assert app.publisher.sql(path + "SELECT app.outbox_uuid() IS NULL") == [(False,)]


def test_a_relay_does_all_its_work(app):
    for number in range(1, 6):
        app.publisher.sql("SELECT outbox_publish('order.placed', '{}', key => %s, id => %s)", (str(number), f"m{number}"))
    app.publisher.sql("SELECT outbox_publish('order.bad', 'no json', id => 'bad')")
    ran = outbox(app, "relay", "--to", "events=file:out.jsonl", "--to", "partner=null:", "--until-idle", code=None)
    assert "permission" not in ran.err, ran
    assert len((app.folder / "out.jsonl").read_text().splitlines()) == 5
    assert outbox(app, "status", "--json").json["messages"] == 6
    assert "m1" in outbox(app, "show", "m1").out
    assert "bad" in outbox(app, "list", "--state", "failed").out
    outbox(app, "publish", "--type", "order.placed", "--data", "{}", "--id", "m7")
    outbox(app, "requeue", "bad", "--target", "events", "--yes")
    outbox(app, "discard", "bad", "--target", "events", "--reason", "why", "--yes")
    outbox(app, "defer", "m7", "--target", "events", "--until", "+1h")
    outbox(app, "pause", "events", "--reason", "why")
    outbox(app, "resume", "events")
    assert "resume" in outbox(app, "audit").out
    ran = outbox(app, "doctor", code=None)
    assert "permission denied" not in ran.out + ran.err, ran
    outbox(app, "target", "drop", "partner", "--reason", "moved", "--yes")
    assert "purged 6 messages" in outbox(app, "purge", "--delivered-before", "0s").out
    assert app.sql("SELECT count(*) FROM app.outbox_message") == [(1,)]


def test_a_relay_touches_nothing_else(app):
    app.publisher.sql("SELECT outbox_publish('t', '{}')")
    for statement in ("SELECT * FROM public.orders", "DELETE FROM public.orders", "UPDATE outbox_message SET type = 'x'",
                      "INSERT INTO outbox_message (type, payload) VALUES ('t', '{}')", "TRUNCATE outbox_message",
                      "SELECT setval('outbox_message_seq_seq', 1)", "DROP TABLE outbox_message"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            app.relay.sql(statement)
    with pytest.raises(psycopg2.errors.RaiseException, match="is a log"):
        app.relay.sql("DELETE FROM outbox_message")


WRITES = ("INSERT INTO outbox_kept (seq) VALUES (1)", "UPDATE outbox_kept SET payload = '{}'", "DELETE FROM outbox_amended",
          "UPDATE outbox_amended SET payload = '{}'", "SELECT * FROM outbox_amended")


def test_what_was_kept_and_amended_is_changed_by_functions_only(app):
    """A message that outlived its partition is a message, and what an amended one said is evidence."""
    app.publisher.sql("SELECT outbox_publish('t', '{broken', id => 'm', content_type => 'application/json')")
    outbox(app, "relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)
    app.sql("INSERT INTO app.outbox_kept SELECT * FROM app.outbox_message; SET outbox.janitor = 'on';"
            " ALTER TABLE app.outbox_message DISABLE TRIGGER USER; DELETE FROM app.outbox_message;"
            " ALTER TABLE app.outbox_message ENABLE TRIGGER USER")
    for _ in range(2):
        for statement in WRITES:
            with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                app.relay.sql(statement)
        # as an earlier version granted it: running the script again takes it back
        app.sql(f"GRANT ALL ON app.outbox_kept, app.outbox_amended TO {app.relay.name}")
        grant(app)
    outbox(app, "amend", "m", "--data", '{"total":1}', "--reason", "a comma")
    assert "{broken" in outbox(app, "show", "m", "--amended", "--payload").out
    outbox(app, "relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert '"total":1' in (app.folder / "out.jsonl").read_text()
    outbox(app, "redact", "m", "--reason", "asked for")
    assert "purged 1 message" in outbox(app, "purge", "--delivered-before", "0s").out
    assert app.sql("SELECT count(*) FROM app.outbox_kept") == [(0,)]


@pytest.mark.parametrize("statement, why", [
    ("INSERT INTO app.outbox_message (xid, type, payload) VALUES ('5', 't', '{}')", "xid is given by the log"),
    ("INSERT INTO app.outbox_message (xid, type, payload) SELECT (pg_current_xact_id()::text::bigint + 1)::text::xid8,"
     " 't', '{}'", "xid is given by the log"),
    ("INSERT INTO app.outbox_message (seq, type, payload) OVERRIDING SYSTEM VALUE VALUES (99, 't', '{}')",
     "seq is given by the log"),
    # what allows a redaction allows no INSERT; after a message of its own, so that the session has a seq to compare with
    ("INSERT INTO app.outbox_message (type, payload) VALUES ('t', '{}'); SET outbox.redact = '99';"
     " INSERT INTO app.outbox_message (seq, type, payload) OVERRIDING SYSTEM VALUE VALUES (99, 't', '{}')",
     "seq is given by the log"),
])
def test_nobody_makes_up_a_place_in_the_log(app, statement, why):
    app.publisher.sql("SELECT outbox_publish('t', '{}')")
    with pytest.raises(psycopg2.Error) as caught:
        app.sql(statement)
    assert why in str(caught.value) or "currval" in str(caught.value)
    with pytest.raises(psycopg2.errors.GeneratedAlways):
        app.sql("INSERT INTO app.outbox_message (seq, type, payload) VALUES (99, 't', '{}')")


@pytest.mark.parametrize("column, value", [("seq", "99"), ("xid", "5")])
def test_nobody_copies_one_in(app, column, value):
    text = f"COPY app.outbox_message ({column}, type, payload) FROM STDIN;\n{value}\tt\t{{}}\n\\.\n"
    # after a message of its own, so that the session has a seq to compare with
    text = "INSERT INTO app.outbox_message (type, payload) VALUES ('t', '{}');\n" + text
    done = subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"], input=text, env=app.env, capture_output=True,
                          text=True, check=False)
    assert done.returncode != 0 and f"{column} is given by the log" in done.stderr
    assert app.sql("SELECT count(*) FROM app.outbox_message") == [(1,)]


def test_hidden_rows_are_an_error(app):
    app.publisher.sql("SELECT outbox_publish('t', '{}', id => 'm')")
    outbox(app, "relay", "--to", "events=file:out.jsonl", "--until-idle")
    app.publisher.sql("SELECT outbox_publish('t', '{}', id => 'n')")
    app.sql("ALTER TABLE app.outbox_message ENABLE ROW LEVEL SECURITY")
    for args in (("relay", "--to", "events=file:out.jsonl", "--until-idle"), ("list",), ("show", "n"), ("status",)):
        ran = outbox(app, *args, code=None)
        assert ran.code != 0 and "row-level security" in ran.err, ran


@pytest.mark.parametrize("granted, what, remedy", [
    ("", "schema app", "GRANT USAGE ON SCHEMA"),
    ("GRANT USAGE ON SCHEMA app TO {role}", "table outbox_meta", "sql/postgres/roles.sql"),
])
@pytest.mark.parametrize("args", [
    ["status"], ["init"], ["publish", "--type", "t", "--data", "{}"], ["relay", "--to", "e=null:", "--until-idle"],
    ["realign", "--yes"], ["doctor"],
], ids=lambda args: args[0])
def test_who_lacks_a_right_is_told_which_and_what_to_do(app, args, granted, what, remedy):
    stranger = Role(app, "stranger", "app")
    try:
        if granted:
            app.sql(granted.format(role=stranger.name))
        ran = app.run(*args, "--store", f"{stranger.url}?schema=app", code=6)
        assert f'permission denied for {what}: role "{stranger.name}" lacks rights; ' in ran.err
        assert remedy in ran.err and "docs/stores/postgres-roles.md" in ran.err
    finally:
        app.sql(f"DROP OWNED BY {stranger.name}; DROP ROLE {stranger.name}")


def test_a_sequence_that_is_hidden_is_not_an_empty_log(app):
    """PostgreSQL 17 says NULL to who has no right on it; earlier ones raise an error. So does a stand-in here."""
    app.sql("CREATE SCHEMA later")
    app.sql("""CREATE FUNCTION later.pg_sequence_last_value(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT NULL::bigint'""")
    app.sql(f"GRANT USAGE ON SCHEMA later TO {app.relay.name}")
    look = "SET search_path = later, pg_catalog, app; SELECT outbox_log_end()"
    assert app.relay.sql(look) == [(0,)], "nothing was published yet"
    app.sql(f"REVOKE ALL ON SEQUENCE app.outbox_message_seq_seq FROM {app.relay.name}")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="permission denied for sequence outbox_message_seq_seq"):
        app.relay.sql(look)


def test_what_only_the_owner_may_do(app):
    outbox(app, "relay", "--to", "events=null:", "--until-idle")
    app.publisher.sql("SELECT outbox_publish('t', '{}')")
    outbox(app, "relay", "--to", "events=null:", "--until-idle")
    app.sql("ALTER SEQUENCE app.outbox_message_seq_seq RESTART")
    for args, what in ((["truncate"], "permission denied for table outbox_message"), (["drop"], "must be owner of"),
                       (["realign"], "permission denied for sequence outbox_message_seq_seq")):
        ran = outbox(app, *args, "--yes", code=6)
        assert what in ran.err and f'role "{app.relay.name}" lacks rights; ' in ran.err, ran


def test_a_publisher_stops_nobody_by_locks(app):
    """Advisory locks are anybody's: a relay must not wait for one. What it waits for, a publisher cannot lock."""
    app.publisher.sql("INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '1', '{}')")
    outbox(app, "relay", "--to", "events=file:out.jsonl", "--until-idle")
    for table in ("outbox_lock", "outbox_lane", "outbox_target"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            app.publisher.sql(f"SELECT FROM {table} FOR UPDATE")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        app.publisher.sql("SELECT outbox_lock_lane('events', 0)")
    hostile = psycopg2.connect(app.publisher.url)
    try:
        hostile.cursor().execute("SELECT pg_advisory_lock(hashtextextended('app.' || name, lane)) FROM"
                                 " unnest(ARRAY['events', '', 'dead letters']) name, generate_series(-4, 9) lane")
        app.publisher.sql("INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', '2', '{}')")
        outbox(app, "relay", "--to", "events=file:out.jsonl", "--until-idle")
        assert len(app.lines()) == 2
        outbox(app, "purge", "--delivered-before", "0")
        outbox(app, "pause", "events", "--reason", "a look")
    finally:
        hostile.close()
