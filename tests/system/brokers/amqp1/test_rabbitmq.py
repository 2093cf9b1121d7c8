# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ 3.10 with rabbitmq_amqp1_0: messages arrive, and doctor says what is wrong with its word."""
import os

import pika
import pytest
from conftest import message

PORT = os.environ.get("OUTBOX_TEST_RABBITMQ_PORT")


@pytest.fixture
def queue(name):
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(PORT), heartbeat=0))
    channel = connection.channel()
    channel.queue_declare(name, durable=True)
    yield channel
    connection.close()


def url(address):
    return f"amqp1://guest:guest@127.0.0.1:{PORT}/?address={address}"


def test_messages_arrive(probe, name, queue):
    p = probe(url(f"/amq/queue/{name}"))
    assert p.publish([message(f"m-{i}", key="42", headers="tenant=acme") for i in range(300)]).verdicts == ["ACKED"] * 300
    for i in range(300):
        _, properties, body = queue.basic_get(name, auto_ack=True)
        assert properties.message_id == f"m-{i}" and properties.delivery_mode == 2 and body.endswith(b"x" * 20)
        # in 3.10 a consumer of 0-9-1 finds the sections of AMQP 1.0 encoded in headers of its own
        assert b"tenant" in properties.headers["x-amqp-1.0-app-properties"]


def test_by_exchange_and_type(probe, name, queue):
    queue.exchange_declare(name, "topic", durable=True)
    queue.queue_bind(name, name, "order.*")
    p = probe(url(f"/exchange/{name}/{{type}}"))
    assert p.publish([message("a", "order.placed"), message("b", "order.paid")]).verdicts == ["ACKED"] * 2
    assert [queue.basic_get(name, auto_ack=True)[1].message_id for _ in range(2)] == ["a", "b"]


def test_a_missing_place_is_for_people_to_repair(probe, name):
    answer = probe(url(f"/exchange/no-{name}/x"), connected=False).connect()
    assert answer.status == "auth" and f"no-{name}" in answer.text, answer


def test_a_missing_place_among_others_is_charged_alone(probe, name, queue):
    queue.exchange_declare(name, "fanout", durable=True)
    queue.queue_bind(name, name)
    p = probe(url("/exchange/{topic}/x"))
    left = [message(f"m-{i}", topic=f"no-{name}" if i == 3 else name) for i in range(8)]
    for _ in range(4):
        answer = p.publish(left)
        for one, verdict in zip(left, answer.verdicts):
            assert verdict in (("RETRY", "UNSET") if one[0] == "m-3" else ("ACKED", "UNKNOWN", "UNSET")), answer
        left = [one for one, verdict in zip(left, answer.verdicts) if verdict in ("UNKNOWN", "UNSET")]
        if not left:
            break
        assert answer.status == "ok" or p.connect().status == "ok"
    assert not left


def test_a_wrong_password(probe, name):
    answer = probe(f"amqp1://guest:wrong@127.0.0.1:{PORT}/{name}", connected=False).connect()
    assert answer.status == "auth", answer


def test_what_no_queue_takes_is_accepted_and_lost(probe, name, queue):
    """So doctor reports an error."""
    queue.exchange_declare(name, "topic", durable=True)
    p = probe(url(f"/exchange/{name}/nobody"))
    assert p.publish([message("a")]).verdicts == ["ACKED"]
    (line,) = p.ask("check 5000").lines
    assert line.startswith("3 ") and "RabbitMQ 3." in line and "lost" in line, line
