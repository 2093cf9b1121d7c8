# SPDX-License-Identifier: Apache-2.0
"""A message that kills the relay whenever it is sent fails in the end and stops nobody else."""
import contextlib
import os
import signal


from kit import until
from oracle import judge

POISON_KEY = "k1"
LEASE = "300ms"  # many relays die here, and each successor waits for the lease


def hasten(shop):
    """Make waiting retries due: the back-off of ten attempts takes minutes."""
    with contextlib.closing(shop.connect()) as db:
        db.execute(f"UPDATE outbox_detour SET next_attempt_at = {shop.long_ago} WHERE state = 'pending'"
                   f" AND why = 'retry' AND next_attempt_at > {shop.long_ago}")


def insert_poison(shop):
    with contextlib.closing(shop.connect()) as db:
        return db.execute("INSERT INTO outbox_message (type, key, payload)"
                          " VALUES ('order.placed', ?, '\"POISON\"') RETURNING id",
                          (POISON_KEY,)).fetchone()[0]


def test_message_that_kills(make):
    library = os.environ["OUTBOX_POISON"]
    env = {"LD_PRELOAD": library,
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
    shop, crew, producer = make()
    producer.publish(60)
    poison = insert_poison(shop)
    producer.publish(60)  # some of them of its key, behind it
    ledger = producer.finish()
    kills = in_flight = 0
    relay = crew.start("--until-idle", lease=LEASE, env=env)
    while kills < 40:
        until(lambda: hasten(shop) or relay.dead, "the relay to die or to finish")
        if relay.code != -signal.SIGKILL:
            break
        kills += 1
        in_flight += shop.in_flight()
        relay = crew.start("--until-idle", lease=LEASE, env=env)
    assert relay.code == 1, f"exit {relay.code} after {kills} kills: {relay.log()}"
    failed = shop.rows("SELECT id, attempts, last_error FROM outbox_failed")
    assert len(failed) == 1 and failed[0][:2] == (poison, 10), failed
    assert "the relay died" in failed[0][2]
    verdict = judge(ledger, crew.lines(), in_flight)
    assert not verdict.problems, verdict.problems
    assert verdict.delivered == len(ledger.committed)
    charged = shop.rows("SELECT id, attempts FROM outbox_delivery WHERE attempts > 0 AND id <> ?", poison)
    assert not charged, "others were charged for the poison"
    print(f"{kills} kills, {verdict.duplicates} duplicates")
