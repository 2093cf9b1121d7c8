# SPDX-License-Identifier: Apache-2.0
"""The relay and a receiver that throttles, is away, refuses some, or is slow: nothing is lost, nobody is charged."""
import collections
import json
import os
import random
import sys

import pytest

from servers import LOOPBACK, ROOT
from recorder import Recorder

sys.path.insert(0, str(ROOT / "tests" / "system" / "integration"))
# pylint: disable=wrong-import-position
import kit
from oracle import judge
from producer import Producer


@pytest.fixture(name="shop")
def make_shop(tmp_path):
    return kit.Shop(str(tmp_path), 2)


@pytest.fixture(name="producer")
def make_producer(shop, request):
    made = Producer(shop, random.Random(f"{kit.SEED}/{request.node.name}"))
    yield made
    made.close()


@pytest.fixture(name="relay")
def start_relay(shop, tmp_path):
    made = []

    def start(url, keys=""):
        (tmp_path / "outbox.yaml").write_text(
            f"sources: [{{ name: shop, store: '{shop.store}' }}]\n"
            f"targets: [{{ name: hook, to: '{url}' {keys} }}]\n"
            "relay: { breaker_min: 50ms, breaker_max: 200ms, lease: 3s }\n")
        made.append(kit.Relay(str(tmp_path / "relay.log"), ["--config", str(tmp_path / "outbox.yaml")], dict(os.environ)))
        return made[-1]

    yield start
    for one in made:
        if not one.dead:
            one.end()


def target(shop):
    return shop.status()["targets"][0]


def delivered(shop):
    targets = shop.status()["targets"]
    return targets[0]["delivered"] if targets else 0


def charged(shop):
    page = kit.outbox("list", "--store", shop.store, "--json", "--limit", 1000)
    return sum(delivery["attempts"] for delivery in page["deliveries"])


def see_all(producer, receiver):
    """Everything that was acknowledged is what was committed, each key in order by first arrival."""
    verdict = judge(producer.finish(), [r.body + b"\n" for r in receiver.requests if r.taken], 0)
    assert not verdict.problems, verdict.problems


class Moody:
    """Answers by mood, and remembers what it took."""

    def __init__(self):
        self.mood = None

    def __call__(self, request):
        answer = self.mood(request) if self.mood else None
        request.taken = answer is None
        return answer


@pytest.mark.parametrize("status,headers", [(429, [("Retry-After", "1")]), (503, []), (401, []), (403, []), (502, [])])
def test_the_whole_target_is_out(shop, producer, relay, status, headers):
    moody = Moody()
    with Recorder(moody) as receiver:
        moody.mood = lambda request: (status, headers, b"not now")
        producer.publish(60)
        log = relay(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}")
        kit.until(lambda: f"{status}: not now" in log.log(), "the outage")
        kit.until(lambda: len(receiver.requests) > 3, "the relay to ask again")
        assert delivered(shop) == 0 and target(shop)["failed"] == 0
        moody.mood = None
        kit.until(lambda: delivered(shop) == len(producer.ledger.committed), "everything to arrive")
        assert charged(shop) == 0
        see_all(producer, receiver)


def test_one_message_that_is_answered_as_an_outage_stops_nobody(shop, producer, relay):
    """A firewall that answers 403 to what one message contains: the others go on, and it fails in the end."""
    moody = Moody()
    with Recorder(moody) as receiver:
        producer.publish(40)
        poison = producer.ledger.committed[10].id
        moody.mood = lambda r: (403, [], b"no such words here") if poison.encode() in r.body else None
        relay(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}", ", order: none")
        kit.until(lambda: delivered(shop) >= len(producer.ledger.committed) - 1, "the others")


def test_a_refused_message_fails_alone(shop, producer, relay):
    moody = Moody()
    with Recorder(moody) as receiver:
        producer.publish(40)
        bad = producer.ledger.committed[5].id
        moody.mood = lambda r: (422, [], b'"total" must be >= 0') if bad.encode() in r.body else None
        relay(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}")
        kit.until(lambda: delivered(shop) == len(producer.ledger.committed) - 1, "the others")
        (failed,) = kit.outbox("list", "--store", shop.store, "--state", "failed", "--json")["deliveries"]
        assert failed["id"] == bad and failed["error"].startswith('422: "total" must be >= 0')
        shown = kit.outbox("show", bad, "--store", shop.store, "--json", "--payload")["failed_attempts"]
        assert [(a["native"], a["verdict"], a["answer"]) for a in shown] == [(422, "rejected", '"total" must be >= 0')]


def test_one_of_a_batch_is_refused(shop, producer, relay):
    """Nobody knows which: it is found, and the others arrive."""
    moody = Moody()
    with Recorder(moody) as receiver:
        producer.publish(60)
        bad = producer.ledger.committed[33].id
        moody.mood = lambda r: (422, [], b"one is wrong") if bad.encode() in r.body else None
        relay(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}&batch=20")
        kit.until(lambda: delivered(shop) == len(producer.ledger.committed) - 1, "the others")
        (failed,) = kit.outbox("list", "--store", shop.store, "--state", "failed", "--json")["deliveries"]
        assert failed["id"] == bad
        seen = collections.Counter(e["id"] for r in receiver.requests if r.taken for e in json.loads(r.body))
        assert set(seen.values()) == {1} and len(seen) == len(producer.ledger.committed) - 1


def test_secrets_are_not_shown(shop, producer, relay, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("whsec_" + "QUJD" * 10)
    secret.chmod(0o600)
    with Recorder(lambda r: (500, [], b"token hunter22 is odd")) as receiver:
        producer.publish(1)
        token = tmp_path / "token"
        token.write_text("hunter22")
        token.chmod(0o600)
        log = relay(f"http://127.0.0.1:{receiver.port}/?q=1#{LOOPBACK}&secret_file={secret}&token_file={token}")
        kit.until(lambda: len(receiver.requests) >= 1 and target(shop)["waiting"], "a refusal")
        shown = log.log() + kit.outbox("list", "--store", shop.store) + json.dumps(target(shop))
    assert "hunter22" not in shown and "QUJD" not in shown and "***" in shown
