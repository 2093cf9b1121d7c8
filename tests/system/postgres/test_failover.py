# SPDX-License-Identifier: Apache-2.0
"""The primary dies, the standby is promoted: relays that know both hosts go on there."""
import time

from kit import outbox, until
from oracle import expect_good
from pgshop import Connection
from postgres import Server

LANES = 4
OPTIONS = "?timeout=5s&connect_timeout=2s"


def both(primary, standby):
    return f"postgres://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"


def follow(primary, standby):
    """Make the standby synchronous, once it streams."""
    with Connection(primary.url()) as db:
        db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        db.execute("ALTER SYSTEM SET synchronous_commit = remote_apply")  # what is told is also to be seen there
        db.execute("SELECT pg_reload_conf()")
        until(lambda: db.execute("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone()[0],
              f"the standby on port {standby.port} to follow")


def test_standby_takes_over(make, rng):
    with Server() as primary, Server(of=primary) as standby:
        follow(primary, standby)
        shop, crew, producer = make(primary, LANES, OPTIONS, url=both(primary, standby))
        shop.url += "?target_session_attrs=read-write"
        producer.publish(100)
        producer.start(1500)
        relay = crew.start("--workers", 2)
        until(lambda: len(crew.lines()) > 100, "delivery to begin")
        time.sleep(rng.uniform(0, .5))
        primary.stop("immediate")
        time.sleep(rng.uniform(0, 1))
        standby.promote()
        before = len(crew.lines())
        until(lambda: len(crew.lines()) > before + 50, f"delivery to go on; the relay says:\n{relay.log()}")
        ledger = producer.finish()
        assert producer.lost, "the producer did not notice anything"
        assert not relay.dead, relay.log()
        relay.end()
        crew.drain()
        expect_good(ledger, crew, crew.fenced())


def test_a_standby_is_refused(make):
    """Nothing is read from a standby: an error says so."""
    with Server() as primary, Server(of=primary) as standby:
        follow(primary, standby)
        shop, crew, producer = make(primary)
        producer.publish(10)
        shop.store = shop.store.replace(str(primary.port), str(standby.port))
        assert outbox("status", "--store", shop.store, fails=True) == ""
        relay = crew.start("--once")
        assert relay.wait() != 0
        assert not crew.lines()
        assert "read-only" in relay.log() or "standby" in relay.log() or "recovery" in relay.log(), relay.log()
