# SPDX-License-Identifier: Apache-2.0
"""Retention beside those who read: who waits for whom, and what happens to who did not."""
import subprocess
import threading

import psycopg2
import pytest
from kit import BINARY, until

PURGE = "SELECT messages FROM outbox_purge(clock_timestamp(), NULL, 9223372036854775807, 0, 5000, NULL, NULL)"
PUT = "SELECT outbox_target_put(?, 'all', '{}', NULL, false, false, ?, 1, 77, NULL)"
LAST = "SELECT n, token, route_version FROM outbox_receipt WHERE target = 'events' ORDER BY n DESC LIMIT 1"
ADVANCE = """SELECT count(*) - 1 FROM outbox_advance('events', 0, 'me', ?, ?, 77, ?,
    ROW(0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}')::outbox_outcomes, 500, 1000000, NULL)"""

NEXT_BATCH = """SELECT count(*) - 1 FROM outbox_next_batch('events', 0, 'me', ?, ?, 77, ?, 500, 1000000, NULL, 0, 0, 0,
    0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')"""


def test_new_target_waits_for_a_purge(make, server):
    """A purge under way has not asked it what it still needs. Those that it knows are not held up."""
    shop, crew, producer = make(server)
    producer.publish(10)
    crew.drain()
    with shop.connect() as janitor, shop.connect() as other:
        other.execute("SET lock_timeout = '300ms'")
        assert other.execute(PUT, ("old", False)).fetchone()[0] == 1
        other.execute("SELECT outbox_target_drop('old', 'me', NULL, NULL)")
        assert other.execute(PUT, ("events", False)).fetchone()[0]  # another routing than the relay's has to wait, too
        janitor.execute("BEGIN")
        assert janitor.execute(PURGE).fetchone()[0] == len(producer.ledger.committed)
        for unordered in True, False:  # change it, and change it back
            assert other.execute(PUT, ("events", unordered)).fetchone()[0]
        with pytest.raises(psycopg2.errors.LockNotAvailable):
            other.execute(PUT, ("new", False))
        janitor.execute("COMMIT")
        assert other.execute(PUT, ("new", False)).fetchone()[0]


@pytest.mark.parametrize("way", [ADVANCE, NEXT_BATCH], ids=["long", "straight"])
def test_claim_says_no_more_than_it_returns(make, server, way):
    """Messages that go while it is made: the claim fails as a whole, and the next one is right."""
    shop, crew, producer = make(server)
    producer.publish(1)
    crew.drain()
    with shop.connect() as db, shop.connect() as janitor, shop.connect() as gate, shop.connect() as reader:
        ids = db.execute("INSERT INTO outbox_message (type, payload) SELECT 't', '{}' FROM generate_series(1, 10)"
                         " RETURNING seq").fetchall()
        last = db.execute(LAST).fetchone()
        janitor.execute("BEGIN")
        janitor.execute("SELECT set_config('outbox.janitor', 'on', true)")
        janitor.execute("DELETE FROM outbox_message WHERE seq = ?", ids[2])
        gate.execute("BEGIN")
        gate.execute("LOCK TABLE outbox_receipt IN SHARE MODE")  # between its looks: what there is, and the rows
        failed = []

        def claim():
            try:
                failed.append(reader.execute(way, last).fetchone())
            except psycopg2.Error as error:
                failed.append(error)

        thread = threading.Thread(target=claim)
        thread.start()
        until(lambda: db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ?",
                                 (reader.db.info.backend_pid,)).fetchone()[0], "the claim to wait")
        janitor.execute("COMMIT")
        gate.execute("ROLLBACK")
        thread.join()
        assert isinstance(failed[0], psycopg2.errors.SerializationFailure), failed
        assert db.execute(LAST).fetchone() == last
        assert reader.execute(way, last).fetchone()[0] == 9


def test_retention_and_a_dead_letter_wait_for_each_other_in_turn(make, server):
    """A settlement has its lane and wants that of its dead letter, while failed messages of both are removed."""
    shop, _, _ = make(server)
    put = "SELECT outbox_target_put(?, 'all', '{}', NULL, false, false, false, 1, 77, NULL, NULL, ?)"
    with shop.connect() as db, shop.connect() as janitor, shop.connect() as relay:
        db.execute(put, ("dead", None))
        db.execute(put, ("orders", "dead"))
        seq, lane = db.execute("INSERT INTO outbox_message (type, payload) VALUES ('t', '{}') RETURNING seq, slot %"
                               " (SELECT value::integer FROM outbox_meta WHERE name = 'lanes')").fetchone()
        db.execute("UPDATE outbox_receipt SET floor = ?", (seq,))
        db.execute("INSERT INTO outbox_detour (target, seq, id, lane, state, last_status_at) SELECT name, seq, id, ?,"
                   " 'failed', '2000-01-01' FROM outbox_target, outbox_message WHERE name <> 'events'", (lane,))
        relay.execute("BEGIN")
        relay.execute("SELECT outbox_lock_lane('orders', ?)", (lane,))
        purged = []
        thread = threading.Thread(target=lambda: purged.append(janitor.execute(
            PURGE.replace("NULL, 9", "clock_timestamp(), 9")).fetchone()[0]))
        thread.start()
        until(lambda: db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ?",
                                 (janitor.db.info.backend_pid,)).fetchone()[0], "retention to wait")
        relay.execute("SELECT outbox_dead_letters(outbox_last_receipt('orders', ?), ARRAY[?::bigint], now())", (lane, seq))
        relay.execute("COMMIT")
        thread.join()
        assert purged == [0]  # it is pending at the dead letter now


