# SPDX-License-Identifier: Apache-2.0
"""The server goes away under load, and comes back: it costs time, nothing else."""
import threading
import time

import pytest
from kit import until
from oracle import expect_good
from postgres import Server

LANES = 4
PATIENT = "?timeout=5s&connect_timeout=2s"


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
