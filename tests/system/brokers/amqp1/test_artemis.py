# SPDX-License-Identifier: Apache-2.0
"""Apache Artemis: what arrives, what it refuses, and what happens when it is killed, stopped, full or locked."""
import json
import os
import pathlib
import signal
import threading
import time

import pytest
from conftest import FOLDER, message


def batch(n, **fields):
    return [message(f"m-{i}", **fields) for i in range(n)]


# ---- what arrives


def test_every_field(broker, probe, name):
    p = probe(broker.url(f"{name}?partition=key"))
    assert p.publish([message("id-1", key="42", correlation="c-1", ttl=90000, headers="tenant=acme")]).verdicts == ["ACKED"]
    [m] = broker.read(name)
    assert (m.id, m.subject, m.group_id, m.correlation_id) == ("id-1", "order.placed", "42", "c-1")
    assert m.durable and m.inferred and bytes(m.body) == b"x" * 20 and m.content_type == "text/plain"
    assert 0 < m.ttl <= 90 and m.creation_time == 1763197200
    assert m.properties["cloudEvents:id"] == "id-1" and m.properties["cloudEvents:specversion"] == "1.0"
    assert m.properties["tenant"] == "acme" and m.annotations["x-opt-partition-key"] == "42"


@pytest.mark.parametrize("session,expected", [("key", "42"), ("correlation", "c-1"), ("none", None)])
def test_sessions(broker, probe, name, session, expected):
    p = probe(broker.url(f"{name}?session={session}"))
    assert p.publish([message("a", key="42", correlation="c-1"), message("b")]).verdicts == ["ACKED"] * 2
    assert [m.group_id for m in broker.read(name)] == [expected, None]


def test_a_structured_envelope(broker, probe, name):
    assert probe(broker.url(name), envelope=1).publish([message("a", key="42")]).verdicts == ["ACKED"]
    [m] = broker.read(name)
    assert json.loads(bytes(m.body))["id"] == "a" and m.content_type == "application/cloudevents+json"


def test_scheduled_by_artemis(broker, probe, name):
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    assert probe(broker.url(name)).publish([message("now"), message("later", headers=f"x-opt-delivery-time={later}")]).verdicts \
        == ["ACKED"] * 2
    assert broker.ask(f"queue.{name}", "MessageCount") == 2 and broker.ask(f"queue.{name}", "ScheduledCount") == 1


# ---- where to


def test_event_to_topic_and_command_to_queue(broker, probe, name):
    """The topology of other systems: kebab-case names, one for each type."""
    from proton.utils import BlockingConnection  # pylint: disable=import-outside-toplevel
    event, command = f"{name}.OrderPlaced", f"{name}.ShipOrder"
    p = probe(broker.url("{type|kebab}?capability=kind"))
    assert p.publish([message("c", command, kind="command")]).verdicts == ["ACKED"]
    assert broker.ids(f"{name}-ship-order") == ["c"]
    connection = BlockingConnection(f"amqp://127.0.0.1:{broker.port}", user="reader", password="reader-secret",
                                    allowed_mechs="PLAIN", timeout=20)
    p.publish([message("first", event)])  # makes the topic; nobody listens
    subscribers = [connection.create_receiver(f"topic://{name}-order-placed", credit=1, name=f"s{i}",
                                              options=capability("topic")) for i in range(2)]
    assert p.publish([message("e", event)]).verdicts == ["ACKED"]
    assert [s.receive(20).id for s in subscribers] == ["e", "e"]
    connection.close()


def capability(word):
    from proton import symbol  # pylint: disable=import-outside-toplevel
    from proton.reactor import ReceiverOption  # pylint: disable=import-outside-toplevel

    class Option(ReceiverOption):
        def apply(self, receiver):
            receiver.source.capabilities.put_object(symbol(word))
            receiver.source.address = receiver.source.address.replace("topic://", "")
    return Option()


def test_many_addresses_by_few_links(broker, probe, name):
    p = probe(broker.url(f"{name}-{{topic}}?links=5"))
    messages = [message(f"m-{i}", topic=str(i % 12)) for i in range(120)]
    assert p.publish(messages).verdicts == ["ACKED"] * 120
    for topic in range(12):
        assert broker.ids(f"{name}-{topic}") == [f"m-{i}" for i in range(120) if i % 12 == topic]


# ---- what it refuses


def test_an_address_that_does_not_exist(broker, probe, name):
    answer = probe(broker.url(f"fixed.{name}"), connected=False).connect()
    assert answer.status == "auth" and "amqp:not-found" in answer.text and f"fixed.{name}" in answer.text, answer
    answer = probe(broker.url("{topic}")).publish(
        [message("a", topic=name), message("b", topic=f"fixed.{name}"), message("c", topic=name)])
    assert answer.status == "ok" and answer.verdicts == ["ACKED", "RETRY", "ACKED"], answer
    assert "amqp:not-found" in answer.items[1][2]


