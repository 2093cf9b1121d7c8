# SPDX-License-Identifier: Apache-2.0
"""Positions of another history: refused with the reason, and repaired without loss and without touching a message."""
import copy
import subprocess

import pytest
from kit import BINARY, outbox, until
from oracle import expect_good
from postgres import Server

LANES = 2
REFUSED = "outbox rebase"


def number(shop):
    return shop.value("SELECT pg_current_xact_id()::text::bigint")


def burn(shop, upto):
    """Transactions of others, until the server's counter is there."""
    here = number(shop)
    if upto > here:
        shop.execute("DO $$ BEGIN FOR i IN 1 .. %d LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$" %
                     (upto - here))


def restore(old, shop, new):
    """pg_dump | psql, as an operator would do it. The shop as it is on the new server."""
    there = copy.copy(shop)
    there.url = there.store = shop.url.replace(f":{old.port}/", f":{new.port}/")
    dump = subprocess.run([f"{old.bin}/pg_dump", "--create", shop.url], capture_output=True, check=True)
    done = subprocess.run([f"{new.bin}/psql", "-v", "ON_ERROR_STOP=1", "-q", new.url()], input=dump.stdout,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return there


def move(crew, producer, shop):
    """Everybody works with this database from now on; the consumer's file stays."""
    producer.db.close()
    producer.db = None
    producer.shop = shop
    crew.shop = shop


def die_in_flight(crew, producer, shop):
    """A relay is killed in the middle: how many messages may have been sent and are not settled."""
    producer.publish(60)
    crew.start(failpoint="after_publish:kill:3").wait()
    in_flight = shop.in_flight()
    assert in_flight, "nothing was in flight"
    return in_flight


def expect_refusal(crew):
    relay = crew.start()
    until(lambda: REFUSED in relay.log() or relay.dead, f"the relay to refuse; it says:\n{relay.log()}")
    assert REFUSED in relay.log(), relay.log()
    relay.kill()
    return relay.log()


def rebase(shop, *extra):
    return outbox("rebase", "--store", shop.store, "--json", "--yes", *extra)["lanes"]


def messages(shop):
    return shop.rows("SELECT seq, id, xid::text, created_at FROM outbox_message ORDER BY seq")


@pytest.mark.parametrize("partition", ["none", "auto"])
@pytest.mark.parametrize("counter", ["lower", "same", "higher"])
def test_restored_on_another_server(make, monkeypatch, rng, counter, partition):
    if partition == "auto":
        monkeypatch.setenv("PGOPTIONS", "-c outbox.partition=on -c outbox.partition_rows=50")
    with Server() as old, Server() as new:
        shop, crew, producer = make(old, LANES)
        monkeypatch.delenv("PGOPTIONS", raising=False)
        burn(shop, {"lower": 9000, "same": 3000, "higher": 0}[counter])
        producer.publish(100)
        crew.drain()
        in_flight = die_in_flight(crew, producer, shop)
        producer.publish(30)
        first = shop.value("SELECT min(xid::text::bigint) FROM outbox_message")
        there = restore(old, shop, new)
        move(crew, producer, there)
        burn(there, {"lower": 0, "same": first - 20, "higher": 9000}[counter])
        producer.publish(40)  # before anybody has noticed
        told = expect_refusal(crew)
        before = messages(there)
        assert rebase(there, "--dry-run")
        assert rebase(there)
        assert messages(there) == before
        assert not rebase(there), "a second one found something to do"
        # The counter runs through the numbers of old messages now, with transactions of others open meanwhile.
        producer.start(400)
        relay = crew.start()
        held = []
        while producer.busy():
            held.append(there.connect())
            held[-1].execute("BEGIN")
            held[-1].execute("SELECT pg_current_xact_id()")
            if len(held) > 20:
                held.pop(rng.randrange(len(held))).close()
        ledger = producer.finish()
        for db in held:
            db.close()
        relay.end()
        crew.drain()
        verdict = expect_good(ledger, crew, in_flight)
        print(f"{told.splitlines()[-1]}\n{verdict.duplicates} duplicates of {in_flight} in flight")


def test_truncated_and_numbered_anew(make, server):
    shop, crew, producer = make(server, LANES)
    producer.publish(60)
    crew.drain()
    arrived = len(crew.lines())
    shop.execute("ALTER TABLE outbox_message DISABLE TRIGGER ALL")
    shop.execute("TRUNCATE outbox_message RESTART IDENTITY")
    shop.execute("ALTER TABLE outbox_message ENABLE TRIGGER ALL")
    shop.execute("INSERT INTO outbox_detour (target, seq, id, lane, state, last_status_at)"
                 " SELECT 'events', n, 'gone-' || n, 0, 'delivered', now() FROM generate_series(1, 10) n")
    producer.ledger.committed.clear()
    producer.publish(25)
    expect_refusal(crew)
    assert rebase(shop)
    producer.publish(10)
    crew.drain()
    ids = [message.id for message in producer.ledger.committed]
    lines = b"".join(crew.lines()[arrived:]).decode()
    assert [lines.count(one) for one in ids] == [1] * len(ids)


def test_sequence_set_back(make, server):
    shop, crew, producer = make(server, LANES)
    producer.publish(60)
    crew.drain()
    producer.publish(15)
    shop.execute("SELECT setval('outbox_message_seq_seq', 5)")
    assert "the log ends at 5" in expect_refusal(crew)
    assert rebase(shop)
    producer.publish(10)
    crew.drain()
    expect_good(producer.finish(), crew, 0)


def test_same_history(make, server):
    """After pg_upgrade the numbers go on, and only the server has another name."""
    shop, crew, producer = make(server, LANES)
    producer.publish(60)
    crew.drain()
    producer.publish(15)
    shop.execute("UPDATE outbox_meta SET value = '4711' WHERE name = 'cluster'")
    assert "another server" in expect_refusal(crew)
    assert rebase(shop, "--same-history")
    assert shop.value("SELECT count(*) FROM outbox_detour") == 0
    crew.drain()
    expect_good(producer.finish(), crew, 0)


def test_an_open_publisher_is_waited_for_and_told(make, server):
    shop, crew, producer = make(server, LANES)
    producer.publish(30)
    crew.drain()
    shop.execute("UPDATE outbox_meta SET value = '4711' WHERE name = 'cluster'")
    with shop.connect() as db:
        db.execute("BEGIN")
        db.execute("INSERT INTO outbox_message (type, payload) VALUES ('open', '{}')")
        said = subprocess.run([BINARY, "rebase", "--store", shop.store, "--yes"], capture_output=True, check=False)
        assert said.returncode != 0 and b"not committed" in said.stderr, said
        db.execute("ROLLBACK")
    assert rebase(shop)
    crew.drain()
    expect_good(producer.finish(), crew, 0)
