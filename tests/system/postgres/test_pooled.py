# SPDX-License-Identifier: Apache-2.0
"""PgBouncer in transaction mode: each of our transactions may run in another session."""
import os
import subprocess
import time

import pytest
from kit import until
from oracle import expect_good
from postgres import Bouncer, Server


@pytest.fixture(scope="module")
def pooled():
    with Server() as server, Bouncer(server) as bouncer:
        yield server, bouncer


def test_contract(pooled):
    """The whole contract of stores, each connection of the store by way of the pooler."""
    server, bouncer = pooled
    done = subprocess.run([os.environ["OUTBOX_PG_CONTRACT"]], capture_output=True, text=True, check=False, timeout=900,
                          env={**os.environ, "OUTBOX_TEST_POSTGRES": server.url(),
                               "OUTBOX_TEST_POSTGRES_VIA": bouncer.url()})
    failed = [line for line in (done.stdout + done.stderr).splitlines()
              if not line.startswith(("[ RUN", "[       OK"))]
    assert done.returncode == 0, "\n".join(failed[-60:])


def test_relays(make, pooled, rng):
    server, bouncer = pooled
    shop, crew, producer = make(server, 4)
    shop.store = shop.store.replace(f":{server.port}/", f":{bouncer.port}/")
    producer.publish(50)
    producer.start(1000)
    team = [crew.start("--workers", 2) for _ in range(2)]
    in_flight = 0
    for _ in range(5):
        time.sleep(rng.uniform(.2, .6))
        i = rng.randrange(2)
        team[i].kill()
        in_flight += shop.in_flight(team[i])
        team[i] = crew.start("--workers", 2)
    ledger = producer.finish()
    until(lambda: len(crew.lines()) >= len(ledger.committed), "delivery")
    for relay in team:
        relay.end()
    crew.drain()
    expect_good(ledger, crew, in_flight + crew.fenced(), guarded=True)
