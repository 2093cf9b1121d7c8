# SPDX-License-Identifier: Apache-2.0
"""Links that are slow or long, and a server that lets nobody in: a relay asks for less, sleeps, and does not knock all
the time."""
import json

import pytest
from kit import outbox, until
from proxy import Fault, Proxy

MESSAGES = 200
PAYLOAD = 4096
RATE = 400_000  # bytes a second: all of them in one claim take two seconds
LOOKS = 20
KNOCKS = 10
HELD = """SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND objsubid = 1
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32 | objid::bigint) = outbox_bell_key()"""


@pytest.fixture
def proxies(server):
    """A way to the server of one's own: proxies() gives another proxy."""
    made = []

    def build():
        made.append(Proxy(server.port))
        return made[-1]

    yield build
    for proxy in made:
        proxy.close()


def by_way_of(shop, server, proxy):
    """The store's URL, by way of the proxy."""
    return shop.store.replace(f":{server.port}/", f":{proxy.port}/")


def publish(shop, messages=MESSAGES, payload=PAYLOAD):
    with shop.connect() as db:
        return [row[0] for row in db.execute(
            "INSERT INTO outbox_message (type, key, payload) SELECT 't', 'k', to_json(repeat('x', ?))::text"
            " FROM generate_series(1, ?) RETURNING id", (payload, messages)).fetchall()]


@pytest.mark.parametrize("options, lease", [("?timeout=30s", "1s"), ("?timeout=1s", "1s"), ("?timeout=1s", "15s")],
                         ids=["past the lease", "past the timeout", "past a short timeout"])
def test_claims_that_take_too_long_get_smaller(make, server, proxies, options, lease):
    """
    A whole claim takes longer to come than the lease, or than a call may take: asked for again and again, it would
    never be sent. Less of it comes in time.
    """
    shop, crew, _ = make(server, 1, options)
    proxy = proxies()
    proxy.default = Fault(reset=False, rate=RATE)
    ids = publish(shop)
    shop.store = by_way_of(shop, server, proxy)
    relay = crew.start(lease=lease, batch=MESSAGES)
    until(lambda: len(crew.lines()) >= MESSAGES, f"delivery; the relay says:\n{relay.log()}")
    relay.end()
    assert [json.loads(line)["id"] for line in crew.lines()] == ids
    claims = [row[0] for row in shop.rows("SELECT claim_count FROM outbox_receipt WHERE claim_count > 0 ORDER BY n")]
    assert claims[0] == MESSAGES, f"not a whole claim to begin with: {claims}"
    print(f"claims: {claims}")


def test_bell_stays_hung_over_a_long_link(make, server, proxies):
    """Its lanes look one after the other before the relay sleeps: that takes as many round trips, and is worth it."""
    shop, crew, _ = make(server, 8)
    outbox("init", "--store", shop.url, "--doorbell")
    proxy = proxies()
    proxy.default = Fault(reset=False, delay=.02)
    shop.store = by_way_of(shop, server, proxy)
    relay = crew.start("--poll", "1s", lease="15s")
    until(lambda: shop.held_by(relay), f"the relay to take its lanes; it says:\n{relay.log()}")
    row = []

    def sleeps():
        """As often in a row as it was looked: a relay that lets go now and then begins at nought."""
        row[:] = row + [1] if db.execute(HELD).fetchone()[0] else []
        db.execute("SELECT pg_sleep(.1)")
        return len(row) >= LOOKS

    with shop.connect() as db:
        until(sleeps, f"the bell to be hung in {LOOKS} looks in a row")
    publish(shop, 1)
    until(crew.lines, f"delivery; the relay says:\n{relay.log()}")


class Runner:
    """A relay with much to do, on a way to its store that can be shut."""

    def __init__(self, shop, crew, server, proxy, *options):
        self.proxy = proxy
        proxy.default = Fault(reset=False, rate=100_000)  # slow: much is left when the door is shut
        publish(shop, 1000, 10)
        shop.store = by_way_of(shop, server, proxy)
        self.relay = crew.start(*options, batch=5)
        until(crew.lines, f"the first line; the relay says:\n{self.relay.log()}")

    def shut(self):
        self.proxy.refusing = True
        self.proxy.cut()

    def open(self):
        self.proxy.default = Fault(reset=False)
        self.proxy.refusing = False


def test_until_idle_does_not_knock_all_the_time(make, server, proxies, tmp_path):
    """While nobody is let in, a relay that runs until idle tries about as often as one that just runs."""
    runners = []
    for options in [], ["--until-idle"]:
        shop, crew, _ = make(server)
        crew.folder = tmp_path / str(len(runners))
        crew.folder.mkdir()
        crew.consumer = str(crew.folder / "consumer.jsonl")
        runners.append(Runner(shop, crew, server, proxies(), *options))
    for runner in runners:
        runner.shut()
    usual, patient = runners
    until(lambda: usual.proxy.refused >= KNOCKS, f"{KNOCKS} connections of a relay to be refused")
    before, knocks = usual.proxy.refused, patient.proxy.refused
    print(f"{before} attempts of one that runs, {knocks} of one that runs until idle")
    assert not patient.relay.dead, patient.relay.log()
    assert 0 < knocks < 5 * before, f"{knocks} attempts, where another made {before}"
    patient.open()
    patient.relay.finish()
    assert len(crew.lines()) >= 1000
