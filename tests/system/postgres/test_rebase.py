# SPDX-License-Identifier: Apache-2.0
"""Positions of another history: refused with the reason, and repaired without loss and without touching a message."""
import contextlib
import copy
import subprocess

import pytest
from kit import BINARY, outbox, until
from oracle import expect_good
from postgres import Server

LANES = 2
REFUSED = "outbox realign"


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
    until(lambda: "lane.refused" in relay.log() or relay.dead, f"the relay to refuse; it says:\n{relay.log()}")
    assert REFUSED in relay.log(), relay.log()
    relay.kill()
    return relay.log()


def rebase(shop, *extra):
    return outbox("realign", "--store", shop.store, "--json", "--yes", *extra)["lanes"]


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


@contextlib.contextmanager
def elsewhere_with_a_publisher(shop, crew, producer):
    """On another server, as its notes say, while a publisher's transaction is open: its connection."""
    producer.publish(30)
    crew.drain()
    shop.execute("UPDATE outbox_meta SET value = '4711' WHERE name = 'cluster'")
    with shop.connect() as db:
        db.execute("BEGIN")
        db.execute("INSERT INTO outbox_message (type, payload) VALUES ('open', '{}')")
        yield db


def test_an_open_publisher_is_waited_for_and_told(make, server):
    shop, crew, producer = make(server, LANES)
    with elsewhere_with_a_publisher(shop, crew, producer) as db:
        said = subprocess.run([BINARY, "realign", "--store", shop.store, "--yes"], capture_output=True, check=False)
        assert said.returncode != 0 and b"not committed" in said.stderr, said
        db.execute("ROLLBACK")
    assert rebase(shop)
    crew.drain()
    expect_good(producer.finish(), crew, 0)


def test_published_while_it_waits(make, server):
    """Their transactions are younger than its own, and what they published is no other history's."""
    shop, crew, producer = make(server, LANES)
    with elsewhere_with_a_publisher(shop, crew, producer) as db:
        with subprocess.Popen([BINARY, "realign", "--store", shop.store, "--yes"]) as running:
            until(lambda: shop.value("SELECT count(*) FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
                                     " AND query LIKE '%outbox_rebase(%'"), "it to wait for the publisher")
            producer.publish(5)
            db.execute("ROLLBACK")
        assert running.returncode == 0
    assert not rebase(shop), "a second one found something to do"
    crew.drain()
    expect_good(producer.finish(), crew, 0)


# ---- a refusal stays ---------------------------------------------------------------------------------------


def purge(shop):
    """Every message that is delivered goes, as retention would do it in time."""
    outbox("purge", "--store", shop.store, "--delivered-before", "0s")
    assert shop.value("SELECT count(*) FROM outbox_message") == 0


def set_back(shop):
    shop.execute("SELECT setval('outbox_message_seq_seq', 1, false)")


def insert(shop, first, last):
    shop.execute("INSERT INTO outbox_message (id, type, key, payload)"
                 f" SELECT 'm-' || n, 't', 'k' || n % 7, '{{}}' FROM generate_series({first}, {last}) n")


def arrived(crew):
    return [line.decode().split('"m-')[1].split('"')[0] for line in crew.lines() if b'"m-' in line]


def expect_refused(shop, count):
    """Everybody is told while it lasts, and nothing is taken for delivered."""
    ran = subprocess.run([BINARY, "status", "--store", shop.store, "--json"], capture_output=True, check=False)
    assert REFUSED.encode() in ran.stdout, ran
    ran = subprocess.run([BINARY, "doctor", "--store", shop.store], capture_output=True, check=False)
    assert ran.returncode != 0 and REFUSED.encode() in ran.stdout, ran
    ran = subprocess.run([BINARY, "purge", "--store", shop.store, "--delivered-before", "0s"],
                         capture_output=True, check=False)
    assert ran.returncode != 0 and REFUSED.encode() in ran.stderr, ran
    listed = outbox("list", "--store", shop.store, "--json", "--limit", 1000)["deliveries"]
    assert [one["state"] for one in listed if int(one["id"][2:]) > 100] == ["pending"] * count


