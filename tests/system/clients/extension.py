# SPDX-License-Identifier: Apache-2.0
"""outbox.so in Python's sqlite3 and in the sqlite3 shell: what is published is delivered, what is refused says why."""
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import tempfile

OUTBOX = os.environ["OUTBOX_BIN"]
EXTENSION = os.environ["OUTBOX_SQLITE_EXTENSION"]
UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def outbox(*args):
    return subprocess.run([OUTBOX, *args, "--store", "sqlite:app.db"], check=True, capture_output=True, text=True).stdout


def connect():
    db = sqlite3.connect("app.db", isolation_level=None, timeout=10)
    db.enable_load_extension(True)
    db.load_extension(EXTENSION)
    db.enable_load_extension(False)
    return db


def refused(db, sql, *args):
    try:
        db.execute(sql, args).fetchall()
    except sqlite3.Error as error:
        return str(error)
    raise AssertionError(f"{sql}: is not refused")


def one(db, sql, *args):
    return db.execute(sql, args).fetchone()[0]


def delivered():
    outbox("relay", "--to", "events=file:out.jsonl", "--until-idle")
    return {event["id"]: event for event in map(json.loads, pathlib.Path("out.jsonl").read_text().splitlines())}


def publishes_in_the_transaction(db):
    assert "not in a transaction" in refused(db, "SELECT outbox_publish('order.placed', '42', '{}')")
    db.execute("BEGIN")
    first = one(db, "SELECT outbox_publish('order.placed', '42', ?)", '{"id":42}')
    db.execute("ROLLBACK")
    db.execute("BEGIN")
    made = one(db, "SELECT outbox_publish('order.placed', '42', json_object('id', 42))")
    raw = one(db, "SELECT outbox_publish('order.drawn', NULL, ?)", b"\0\xff")
    own = one(db, "SELECT outbox_publish('order.paid', '42', '5', ?)", json.dumps({
        "id": "mine", "kind": "command", "source": "/shop", "subject": "a \"subject\" \u00e9", "topic": "t",
        "correlation_id": "c", "causation_id": None, "published": True, "priority": -7,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "event_time": 1700000000000000, "headers": {"X-One": "1", "a": "\u00e9"}}))
    assert one(db, "SELECT outbox_publish('order.paid', '42', '6', '{\"id\":\"mine\"}')") == own == "mine"
    text = one(db, "SELECT outbox_publish('order.told', 'k', 'plain', '{\"content_type\":\"text/plain\"}')")
    db.execute("COMMIT")
    assert UUID7.fullmatch(made) and UUID7.fullmatch(raw) and UUID7.fullmatch(text)
    events = delivered()
    assert list(events) == [made, raw, "mine", text] and first not in events
    assert events[made]["data"] == {"id": 42} and events[raw]["data_base64"] == "AP8="
    mine = events["mine"]
    assert mine["data"] == 5 and mine["source"] == "/shop" and mine["subject"] == "a \"subject\" \u00e9", mine
    assert mine["time"] == "2023-11-14T22:13:20.000000Z" or mine["time"].startswith("2023-11-14T22:13:20"), mine
    assert events[text]["data"] == "plain"
    row = db.execute("SELECT kind, topic, correlation_id, causation_id, published, priority, headers, traceparent"
                     " FROM outbox_message WHERE id = 'mine'").fetchone()
    assert row == ("command", "t", "c", None, 1, -7, '{"X-One":"1","a":"\u00e9"}',
                   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), row


