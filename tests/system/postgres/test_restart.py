# SPDX-License-Identifier: Apache-2.0
"""The server goes away under load, and comes back: it costs time, nothing else."""
import json
import os
import signal
import threading
import time

import pytest
from kit import until
from oracle import expect_good
from postgres import Server

LANES = 4
PATIENT = "?timeout=5s&connect_timeout=2s"
CLAIM = """SELECT count(*) - 1 FROM outbox_receipt r, outbox_advance(r.target, 0, 'me', r.n, r.token, 77, r.route_version,
    ROW(0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}')::outbox_outcomes, 500, 1000000, NULL)
    WHERE r.n = (SELECT max(n) FROM outbox_receipt)"""


def finish(crew, producer, relay):
    """Nobody gave up, all is delivered, and only what a robbed relay had in flight came twice."""
    ledger = producer.finish()
    assert not relay.dead, relay.log()
    relay.end()
    crew.drain()
    return expect_good(ledger, crew, crew.fenced())


def delivery_goes_on(crew, relay):
    before = len(crew.lines())
    until(lambda: len(crew.lines()) > before, f"delivery to go on; the relay says:\n{relay.log()}")


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_restart_under_load(make, rng, mode):
    with Server() as server:
        _, crew, producer = make(server, LANES, PATIENT)
        producer.publish(50)
        producer.start(1500)
        relay = crew.start("--workers", 2)
        for _ in range(5):
            delivery_goes_on(crew, relay)
            time.sleep(rng.uniform(0, .5))
            server.restart(mode)
        verdict = finish(crew, producer, relay)
        assert producer.lost, "the producer did not notice anything"
        print(f"{producer.lost} connections of the producer lost, {verdict.duplicates} duplicates")


def test_storm_of_terminated_backends(make, server):
    """pg_terminate_backend for everybody's sessions, again and again."""
    shop, crew, producer = make(server, LANES, PATIENT)
    producer.publish(50)
    producer.start(1200)
    relays = [crew.start() for _ in range(2)]
    stopping = threading.Event()
    ended = []

    def storm():
        with shop.connect() as db:
            while not stopping.wait(.15):
                ended.append(db.execute(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()").fetchone()[0])

    thread = threading.Thread(target=storm)
    thread.start()
    time.sleep(8)
    stopping.set()
    thread.join()
    assert sum(ended) > 50, f"hardly a storm: {ended}"
    relays[1].end()
    verdict = finish(crew, producer, relays[0])
    print(f"{sum(ended)} sessions ended, {verdict.duplicates} duplicates")


def test_deadlocks_and_serialization_charge_nobody(make, server):
    """default_transaction_isolation = serializable for everybody: our own transactions say what they need."""
    shop, crew, producer = make(server, LANES)
    name = shop.value("SELECT current_database()")
    shop.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    producer.publish(50)
    producer.start(300)
    relay = crew.start()
    delivery_goes_on(crew, relay)
    finish(crew, producer, relay)


class Claims:
    """Pure claims that are rolled back: does a claim wait for the disk when it commits?"""

    def __init__(self, db):
        self.db = db
        self.messages = 0

    def publish(self, durable):
        """Where the log of the server ends then."""
        self.db.execute(f"SET synchronous_commit = {durable}")
        self.db.execute("INSERT INTO outbox_message (type, payload) VALUES ('t', '{}')")
        self.db.execute("RESET synchronous_commit")
        self.messages += 1
        return self.db.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]

    def claim(self, end):
        """(what it commits with, is everything up to this end still not on the disk?)"""
        self.db.execute("BEGIN")
        assert self.db.execute(CLAIM).fetchone()[0] == self.messages
        said = self.db.execute("SELECT current_setting('synchronous_commit'), pg_current_wal_flush_lsn() < ?", (end,))
        self.db.execute("ROLLBACK")
        return said.fetchone()


def test_claim_is_durable_when_its_messages_are_not(make):
    """
    A publisher may not wait for the disk: what it published must not be sent and then never have happened. Where all is
    on the disk, a claim need not wait.
    """
    with Server("wal_writer_delay = 10s\nautovacuum = off\ncheckpoint_timeout = 1h\n") as server:
        shop, crew, producer = make(server)
        producer.publish(1)
        crew.drain()
        with shop.connect() as db:
            claims = Claims(db)

            def not_on_disk():
                setting, volatile = claims.claim(claims.publish("off"))
                assert not volatile or setting == "on", "a claim that forgets less than its messages do"
                return volatile

            until(not_on_disk, "messages that are not on the disk yet")
            until(lambda: claims.claim(claims.publish("on"))[0] == "off", "a claim that does not wait for the disk")


LAZY = "wal_writer_delay = 10s\nautovacuum = off\ncheckpoint_timeout = 1h\nbgwriter_lru_maxpages = 0\n"


def walwriter(shop):
    """The server's process that writes behind; None: there is no server now."""
    try:
        return shop.value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
    except (shop.error, IndexError):
        return None


@pytest.mark.parametrize("doing", ["claiming", "settling and claiming"])
def test_nothing_is_sent_that_a_crash_undoes(make, doing):
    """
    Nobody here waits for the disk, by the database's own setting, and the server's process that writes behind is
    stopped: then it is killed, and the server starts again with what is on the disk. What was sent must be there, and
    what was settled is not sent again.
    """
    with Server(LAZY) as server:
        shop, crew, _ = make(server)
        shop.execute(f"ALTER DATABASE {shop.value('SELECT current_database()')} SET synchronous_commit = off")
        crew.drain()
        writer = walwriter(shop)
        os.kill(writer, signal.SIGSTOP)
        try:
            for _ in range(1 if doing == "claiming" else 3):
                shop.execute("INSERT INTO outbox_message (type, payload) VALUES ('t', '{}')")
            crew.drain(batch=1)
        finally:
            os.kill(writer, signal.SIGKILL)
        sent = {json.loads(line)["id"] for line in crew.lines()}
        until(lambda: walwriter(shop) not in (None, writer), "the server to recover")
        there = {row[0] for row in shop.rows("SELECT id FROM outbox_message")}
        assert sent and not sent - there, "it was sent, and never happened"
        crew.drain()
        assert len(crew.lines()) == len(sent), "what was settled was sent again"
