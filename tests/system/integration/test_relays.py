# SPDX-License-Identifier: Apache-2.0
"""Several relays at once share the lanes; some are killed and restarted, some leave."""
import time

import pytest

from kit import until
from oracle import expect_good

LANES = 4


@pytest.mark.parametrize("count", [2, 4])
def test_kill_and_restart(make, rng, count):
    shop, crew, producer = make(lanes=LANES)
    producer.start(1000)
    team = [crew.start() for _ in range(count)]
    in_flight = 0
    for _ in range(12):
        time.sleep(rng.uniform(.05, .4))
        i = rng.randrange(count)
        team[i].kill()
        in_flight += shop.in_flight(team[i])
        team[i] = crew.start()
    ledger = producer.finish()
    for relay in team:
        relay.end()
    crew.drain()
    # Random kills may meet one message alone several times: the guard then takes it for the cause.
    verdict = expect_good(ledger, crew, in_flight + crew.fenced(), guarded=True)
    print(f"{in_flight} in flight at kills, {verdict.duplicates} duplicates")


def test_shares_are_fair(make):
    """Four relays on four lanes hold one each; when three leave, the last one holds all."""
    shop, crew, producer = make(lanes=LANES)
    producer.start(600)
    team = [crew.start() for _ in range(4)]

    def owners():
        return [lane["owner"] for lane in shop.lanes_shown() if lane["live"]]

    until(lambda: len(owners()) == 4 and len(set(owners())) == 4, "each relay to hold one lane")
    for relay in team[1:]:
        relay.end()
    until(lambda: len(owners()) == 4 and len(set(owners())) == 1, "the last relay to hold all lanes")
    ledger = producer.finish()
    team[0].end()
    crew.drain()
    expect_good(ledger, crew, 0)
