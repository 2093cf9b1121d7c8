# SPDX-License-Identifier: Apache-2.0
"""kill -9 at every step of the worker loop, while a producer is publishing.

A first relay dies at a failpoint; a second one takes over when the lease is over and works until
nothing is left. Nothing is lost, nothing is out of order, and only what was in flight when the
first one died can arrive twice.
"""
import glob
import os
import re
import signal

import pytest

from kit import BATCH, until
from oracle import expect_good

PASSES = [1, 2, 3, 7]

# How a pass is reached with one lane and one worker: how often it can be passed at the least. More
# passes need more lanes and workers, since these steps are taken once by each.
NARROW = {
    "after_open": 1,
    "after_lease": 3,
    "before_take": 1,
    "after_take": 1,
    "after_connect": 1,
    "before_publish": 7,
    "after_publish": 7,
    "after_decide": 7,
    "before_settle": 7,
    "after_settle": 7,
    "before_commit": 7,
    "after_commit": 7,
    "before_release": 1,
    "after_release": 1,
}
WIDE_LANES, WIDE_WORKERS = 8, 7
# Here all that is in flight was sent and nothing of it is settled: it must come again.
SENT = ["after_publish", "after_decide"]


def in_source():
    source = os.environ["OUTBOX_SOURCE"]
    files = glob.glob(os.path.join(source, "src", "**", "*.c"), recursive=True)
    assert files, f"no sources in {source}"
    found = set()
    for path in files:
        if "_test" not in path and os.sep + "base" + os.sep not in path:
            with open(path, encoding="utf-8") as text:
                found |= set(re.findall(r'\bfailpoint\("([^"]*)"\)', text.read()))
    return found


def test_every_failpoint_is_covered():
    assert in_source() - {"after_archive"} == set(NARROW), "a failpoint in src/ without a test here, or the reverse"


@pytest.mark.parametrize("number", PASSES)
@pytest.mark.parametrize("name", sorted(NARROW))
def test_kill(make, name, number):
    wide = number > NARROW[name]
    shop, crew, producer = make(lanes=WIDE_LANES if wide else 1)
    producer.publish(60)
    producer.start(240)
    victim = crew.start("--workers", WIDE_WORKERS if wide else 1, failpoint=f"{name}:kill:{number}")
    # What is passed in the loop kills by itself; what is passed at the end needs one.
    until(lambda: victim.dead or not producer.busy(), "the relay to die or the producer to finish")
    if "release" in name:
        victim.signal(signal.SIGTERM)
    assert victim.wait() == -signal.SIGKILL, f"{name}:{number} was not passed:\n{victim.log()}"
    in_flight = shop.in_flight()
    assert in_flight <= BATCH * shop.lanes
    ledger = producer.finish()
    crew.drain()
    verdict = expect_good(ledger, crew, in_flight)
    if name in SENT:
        assert verdict.duplicates == in_flight > 0, "the crash came too late or too early"


def test_kill_again_and_again(make, rng):
    """Each successor dies too, at another place, before the last one may finish."""
    shop, crew, producer = make(lanes=2)
    producer.publish(100)
    producer.start(900)  # enough that each of them finds something to die of
    in_flight = 0
    for _ in range(8):
        name = rng.choice([n for n in sorted(NARROW) if "release" not in n])
        victim = crew.start(failpoint=f"{name}:kill:{rng.randrange(1, NARROW[name] + 1)}")
        assert victim.wait() == -signal.SIGKILL, victim.log()
        in_flight += shop.in_flight()
    ledger = producer.finish()
    crew.drain()
    expect_good(ledger, crew, in_flight, guarded=True)