def test_a_rebase_and_a_dead_letter_wait_for_each_other_in_turn(make, server):
    """A settlement has its lane and wants that of its dead letter, while a rebase takes all of them."""
    shop, _, _ = make(server)
    put = "SELECT outbox_target_put(?, 'all', '{}', NULL, false, false, false, 1, 77, NULL, NULL, ?)"
    with shop.connect() as db, shop.connect() as operator, shop.connect() as relay:
        db.execute(put, ("dead", None))
        db.execute(put, ("orders", "dead"))
        relay.execute("BEGIN")
        relay.execute("SELECT outbox_lock_lane('orders', 0)")
        failed = []

        def rebase():
            try:
                operator.execute("SELECT outbox_rebase(false, false, 'me', 78, NULL)")
            except psycopg2.Error as error:
                failed.append(error)

        thread = threading.Thread(target=rebase)
        thread.start()
        until(lambda: db.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = ?",
                                 (operator.db.info.backend_pid,)).fetchone()[0], "the rebase to wait")
        try:
            relay.execute("SELECT outbox_lock_lane('dead', 0)")
        finally:
            relay.execute("ROLLBACK")
            thread.join()
        assert not failed


def test_new_target_before_a_partition_goes(make, server, monkeypatch):
    """Who wants it is asked when no other target can come any more."""
    monkeypatch.setenv("PGOPTIONS", "-c outbox.partition=on -c outbox.partition_rows=10")
    shop, crew, _ = make(server)
    monkeypatch.delenv("PGOPTIONS")
    while shop.value("SELECT outbox_tend_partitions()"):
        pass
    shop.execute("INSERT INTO outbox_message (type, payload) SELECT 't', '{}' FROM generate_series(1, 25)")
    crew.drain()
    count = shop.value("SELECT count(*) FROM outbox_message")
    with shop.connect() as other, shop.connect() as janitor:
        other.execute("BEGIN")
        other.execute("LOCK TABLE outbox_lock")
        dropped = []
        thread = threading.Thread(target=lambda: dropped.append(janitor.execute(
            "SELECT messages FROM outbox_drop_partition(clock_timestamp(), 9223372036854775807, 1000)").fetchone()[0]))
        thread.start()
        until(lambda: shop.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %d" %
                                 janitor.db.info.backend_pid), "retention to wait")
        other.execute(PUT, ("new", False))
        other.execute("COMMIT")
        thread.join()
    assert dropped == [0] and shop.value("SELECT count(*) FROM outbox_message") == count
    shop.execute("SELECT outbox_target_drop('new', 'me', NULL, NULL)")
    assert shop.value("SELECT messages FROM outbox_drop_partition(clock_timestamp(), 9223372036854775807, 1000)") == 10


@pytest.mark.parametrize("partition", ["none", "auto"])
def test_what_is_not_in_the_archive_stays(make, server, monkeypatch, tmp_path, partition):
    """A message that is nobody's, old and committed when the archive was complete."""
    if partition == "auto":
        monkeypatch.setenv("PGOPTIONS", "-c outbox.partition=on -c outbox.partition_rows=10")
    shop, crew, _ = make(server)
    monkeypatch.delenv("PGOPTIONS", raising=False)
    while partition == "auto" and shop.value("SELECT outbox_tend_partitions()"):
        pass
    with shop.connect() as late, shop.connect() as gate:
        late.execute("BEGIN")
        late.execute("INSERT INTO outbox_message (id, type, payload) VALUES ('late', 'x', '{}')")
        shop.execute("INSERT INTO outbox_message (type, payload) SELECT 't', '{}' FROM generate_series(1, 25)")
        crew.drain()
        shop.execute("UPDATE outbox_route SET types = '{t}'")  # as if it had been so from the beginning
        gate.execute("BEGIN")
        gate.execute("LOCK TABLE outbox_lock")  # between the archive and what goes
        command = [BINARY, "purge", "--store", shop.store, "--delivered-before", "0s", "--archive", tmp_path / "a.jsonl.zst"]
        with subprocess.Popen(command) as running:
            until(lambda: shop.value("SELECT count(*) FROM pg_locks WHERE NOT granted"), "the purge to wait")
            late.execute("COMMIT")
            gate.execute("ROLLBACK")
        assert running.returncode == 0
    assert shop.value("SELECT count(*) FROM outbox_message WHERE id = 'late'") == 1
    assert shop.value("SELECT count(*) FROM outbox_message") < 10
