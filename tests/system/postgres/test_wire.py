# SPDX-License-Identifier: Apache-2.0
"""Connections that are cut, stall or crawl, through a proxy."""
import os
import subprocess
import time

import pytest
from kit import PATIENCE, SEED, outbox, until
from oracle import expect_good
from proxy import Fault, Proxy

READER = os.environ.get("OUTBOX_PG_READER")
# Every byte takes minutes; each run takes its own share of them, unless it is told to take all.
STRIDE = 1 if os.environ.get("OUTBOX_TEST_ALL") else 37


@pytest.fixture
def proxy(server):
    with Proxy(server.port) as one:
        yield one


def through(shop, server, proxy):
    """The store's URL, by way of the proxy."""
    return shop.store.replace(f":{server.port}/", f":{proxy.port}/")


class Reading:
    """One run of a reader that takes a lane and settles messages, two in a claim; its second connection has a fault."""

    def __init__(self, shop, url, folder):
        self.shop, self.url = shop, url
        self.log = os.path.join(folder, "reader.log")

    def run(self, proxy, fault, messages=3):
        with self.shop.connect() as db:
            ids = [row[0] for row in db.execute("INSERT INTO outbox_message (type, key, payload) SELECT 't', 'k', '{}'"
                                                f" FROM generate_series(1, {messages}) RETURNING id").fetchall()]
        proxy.plan(Fault(reset=False), fault)
        done = subprocess.run([READER, "--url", self.url, "--log", self.log, "--target", "events", "--calm", "2",
                               "--reconnect", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"{fault}: {done.stdout}{done.stderr}"
        with open(self.log, encoding="utf-8") as file:
            arrived = [line.split()[4] for line in file if line.startswith("D")]
        assert arrived == ids, f"{fault}: {arrived}, not {ids}"

    def bytes(self, proxy, way, messages=3):
        """How many go this way when nothing happens."""
        self.run(proxy, Fault(reset=False), messages)
        until(lambda: all(link.over.is_set() for link in proxy.links), "the connection to end")
        return dict(zip(("up", "down"), proxy.bytes()))[way]


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("way", ["up", "down"])
def test_cut_after_every_byte(make, server, proxy, tmp_path, way, reset):
    """Whatever was lost, the question or the answer: each message is claimed and settled once."""
    shop, _, _ = make(server)
    reading = Reading(shop, through(shop, server, proxy), tmp_path)
    total = reading.bytes(proxy, way)
    assert total > 500
    cuts = range((SEED + reset) % STRIDE, total + STRIDE, STRIDE)
    for cut in cuts:
        reading.run(proxy, Fault(**{f"cut_{way}": cut}, reset=reset))
    print(f"{len(cuts)} cuts in {total} bytes {way}")


@pytest.mark.parametrize("way", ["up", "down"])
def test_cut_while_rows_are_read_ahead(make, server, proxy, tmp_path, way):
    """With more messages, the rows of the third claim are asked for behind the second."""
    shop, _, _ = make(server)
    reading = Reading(shop, through(shop, server, proxy), tmp_path)
    few, many = reading.bytes(proxy, way), reading.bytes(proxy, way, 7)
    assert many > few + 500
    cuts = range(few * 2 // 3 + SEED % STRIDE, many + STRIDE, STRIDE)
    for cut in cuts:
        reading.run(proxy, Fault(**{f"cut_{way}": cut}, reset=cut % 2 == 0), 7)
    print(f"{len(cuts)} cuts up to {many} bytes {way}")


@pytest.mark.parametrize("way", ["up", "down"])
def test_relay_lives_through_half_open_connections(make, server, proxy, rng, way):
    """
    Nothing comes any more on a connection and nobody says so: the call ends at its deadline, the relay goes on. What the
    session holds on the server is free when the server's keepalives end it.
    """
    shop, crew, producer = make(server, 2, "?timeout=1s&connect_timeout=1s")
    direct, shop.store = shop.store, through(shop, server, proxy)
    # The first ones are well: a relay that cannot begin (look at the store, register its targets) says so and ends.
    proxy.plan(Fault(reset=False), Fault(reset=False), *[Fault(**{f"stall_{way}": rng.randrange(500, 8000)}, notice=4) for _ in range(6)])
    producer.publish(50)
    producer.start(500)
    relay = crew.start(lease="10s")
    ledger = producer.finish()
    until(lambda: len(crew.lines()) >= len(ledger.committed), f"delivery; the relay says:\n{relay.log()}")
    relay.end()
    shop.store = direct
    crew.drain()
    expect_good(ledger, crew, crew.fenced())


def test_everything_stalls_for_a_while(make, server, proxy):
    shop, crew, producer = make(server, 2, "?timeout=1s&connect_timeout=1s")
    direct, shop.store = shop.store, through(shop, server, proxy)
    producer.publish(50)
    relay = crew.start()
    until(crew.lines, "the first line")
    for _ in range(2):
        proxy.stall()
        producer.publish(50)
        time.sleep(3)  # past the deadlines
        assert outbox("status", "--store", shop.store, fails=True) == ""
        assert not relay.dead, relay.log()
        proxy.flow()
        until(lambda: len(crew.lines()) >= len(producer.ledger.committed), "delivery to go on")
    ledger = producer.finish()
    relay.end()
    shop.store = direct
    crew.drain()
    expect_good(ledger, crew, crew.fenced())


def test_slow_and_cut_again_and_again(make, server, proxy, rng):
    shop, crew, producer = make(server, 2, "?timeout=5s&connect_timeout=5s")
    direct, shop.store = shop.store, through(shop, server, proxy)
    proxy.default = Fault(rate=200_000)
    producer.publish(50)
    producer.start(600)
    relay = crew.start()
    until(lambda: "relay.start" in relay.log(), "the relay to begin: before that it would just end")
    for _ in range(25):
        time.sleep(rng.uniform(.02, .4))
        proxy.cut()
    proxy.default = Fault(reset=False)
    proxy.cut()
    ledger = producer.finish()
    until(lambda: len(crew.lines()) >= len(ledger.committed), f"delivery; the relay says:\n{relay.log()}")
    relay.end()
    shop.store = direct
    crew.drain()
    expect_good(ledger, crew, crew.fenced())
