# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: what is in flight is finished and settled, so that nothing arrives twice.

The lease is far longer than anybody would wait: a successor that began only after the lease's end
would run into the time limit.
"""
import signal
import time

from kit import until
from oracle import expect_good

LEASE = "10m"


def test_terminated_relays_cause_no_duplicates(make, rng):
    _, crew, producer = make(lanes=2)
    producer.publish(200)
    producer.start(1500)
    for _ in range(20):
        before = len(crew.lines())
        relay = crew.start("--workers", 2, lease=LEASE, batch=rng.choice([1, 7, 100]))
        if rng.random() < .7:
            until(lambda: len(crew.lines()) > before or not producer.busy() or relay.dead,
                  "the successor to begin at once")
        time.sleep(rng.uniform(0, .15))
        assert not relay.dead, relay.log()
        begun = "relay.start" in relay.log()
        relay.signal(signal.SIGTERM)
        if begun or relay.wait() != -signal.SIGTERM:  # a signal before it does anything just ends it
            relay.finish()
    ledger = producer.finish()
    crew.drain(lease=LEASE)
    expect_good(ledger, crew, 0)


def test_second_signal_leaves_at_once(make):
    """Even then nothing is lost; what was in flight may come again, after the lease."""
    shop, crew, producer = make()
    producer.publish(500)
    relay = crew.start(batch=100)
    until(crew.lines, "the first line")
    relay.signal(signal.SIGTERM)
    relay.signal(signal.SIGINT)
    relay.wait()
    in_flight = shop.in_flight()
    ledger = producer.finish()
    crew.drain()
    expect_good(ledger, crew, in_flight)
