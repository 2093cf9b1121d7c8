# SPDX-License-Identifier: Apache-2.0
"""After a redaction no table has a word of it, whatever way the message went before."""
import pytest

from places import place

PERSONAL = "lovelace"


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    return place(request.param, tmp_path, request)


def tables_with(shop, text):
    """The outbox's tables in which a row has this text, as a person with SQL would look for it."""
    with shop.db() as db:
        found = []
        for name in sorted(n for n in shop.tables() if not n.endswith(("_seq", "_idx", "_pkey", "_key"))):
            try:
                rows = db.execute(f"SELECT * FROM {name}").fetchall()
            except Exception as error:  # an index, a type  # pylint: disable=broad-except
                if name == "outbox_message":
                    raise error
                continue
            if any(text in str(bytes(v) if isinstance(v, memoryview) else v) for row in rows for v in row):
                found.append(name)
        return found


def test_no_table_has_a_word_of_it(shop):
    message = shop.insert(type="customer.moved", key=f"{PERSONAL}@example.org", subject=PERSONAL, payload=f"{{{PERSONAL}",
                          headers=f'{{"name":"{PERSONAL}"}}')
    other = shop.insert(type="customer.moved", key="babbage", payload="{babbage")
    relay = ["relay", "--to", "events=file:out.jsonl", "--to", "dead=file:dead.jsonl", "--match", "dead=-",
             "--start", "dead=oldest", "--dead-letter", "events=dead", "--until-idle"]
    shop.run(*relay, code=1)
    shop.run("requeue", message, "--target", "events")  # the audit has the error of then
    shop.run(*relay, code=1)
    with shop.db() as db:  # brokers quote what they refuse
        db.execute(f"UPDATE outbox_detour SET last_error = '{PERSONAL}' WHERE id = '{message}'")
        db.execute(f"UPDATE outbox_detour SET dead_reason = '{PERSONAL}' WHERE id = '{message}' AND target = 'dead'")
        db.execute(f"UPDATE outbox_audit SET detail = '{PERSONAL}' WHERE id = '{message}'")
        if shop.kind == "postgres":  # as when its partition went before it was finished
            db.execute(f"INSERT INTO outbox_kept SELECT * FROM outbox_message WHERE id = '{message}'")
    assert len(shop.lines("dead.jsonl")) == 3
    shop.run("redact", message, "--reason", "asked for", code=4)
    shop.run("discard", message, "--target", "events", "--reason", "given up")
    found = tables_with(shop, PERSONAL)
    assert {"outbox_message", "outbox_detour", "outbox_audit"} <= set(found), found
    assert shop.kind == "sqlite" or "outbox_kept" in found
    shop.run("redact", message, "--reason", "asked for")
    assert not tables_with(shop, PERSONAL)
    assert {"outbox_message", "outbox_detour"} <= set(tables_with(shop, "babbage")), "the other one is as it was"
    assert other in shop.run("list", "--state", "failed", "--json").out