def test_an_address_that_is_forbidden(broker, probe, name):
    answer = probe(broker.url(f"forbidden.{name}"), connected=False).connect()
    assert answer.status == "auth" and "amqp:unauthorized-access" in answer.text, answer
    answer = probe(broker.url("{topic}")).publish(
        [message("a", topic=name), message("b", topic=f"forbidden.{name}"), message("c", topic=name)])
    assert answer.status == "ok" and answer.verdicts == ["ACKED", "RETRY", "ACKED"], answer


def test_a_full_address_is_an_outage(broker, probe, name):
    p = probe(broker.url(f"small.{name}"))
    answer = p.publish(batch(100, size=10000))
    assert answer.status == "full" and set(answer.verdicts) <= {"ACKED", "UNSET", "UNKNOWN"}, answer
    assert "amqp:resource-limit-exceeded" in answer.text or "no credit" in answer.text
    acked = [f"m-{i}" for i, verdict in enumerate(answer.verdicts) if verdict == "ACKED"]
    assert 1 <= len(acked) < 100
    stored = broker.ids(f"small.{name}")
    # EFULL promises that what has no verdict was not accepted
    assert set(acked) <= set(stored)
    assert not {f"m-{i}" for i, verdict in enumerate(answer.verdicts) if verdict == "UNSET"} & set(stored)


def test_a_full_address_among_others_is_charged(broker, probe, name):
    full = probe(broker.url(f"small.{name}"))
    full.publish(batch(100, size=10000))
    messages = [message(f"n-{i}", topic=f"small.{name}" if i == 1 else name) for i in range(4)]
    answer = probe(broker.url("{topic}")).publish(messages, 8000)
    assert answer.status == "ok" and answer.verdicts == ["ACKED", "RETRY", "ACKED", "ACKED"], answer


def test_an_address_that_blocks_gives_no_credit(broker, probe, name):
    p = probe(broker.url(f"blocked.{name}"))
    # the credit that it gave before counts on
    answers = [p.publish(batch(500, size=1000), 6000)]
    while answers[-1].status == "ok" and len(answers) < 5:
        answers.append(p.publish(batch(500, size=1000), 6000))
    assert answers[-1].status == "full" and "credit" in answers[-1].text, answers


def test_a_wrong_password(broker, probe, name):
    answer = probe(broker.url(name, login="relay:wrong@"), connected=False).connect()
    assert answer.status == "auth" and "wrong" not in answer.text, answer
    answer = probe(broker.url(name, login=""), connected=False).connect()
    assert answer.status == "auth", answer


def test_a_password_that_changes_while_it_runs(broker, probe, name):
    users = pathlib.Path(FOLDER, "etc/users.properties")
    before = users.read_text(encoding="utf-8")
    p = probe(broker.url(name))
    assert p.publish(batch(1)).verdicts == ["ACKED"]
    try:
        users.write_text(before.replace("relay-secret", "another"), encoding="utf-8")
        os.utime(users, (time.time() + 5, time.time() + 5))
        p.ask("disconnect")
        answer = p.connect()
        assert answer.status == "auth", answer
    finally:
        users.write_text(before, encoding="utf-8")
        os.utime(users, (time.time() + 10, time.time() + 10))
    assert p.connect().status == "ok" and p.publish(batch(2)).verdicts == ["ACKED"] * 2


# ---- what it is worth


def test_check(broker, probe, name):
    assert probe(broker.url(name)).ask("check 5000").lines == ["0 accepted when in the broker's journal"]
    (line,) = probe(broker.url("topic")).ask("check 5000").lines
    assert line.startswith("2 ") and "has no queue" in line, line


# ---- killed, stopped


def test_killed_in_the_middle(broker, probe, name):
    p = probe(broker.url(name))
    acked = set()
    for attempt in range(2):
        p.begin([message(f"{attempt}-{i}", size=2000) for i in range(3000)])
        time.sleep(0.05 + attempt * 0.15)
        broker.kill()
        answer = p.answer()
        assert answer.status in ("conn", "ok"), answer
        acked |= {f"{attempt}-{i}" for i, verdict in enumerate(answer.verdicts) if verdict == "ACKED"}
        assert set(answer.verdicts) <= {"ACKED", "UNKNOWN", "UNSET"}
        assert p.connect(1000).status == "conn"
        broker.start()
        assert p.connect().status == "ok"
    assert acked <= set(broker.ids(name))
    assert p.publish([message("last")]).verdicts == ["ACKED"]


def test_stopped_costs_the_deadline_and_no_more(broker, probe, name):
    p = probe(broker.url(name))
    os.kill(broker.pid(), signal.SIGSTOP)
    try:
        answer = p.publish(batch(5), 1500)
        assert answer.status == "timedout" and answer.verdicts == ["UNKNOWN"] * 5, answer
        assert p.connect(1000).status == "timedout"
    finally:
        os.kill(broker.pid(), signal.SIGCONT)
    assert p.connect().status == "ok" and p.publish(batch(5)).verdicts == ["ACKED"] * 5


def test_a_short_stop_is_waited_for(broker, probe, name):
    p = probe(broker.url(name))
    os.kill(broker.pid(), signal.SIGSTOP)
    threading.Timer(1.5, os.kill, (broker.pid(), signal.SIGCONT)).start()
    assert p.publish(batch(50)).verdicts == ["ACKED"] * 50
