# SPDX-License-Identifier: Apache-2.0
"""A slow way to a real broker: it is waited for until the deadline, and what is ACKED is there."""
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from proxy import Fault, Proxy  # noqa: E402


@pytest.fixture
def proxy():
    with Proxy(int(os.environ["KAFKA_PROXIED"]), at=int(os.environ["KAFKA_PROXY"])) as made:
        yield made


def batch(count):
    return [(f"m-{i}", f"key-{i % 5}", None, 1000) for i in range(count)]


def url(proxy, topic):
    return f"kafka://127.0.0.1:{proxy.port}/{topic}?batch.size=20000"


def test_a_slow_broker_is_waited_for(broker, probe, proxy):
    topic = broker.topic("slow")
    proxy.default = Fault(rate=100_000, delay=.05, reset=False)
    transport = probe(url(proxy, topic))
    assert transport.connect().status == "ok"
    answer, items = transport.publish(batch(200))
    assert answer.status == "ok" and {i.verdict for i in items.values()} == {"ACKED"}
    assert [r.id for r in broker.read(topic)] == [f"m-{i}" for i in range(200)]


def test_too_slow_for_the_deadline(broker, probe, proxy):
    topic = broker.topic("slower")
    transport = probe(url(proxy, topic))
    assert transport.connect().status == "ok"
    for link in proxy.links:
        link.fault = Fault(rate=30_000, reset=False)
    proxy.default = Fault(rate=30_000, reset=False)
    # 600 KB take 20 seconds
    answer, items = transport.publish(batch(600), ms=5000)
    assert answer.status == "timedout"
    acked = {i.id for i in items.values() if i.verdict == "ACKED"}
    assert acked and {i.verdict for i in items.values()} == {"ACKED", "UNKNOWN", "UNSET"}
    assert acked <= {r.id for r in broker.read(topic)}
    assert not {i.id for i in items.values() if i.verdict == "UNSET"} & {r.id for r in broker.read(topic)}
    # what was not acknowledged comes again when the way is good
    proxy.default = Fault(reset=False)
    proxy.cut()
    assert transport.connect().status == "ok"
    answer, items = transport.publish([m for m in batch(600) if m[0] not in acked])
    assert answer.status == "ok" and {i.verdict for i in items.values()} == {"ACKED"}
    first = list(dict.fromkeys(r.id for r in broker.read(topic)))
    assert first == [f"m-{i}" for i in range(600)]
