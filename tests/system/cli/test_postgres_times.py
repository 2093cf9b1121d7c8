# SPDX-License-Identifier: Apache-2.0
"""What only PostgreSQL has for a time: infinity, and names that only quotes can hold."""
from urllib.parse import quote

import pytest


@pytest.mark.parametrize("column, value", [("expires_at", "-infinity"), ("event_time", "-infinity"), ("event_time", "infinity"),
                                           ("created_at", "-infinity"), ("created_at", "infinity")])
def test_a_time_that_is_none_fails(pg, column, value):
    message = pg.insert(**{column: value})
    pg.relay(code=1)
    assert not pg.lines()
    shown = pg.run("show", message, "--json").json["deliveries"][0]
    assert shown["state"] == "failed" and f"{column}: is {value}; give a time or leave it out" in shown["error"], shown


def test_never_due_and_never_expired(pg):
    """Due since ever is due, never expired is good, and what is never due waits until somebody says otherwise."""
    pg.insert(due_at="-infinity")
    pg.insert(expires_at="infinity")
    waits = pg.insert(due_at="infinity")
    pg.relay()
    assert len(pg.lines()) == 2
    assert pg.run("show", waits, "--json").json["deliveries"][0]["why"] == "deferred"
    pg.run("discard", waits, "--reason", "given up")


@pytest.mark.parametrize("name", ["$outbox$", "a$outbox$_$b'c\\d", "with $$ and $do$ and $f$", 'q"uote'])
def test_schemas_with_odd_names(pg_bare, name):
    quoted = '"' + name.replace('"', '""') + '"'
    pg_bare.run("init", "--schema", name, people=False)
    pg_bare.sql(f"INSERT INTO {quoted}.outbox_message (type, payload) VALUES ('t', '{{}}')")
    pg_bare.run("relay", "--store", f"{pg_bare.url}?schema={quote(name)}", "--to", "events=file:out.jsonl", "--until-idle")
    assert len(pg_bare.lines()) == 1
    pg_bare.run("drop", "--store", f"{pg_bare.url}?schema={quote(name)}", "--yes")
