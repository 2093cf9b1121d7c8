# SPDX-License-Identifier: Apache-2.0
"""Columns that people added to the log, where PostgreSQL has a second table for messages."""
import pytest

from test_own_columns import add_columns, told


@pytest.fixture
def small(pg_bare):
    """A log in partitions of ten messages."""
    pg_bare.sql(f"ALTER DATABASE {pg_bare.name} SET outbox.partition_rows = '10'")
    pg_bare.run("init", "--partition", "auto", "--lanes", "2")
    return pg_bare


def test_messages_that_outlive_their_partition(small):
    """What is kept of a partition keeps the columns that its table has as well."""
    add_columns(small)
    add_columns(small, "outbox_kept", ("shard", "tenant"))
    assert "lane" in told(small)["columns"] and "outbox_kept" in told(small)["columns"]
    failed = small.fail(2, tenant="acme", state="x")
    for i in range(40):
        small.insert(key=str(i), tenant="acme")
    small.relay()
    for _ in range(3):
        small.run("purge", "--delivered-before", "0")
    kept = small.sql("SELECT id, tenant, shard, payload FROM outbox_kept ORDER BY seq")
    assert kept == [(message, "acme", None, "{broken") for message in failed]
    assert "{broken" in small.run("show", failed[0], "--payload").out
    small.run("requeue", failed[0])
    small.relay(code=1)
    assert [row["id"] for row in small.run("list", "--state", "failed", "--json").json["deliveries"]] == failed
    small.run("discard", failed[0], "--reason", "wrong")
    small.run("redact", failed[0], "--reason", "asked for")
    told_of = small.run("purge", "--delivered-before", "0", "--failed-before", "0", "--archive", "old.jsonl.zst", "--json").json
    assert told_of["messages"] >= 2
    assert not small.sql("SELECT id FROM outbox_kept")


def test_columns_that_nobody_can_fill(pg):
    pg.sql("ALTER TABLE outbox_message ADD COLUMN tenant text NOT NULL")
    assert "tenant" in told(pg)["columns"] and "NOT NULL" in told(pg)["columns"]
    pg.sql("ALTER TABLE outbox_message DROP COLUMN tenant")
    pg.sql("ALTER TABLE outbox_kept DROP COLUMN subject")
    assert "subject" in told(pg)["columns"]
