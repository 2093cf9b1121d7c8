# SPDX-License-Identifier: Apache-2.0
"""A broker that is silent, slow, full or hostile to its user: deadlines hold, nothing unconfirmed is acknowledged."""
import os
import pathlib
import signal
import sys
import time

import pytest
from conftest import message

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from proxy import Fault, Proxy  # noqa: E402


def batch(n, prefix="m", **fields):
    return [message(f"{prefix}-{i}", **fields) for i in range(n)]


def is_loss(verdict):
    return verdict in ("UNKNOWN", "UNSET")


@pytest.fixture
def proxy(broker):
    made = Proxy(broker.port)
    yield made
    made.flow()
    made.cut()


@pytest.mark.parametrize("n,size", [(100, 20), (40, 1_000_000), (1, 15_000_000)])
def test_a_silent_network_costs_the_deadline(broker, probe, name, proxy, n, size):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}", port=proxy.port))
    assert p.publish(batch(3, "a")).verdicts == ["ACKED"] * 3
    proxy.stall()
    answer = p.publish(batch(n, "b", size=size), 1500)
    assert answer.status == "timedout"
    assert all(map(is_loss, answer.verdicts))
    assert p.connect(700).status == "timedout"
    proxy.flow()
    proxy.cut()
    assert p.connect().status == "ok"
    assert p.publish(batch(3, "c")).verdicts == ["ACKED"] * 3
    arrived = broker.ids(name)
    assert {f"a-{i}" for i in range(3)} | {f"c-{i}" for i in range(3)} <= set(arrived)


def test_a_slow_broker_is_waited_for(broker, probe, name, proxy):
    broker.make(name, name)
    proxy.default = Fault(rate=30_000, reset=False)
    p = probe(broker.url(f"?exchange={name}", port=proxy.port))
    assert p.publish(batch(100)).verdicts == ["ACKED"] * 100
    assert broker.ids(name) == [f"m-{i}" for i in range(100)]


def test_a_stopped_broker(broker, probe, name):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}"))
    os.kill(broker.pid(), signal.SIGSTOP)
    try:
        answer = p.publish(batch(200, size=20_000), 1500)
        assert answer.status == "timedout" and all(map(is_loss, answer.verdicts))
        assert p.connect(700).status == "timedout"
    finally:
        os.kill(broker.pid(), signal.SIGCONT)
    assert p.connect().status == "ok"
    assert p.publish(batch(200)).verdicts == ["ACKED"] * 200
    assert {f"m-{i}" for i in range(200)} <= set(broker.ids(name))


def test_an_alarm_is_an_outage(broker, probe, name):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}"))
    broker.ctl("set_vm_memory_high_watermark", "0.0000001")
    try:
        for _ in range(2):
            answer = p.publish(batch(100, size=20_000), 2000)
            assert answer.status == "full" and "memory" in answer.text, answer
            assert "RETRY" not in answer.verdicts and "REJECTED" not in answer.verdicts
            assert p.connect().status == "ok"
        # it ends while a batch waits
        p.begin(batch(100, "late"))
        time.sleep(.5)
    finally:
        broker.ctl("set_vm_memory_high_watermark", "absolute", "1GB")
    assert p.answer().verdicts == ["ACKED"] * 100
    assert {f"late-{i}" for i in range(100)} <= set(broker.ids(name))


def test_no_more_connections_is_an_outage(broker, probe, name):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}"), connected=False)
    broker.ctl("set_vhost_limits", "-p", "/", '{"max-connections": 0}')
    try:
        answer = p.connect()
        assert answer.status == "conn" and answer.native == 530 and "limit" in answer.text, answer
    finally:
        broker.ctl("clear_vhost_limits", "-p", "/")
    assert p.connect().status == "ok"
    assert p.publish(batch(3)).verdicts == ["ACKED"] * 3


def test_wrong_password(broker, probe, name):
    answer = probe(broker.url("?queue=q", login="guest:secret-42"), connected=False).connect()
    assert answer.status == "auth" and answer.native == 403
    assert "secret-42" not in answer.text


def test_credentials_revoked_while_running(broker, probe, name):
    broker.make(name, name)
    broker.ctl("add_user", name, "pw-31")
    broker.ctl("set_permissions", name, ".*", ".*", ".*")
    p = probe(broker.url(f"?exchange={name}", login=f"{name}:pw-31"))
    assert p.publish(batch(3)).verdicts == ["ACKED"] * 3
    broker.ctl("delete_user", name)
    answer = p.publish(batch(3, "late"))
    assert answer.status in ("conn", "auth") and all(map(is_loss, answer.verdicts))
    answer = p.connect()
    assert answer.status == "auth" and "pw-31" not in answer.text


def test_permission_for_some_exchanges(broker, probe, name):
    broker.make(name, name)
    broker.make(name + "-secret", name)
    broker.ctl("add_user", name, "pw")
    broker.ctl("set_permissions", name, "", f"^{name}$", ".*")
    login = f"{name}:pw"
    # one exchange: the target's trouble, nobody is charged
    answer = probe(broker.url(f"?exchange={name}-secret", login=login)).publish(batch(3))
    assert answer.status == "auth" and answer.native == 403 and all(map(is_loss, answer.verdicts))
    # many: the guilty alone
    p = probe(broker.url("?exchange={topic}", login=login))
    messages = [message(f"m-{i}", topic=name + ("-secret" if i in (3, 50) else "")) for i in range(100)]
    answer = p.publish(messages)
    assert answer.status == "ok"
    assert [(i, n) for i, (v, n, _) in enumerate(answer.items) if v == "RETRY"] == [(3, 403), (50, 403)]
    assert set(answer.verdicts) <= {"ACKED", "UNKNOWN", "RETRY"}
    assert p.publish(batch(10, topic=name)).verdicts == ["ACKED"] * 10


def test_the_broker_closes_the_connection(broker, probe, name):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}"))
    broker.ctl("close_all_connections", "maintenance at noon")
    answer = p.publish(batch(5))
    assert answer.status == "conn" and answer.native == 320 and "maintenance at noon" in answer.text
    assert all(map(is_loss, answer.verdicts))
    assert p.connect().status == "ok"
    assert p.publish(batch(5)).verdicts == ["ACKED"] * 5


def test_heartbeats_while_nobody_publishes(broker, probe, name):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}&heartbeat=1"))
    assert p.publish(batch(1)).verdicts == ["ACKED"]
    time.sleep(5)  # the broker ends a connection after two seconds of silence
    assert p.publish(batch(1)).verdicts == ["ACKED"]


def test_a_second_address_is_tried(broker, probe, name):
    broker.make(name, name)
    p = probe(f"amqp://guest:guest@127.0.0.1:1,127.0.0.1:{broker.port}/?exchange={name}")
    assert p.publish(batch(3)).verdicts == ["ACKED"] * 3
