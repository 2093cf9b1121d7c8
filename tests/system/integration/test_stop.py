# SPDX-License-Identifier: Apache-2.0
"""SIGSTOP past the lease: another relay takes over; what the sleeper does after SIGCONT is void."""
import signal
import time

import pytest

from kit import BATCH, until
from oracle import expect_good

LANES = 4


def wake_and_see_it_fenced(shop, sleeper, other):
    """Continue a relay that slept through the loss of its lane: what it then settles is void."""
    sleeper.signal(signal.SIGCONT)
    until(lambda: "taken by another relay" in sleeper.log(), "the continued relay to be fenced")
    sleeper.end()
    until(lambda: shop.held_by(other), "the other relay to be the owner")


@pytest.mark.parametrize("where,sent", [("before_publish", False), ("after_publish", True),
                                        ("before_settle", True), ("after_settle", False)])
def test_stop_past_the_lease(make, where, sent):
    """
    A relay sleeps in the middle of its work; another takes its lane; it wakes up and goes on. What it
    had sent comes twice; what it had not sent it does not send any more.
    """
    shop, crew, producer = make()
    producer.publish(100)
    producer.start(200)
    sleeper = crew.start(failpoint=f"{where}:stop:4")
    until(sleeper.stopped, f"the relay to stop at {where}")
    in_flight = shop.in_flight()
    assert in_flight <= BATCH
    before = len(crew.lines())
    other = crew.start()
    until(lambda: shop.held_by(other), "the take-over")
    until(lambda: len(crew.lines()) > before, "the other relay to deliver")
    wake_and_see_it_fenced(shop, sleeper, other)
    ledger = producer.finish()
    other.end()
    crew.drain()
    assert expect_good(ledger, crew, in_flight).duplicates == (in_flight if sent else 0)


def test_stop_at_random_moments(make, rng):
    shop, crew, producer = make(lanes=LANES)
    producer.pause = 0
    producer.start(3000)
    team = [crew.start() for _ in range(2)]
    taken = 0
    for turn in range(12):
        time.sleep(rng.uniform(.1, .3))
        sleeper, other = team[turn % 2], team[1 - turn % 2]
        until(lambda: shop.in_flight(sleeper) or not producer.busy(), "something in flight")
        sleeper.signal(signal.SIGSTOP)
        # A sleeper that holds SQLite's lock in its sleep keeps everybody else out: that turn is void.
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline and not shop.held_by(other):
            time.sleep(.05)
        taken += shop.held_by(other)
        sleeper.signal(signal.SIGCONT)
        if taken == 3:
            break
    assert taken, "never was a lane taken over"
    ledger = producer.finish()
    for relay in team:
        relay.end()
    crew.drain()
    assert not any(lane["live"] for lane in shop.lanes_shown()), shop.lanes_shown()
    # On a slow machine one is stopped again before it has settled anything: to the guard that looks like dying of it.
    verdict = expect_good(ledger, crew, crew.fenced(), guarded=True)
    print(f"{taken} take-overs, {verdict.duplicates} duplicates of {crew.fenced()} in flight")