@pytest.mark.parametrize("partition", ["none", "auto"])
def test_a_refusal_stays(make, server, monkeypatch, partition):
    """The sequence is set back while a relay runs, and publishers push it past the old position."""
    if partition == "auto":
        monkeypatch.setenv("PGOPTIONS", "-c outbox.partition=on -c outbox.partition_rows=50")
    shop, crew, _ = make(server, LANES)
    monkeypatch.delenv("PGOPTIONS", raising=False)
    insert(shop, 1, 50)
    crew.drain()
    purge(shop)
    relay = crew.start()
    until(lambda: shop.held_by(relay), "the relay to hold its lanes")
    set_back(shop)
    insert(shop, 101, 110)
    until(lambda: shop.value("SELECT count(*) FROM outbox_lane WHERE refused IS NOT NULL") == LANES, "refusals to be noted")
    insert(shop, 111, 180)
    expect_refused(shop, 80)
    assert "lane.back" not in relay.log() and len(arrived(crew)) == 50
    assert rebase(shop)
    until(lambda: "lane.back" in relay.log() or "lane.fenced" in relay.log(), "the relay to go on")
    crew.drain()
    relay.end()
    assert sorted(map(int, arrived(crew)[50:])) == list(range(101, 181))
    assert not rebase(shop), "a second one found something to do"


@pytest.mark.parametrize("kept", ["nothing", "old", "a gap"])
def test_set_back_and_passed_unseen(make, server, kept):
    """The same while no relay runs. What is left of the old history must not hide the new one."""
    shop, crew, _ = make(server, LANES)
    insert(shop, 1, 50)
    crew.drain()
    purge(shop)
    insert(shop, 51, 53)
    if kept == "a gap":
        shop.execute("SELECT setval('outbox_message_seq_seq', 5000)")
    insert(shop, 54, 60)
    crew.drain()
    if kept == "nothing":
        purge(shop)
    set_back(shop)
    insert(shop, 101, 130)
    if kept != "nothing":  # whoever finds the numbers taken sets it right again
        shop.execute("SELECT setval('outbox_message_seq_seq', 6000)")
    insert(shop, 131, 180)
    told = expect_refusal(crew)
    assert "is younger" in told and len(arrived(crew)) == 60
    assert rebase(shop)
    crew.drain()
    assert sorted(map(int, arrived(crew)[60:])) == list(range(101, 181))


def test_refused_again_after_a_rebase(make, server):
    shop, crew, _ = make(server, LANES)
    insert(shop, 1, 50)
    crew.drain()
    purge(shop)
    set_back(shop)
    insert(shop, 51, 60)
    expect_refusal(crew)
    assert rebase(shop)
    crew.drain()
    purge(shop)
    set_back(shop)
    insert(shop, 101, 180)
    expect_refusal(crew)
    assert rebase(shop)
    crew.drain()
    assert sorted(map(int, arrived(crew)[60:])) == list(range(101, 181))


@pytest.mark.parametrize("looked", [True, False])
def test_restored_by_a_role_that_cannot_know_the_server(make, looked):
    """Its numbers are ahead of the server's for a while; then they are not, and nobody knows the difference."""
    with Server() as old, Server() as new:
        shop, crew, _ = make(old, LANES)
        burn(shop, 5000)
        insert(shop, 1, 50)
        crew.drain()
        shop.execute("DELETE FROM outbox_meta WHERE name = 'cluster'")
        there = restore(old, shop, new)
        crew.shop = there
        insert(there, 101, 140)
        if looked:
            expect_refusal(crew)
        burn(there, 9000)
        insert(there, 141, 180)
        if looked:
            expect_refused(there, 80)
            assert len(arrived(crew)) == 50
            assert rebase(there)
        crew.drain()
        assert sorted(map(int, arrived(crew)[50:])) == list(range(101, 181))


def test_the_end_of_the_log_never_goes_back(make, server):
    """nextval() shows numbers ahead for a moment; a lane that took one of them for the end would be refused later."""
    shop, _, _ = make(server, lanes=LANES)
    publishers = [subprocess.Popen(["psql", "-q", "-c", "SELECT count(nextval('outbox_message_seq_seq'))"
                                    " FROM generate_series(1, 1500000)", shop.url], stdout=subprocess.DEVNULL) for _ in range(2)]
    until(lambda: shop.value("SELECT outbox_log_end()") > 1000, "numbers to be given")
    shop.execute("""DO $$ DECLARE last bigint := 0; here bigint; BEGIN
        FOR i IN 1 .. 200000 LOOP
            here := outbox_log_end();
            ASSERT here >= last, format('the end of the log went from %s back to %s', last, here);
            last := here;
        END LOOP; END $$""")
    assert [publisher.wait() for publisher in publishers] == [0, 0]