def says_what_is_wrong(db):
    db.execute("BEGIN")
    for options, text in (("{", "options"), ("[]", "options: is not a JSON object"), ('{"idd":"x"}', '"idd" is unknown'),
                          ('{"id":5}', "id: is not a string"), ('{"due_at":"x"}', "due_at: is not an integer"),
                          ('{"published":1}', "published: is not true or false"), ('{"priority":1000}', "priority"),
                          ('{"kind":"thing"}', 'kind: is not "event" or "command"'), ('{"headers":[]}', "header"),
                          ('{"id":"a\\u0000"}', "id: is not text without NULs")):
        told = refused(db, "SELECT outbox_publish('t', 'k', '{}', ?)", options)
        assert text in told, (options, told)
    assert "payload: is NULL" in refused(db, "SELECT outbox_publish('t', 'k', NULL)")
    assert "type" in refused(db, "SELECT outbox_publish(NULL, 'k', '{}')")
    assert "data" in refused(db, "SELECT outbox_publish('t', 'k', 'no JSON')")
    # what stands behind a NUL is not left out in silence
    for call, field in (("publish('t' || char(0), 'k', '{}')", "type"), ("publish('t', 'k' || char(0) || '1', '{}')", "key"),
                        ("publish('t', 'k', '{}', '{}' || char(0))", "options"), ("cancel('x' || char(0))", "id"),
                        ("cancel('x', char(0))", "reason"), ("inbox_accept(char(0), 'x')", "consumer"),
                        ("inbox_accept('billing', 'x' || char(0) || '1')", "id")):
        assert f"{field}: is not text without NULs" == refused(db, f"SELECT outbox_{call}"), call
    assert db.in_transaction and one(db, "SELECT count(*) FROM outbox_message WHERE type = 't'") == 0
    db.execute("COMMIT")
    # a trigger would fail for everybody who has not loaded the extension
    db.execute("CREATE TABLE orders (id)")
    db.execute("CREATE TRIGGER t AFTER INSERT ON orders BEGIN SELECT outbox_publish('t', 'k', '{}'); END")
    assert "unsafe use of outbox_publish" in refused(db, "INSERT INTO orders VALUES (1)")


def accepts_and_cancels(db):
    ids = {one(db, "SELECT outbox_uuid7()") for _ in range(100)}
    assert len(ids) == 100 and all(map(UUID7.fullmatch, ids))
    db.execute("BEGIN")
    assert "outbox init --inbox" in refused(db, "SELECT outbox_inbox_accept('billing', '1')")
    db.execute("COMMIT")
    outbox("init", "--inbox")
    assert "not in a transaction" in refused(db, "SELECT outbox_inbox_accept('billing', '1')")
    db.execute("BEGIN")
    assert [one(db, "SELECT outbox_inbox_accept('billing', '1')") for _ in range(2)] == [1, 0]
    one(db, "SELECT outbox_publish('reminder', 'k', '{}', json_object('id', 'later', 'due_at', 4000000000000000))")
    db.execute("COMMIT")
    db.execute("BEGIN")
    assert [one(db, "SELECT outbox_cancel('later', 'paid meanwhile')") for _ in range(2)] == [1, 0]
    assert "none" in refused(db, "SELECT outbox_cancel('none')")
    db.execute("COMMIT")


def closes(db):
    """A statement that was left behind would keep the file open."""
    db.close()
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{fd}")]
    assert not any("app.db" in path for path in held), held


def works_in_the_shell():
    script = (f".load {EXTENSION}\nBEGIN;\nSELECT outbox_publish('shell.used', '7', json_object('by', 'hand'));\nCOMMIT;\n"
              "REPLACE INTO outbox_message (id, type, payload) VALUES ('mine', 'x', '{}');\n")
    ran = subprocess.run(["sqlite3", "-cmd", ".timeout 10000", "app.db"], input=script, capture_output=True, text=True,
                         check=False)
    assert UUID7.fullmatch(ran.stdout.strip()) and "REPLACE would remove the message" in ran.stderr, ran
    assert delivered()[ran.stdout.strip()]["data"] == {"by": "hand"}


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        outbox("init")
        db = connect()
        publishes_in_the_transaction(db)
        says_what_is_wrong(db)
        accepts_and_cancels(db)
        closes(db)
        works_in_the_shell()
        os.chdir("/")


main()
