# SPDX-License-Identifier: Apache-2.0
"""A full disk, under the database and under the consumer's file: it costs time, nothing else."""
import os
import re
import signal
import subprocess
import time

import pytest

from kit import until
from oracle import expect_good

SIZE = 6 << 20
BATCH = 2
FULL = "disk is full"


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few MiB of our own."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder],
                             capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    yield str(folder)
    subprocess.run(["umount", "-l", folder], check=True)


class Filler:
    """A file that takes all the space there is."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "filler")

    def fill(self):
        with open(self.path, "ab", buffering=0) as file:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while file.write(b"\0" * size):
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(self.path)


def warnings(relay, text):
    return [line for line in relay.log().splitlines() if " warn " in line and text in line]


def deliver_rest(shop, producer, relay):
    """Publish some more, wait until all is delivered, end the relay."""
    producer.publish(50)
    ledger = producer.finish()
    until(lambda: shop.value("SELECT pending + sending + waiting + parked FROM outbox_backlog") == 0,
          f"the rest to be delivered; the relay says:\n{relay.log()}")
    relay.end()
    return ledger


class Full:
    """A relay with a backlog in the moment when the disk under its database is full."""

    def __init__(self, made, folder):
        self.shop, self.crew, self.producer = made
        self.filler = Filler(folder)
        self.producer.publish(600)
        self.reader = self.shop.connect()  # keeps SQLite's log from starting again at its beginning
        self.reader.execute("BEGIN")
        self.reader.execute("SELECT count(*) FROM outbox_message").fetchone()
        self.relay = self.crew.start(batch=BATCH)
        until(self.crew.lines, "the first line")
        self.relay.signal(signal.SIGSTOP)
        self.filler.fill()
        self.relay.signal(signal.SIGCONT)
        until(lambda: warnings(self.relay, FULL), "the relay to say that the disk is full")
        assert len(self.crew.lines()) < len(self.producer.ledger.committed), "too late"

    def over(self):
        self.reader.execute("COMMIT")
        self.reader.close()
        self.filler.free()


def test_full_under_the_database(make, small_disk):
    full = Full(make(shop_folder=small_disk), small_disk)
    full.producer.publish_refused(3)
    assert not full.relay.dead, full.relay.log()
    full.over()
    ledger = deliver_rest(full.shop, full.producer, full.relay)
    assert len(warnings(full.relay, "")) == 1, f"not said once:\n{full.relay.log()}"
    # It lived through: what it had sent, it settled as soon as it could.
    expect_good(ledger, full.crew, 0)


def test_killed_while_the_disk_is_full(make, small_disk):
    full = Full(make(shop_folder=small_disk), small_disk)
    full.relay.kill()
    in_flight = full.shop.in_flight()
    assert in_flight <= BATCH
    successor = full.crew.start(batch=BATCH)
    until(lambda: warnings(successor, FULL), "the successor to say that the disk is full")
    full.over()
    ledger = deliver_rest(full.shop, full.producer, successor)
    expect_good(ledger, full.crew, in_flight)


def test_full_for_checkpoints_only(make, small_disk):
    """SQLite's log has room in it, the database has not: delivery goes on, and it is said once."""
    shop, crew, producer = make(shop_folder=small_disk)
    producer.publish(900)
    assert os.path.getsize(shop.path + "-wal") > 2 << 20
    crew.drain()
    relay = crew.start()
    until(lambda: shop.held_by(relay), "the relay to begin")
    time.sleep(2)  # so that it has checkpointed, and the log starts again at its beginning
    filler = Filler(small_disk)
    filler.fill()
    for _ in range(3):
        producer.publish(30)
        until(lambda: len(crew.lines()) == len(producer.ledger.committed), "delivery to go on")
        time.sleep(1.2)  # let a checkpoint be due
    until(lambda: warnings(relay, "checkpoint"), "the relay to say that it cannot checkpoint")
    assert len(warnings(relay, "")) == 1, f"not said once:\n{relay.log()}"
    filler.free()
    ledger = deliver_rest(shop, producer, relay)
    expect_good(ledger, crew, 0)


def test_full_under_the_consumer(make, small_disk):
    """An outage: the breaker opens, no attempt is charged, no half line is left."""
    filler = Filler(small_disk)
    shop, crew, producer = make(consumer=os.path.join(small_disk, "consumer.jsonl"))
    producer.publish(100)
    relay = crew.start()
    until(lambda: len(crew.lines()) >= BATCH, "the first lines")
    filler.fill()
    producer.publish(400)
    until(lambda: warnings(relay, "breaker open"), "the breaker to open")
    assert warnings(relay, "No space left")
    assert shop.value("SELECT coalesce(max(attempts), 0) FROM outbox_delivery") == 0
    assert all(line.endswith(b"\n") for line in crew.lines())
    filler.free()
    ledger = deliver_rest(shop, producer, relay)
    # Said once, unless a probe found room for one small message in between.
    said = re.findall("breaker (open|closed)", relay.log())
    assert said == ["open", "closed"] * (len(said) // 2), relay.log()
    expect_good(ledger, crew, 0)
