# SPDX-License-Identifier: Apache-2.0
"""Each thing that a broker refuses becomes the verdict of its own message, and of no other."""
import pytest
from conftest import message


def batch(n, **fields):
    return [message(f"m-{i}", **fields) for i in range(n)]


def test_every_seventh_is_unroutable(broker, probe, name):
    broker.make(name, name, bind="good")
    messages = [message(f"m-{i}", type="bad" if i % 7 == 6 else "good") for i in range(100)]
    answer = probe(broker.url(f"?exchange={name}")).publish(messages)
    assert answer.status == "ok"
    for i, (verdict, native, reason) in enumerate(answer.items):
        assert verdict == ("RETRY" if i % 7 == 6 else "ACKED")
        if verdict == "RETRY":
            assert native == 312
            assert "unroutable" in reason and name in reason and '"bad"' in reason
    assert broker.ids(name) == [f"m-{i}" for i in range(100) if i % 7 != 6]


def test_large_messages_come_back_while_more_are_sent(broker, probe, name):
    broker.make(name)
    p = probe(broker.url(f"?exchange={name}"))
    assert p.publish(batch(60, size=700_000)).verdicts == ["RETRY"] * 60
    # and the connection is as good as before
    broker.make(name, name)
    assert p.publish(batch(3)).verdicts == ["ACKED"] * 3


def test_mandatory_is_for_events_to_choose(broker, probe, name):
    broker.make(name)
    answer = probe(broker.url(f"?exchange={name}&mandatory=no")).publish(
        [message("e"), message("c", kind="command")])
    assert answer.verdicts == ["ACKED", "RETRY"]


def test_a_missing_exchange_fails_its_own_messages(broker, probe, name):
    broker.make(name, name)
    messages = [message(f"m-{i}", topic="no-such" if i % 10 == 3 else name) for i in range(100)]
    p = probe(broker.url("?exchange={topic}"))
    for _ in range(2):
        answer = p.publish(messages)
        assert answer.status == "ok"
        for i, (verdict, native, reason) in enumerate(answer.items):
            assert verdict == ("RETRY" if i % 10 == 3 else "ACKED"), reason
            if verdict == "RETRY":
                assert native == 404 and "no-such" in reason
        assert broker.ids(name) == [f"m-{i}" for i in range(100) if i % 10 != 3]
    # somebody made it meanwhile
    broker.make("no-such", name + "2")
    assert set(p.publish(messages).verdicts) == {"ACKED"}
    with broker.connect() as connection:
        connection.channel().exchange_delete("no-such")
    # and removed it, after it was found: now the channel is closed under the window
    answer = p.publish(messages)
    assert answer.status == "ok"
    for i, verdict in enumerate(answer.verdicts):
        assert verdict == "RETRY" if i % 10 == 3 else verdict in ("ACKED", "UNKNOWN")
    again = [m for m, verdict in zip(messages, answer.verdicts) if verdict == "UNKNOWN"]
    assert not again or p.publish(again).verdicts == ["ACKED"] * len(again)


def test_a_missing_place_is_for_people_to_repair(broker, probe, name):
    missing = probe(broker.url(f"?exchange={name}"), connected=False)
    answer = missing.connect()
    assert answer.status == "config" and answer.native == 404 and name in answer.text
    broker.make(name, name)
    assert missing.connect().status == "ok"
    with broker.connect() as connection:
        connection.channel().exchange_delete(name)
    answer = missing.publish(batch(5))
    assert answer.status == "config" and answer.native == 404
    assert set(answer.verdicts) == {"UNKNOWN"}
    assert missing.connect().status == "config"
    vhost = probe(f"amqp://guest:guest@127.0.0.1:{broker.port}/nowhere?queue=q", connected=False).connect()
    assert vhost.status == "config" and vhost.native == 530 and "nowhere" in vhost.text


def test_what_a_full_queue_refuses_is_retried(broker, probe, name):
    broker.make(name, name, x_max_length=10, x_overflow="reject-publish")
    answer = probe(broker.url(f"?exchange={name}")).publish(batch(50))
    assert answer.status == "ok"
    assert answer.verdicts.count("ACKED") >= 10 and "RETRY" in answer.verdicts
    assert all("nack" in reason for verdict, _, reason in answer.items if verdict == "RETRY")
    acked = [f"m-{i}" for i, verdict in enumerate(answer.verdicts) if verdict == "ACKED"]
    assert broker.ids(name) == acked


def test_drop_head_acknowledges_what_it_drops(broker, probe, name):
    """The broker's choice, and the reason why the documents warn of it."""
    broker.make(name, name, x_max_length=10)
    assert set(probe(broker.url(f"?exchange={name}")).publish(batch(50)).verdicts) == {"ACKED"}
    assert len(broker.ids(name)) == 10


def test_too_large_is_rejected_alone(broker, probe, name):
    broker.make(name, name)
    broker.ctl("eval", "application:set_env(rabbit, max_message_size, 5000), persistent_term:put(max_message_size, 5000).")
    try:
        messages = [message(f"m-{i}", size=6000 if i in (30, 31, 70) else 100) for i in range(100)]
        p = probe(broker.url(f"?exchange={name}"))
        first = p.publish(messages)
        assert first.status == "ok"
        assert [i for i, v in enumerate(first.verdicts) if v == "REJECTED"] == [30, 31, 70]
        assert first.items[30][1] == 406 and "larger" in first.items[30][2]
        assert set(first.verdicts) <= {"REJECTED", "ACKED", "UNKNOWN"}
        second = p.publish(messages)
        assert second.verdicts == ["REJECTED" if i in (30, 31, 70) else "ACKED" for i in range(100)]
    finally:
        broker.ctl("eval", "application:set_env(rabbit, max_message_size, 134217728), persistent_term:put(max_message_size, 134217728).")


def test_what_amqp_cannot_carry_is_rejected_before_the_wire(broker, probe, name):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}&routing_key={{type}}.{{key}}"))
    answer = p.publish([message("a", type="t" * 200, key="k" * 54), message("b", type="t" * 200, key="k" * 55),
                        message("i" * 255, key="k"), message("é" * 128, key="k"), message("c")])
    assert answer.verdicts == ["ACKED", "REJECTED", "ACKED", "REJECTED", "REJECTED"]
    assert "routing_key has 256 bytes" in answer.items[1][2]
    assert "id has 256 bytes" in answer.items[3][2]
    assert "no key" in answer.items[4][2]


def test_properties(broker, probe, name):
    broker.make(name, name)
    assert probe(broker.url(f"?exchange={name}")).publish([message("id-1", key="42")]).verdicts == ["ACKED"]
    [(properties, body)] = broker.take(name)
    assert body == b"x" * 20
    assert (properties.message_id, properties.type, properties.delivery_mode) == ("id-1", "order.placed", 2)
    assert (properties.content_type, properties.timestamp) == ("text/plain", 1763197200)
    assert properties.headers["cloudEvents:id"] == "id-1"
    assert properties.headers["cloudEvents:specversion"] == "1.0"


def test_declare(broker, probe, name):
    url = broker.url(f"?exchange={name}&declare=topic&queue={name}&bind=order.%23")
    p = probe(url)
    assert p.publish([message("a"), message("b", type="bill.sent")]).verdicts == ["ACKED", "RETRY"]
    assert broker.ids(name) == ["a"]
    assert p.ask("check 5000").lines[0].startswith(f'0 queue "{name}" is a quorum queue')
    assert probe(url).connect().status == "ok"  # twice is once
    other = probe(url.replace("declare=topic", "declare=fanout"), connected=False).connect()
    assert other.status == "config" and other.native == 406
    other = probe(f"{url}&queue_type=classic", connected=False).connect()
    assert other.native == 406 and "give queue_type= or declare= as it is" in other.text


def test_check(broker, probe, name):
    broker.make(None, name)
    p = probe(broker.url(f"?routing_key={name}"))
    assert p.publish([message("a")]).verdicts == ["ACKED"]
    assert p.ask("check 5000").lines[0].startswith(f'2 queue "{name}" is a classic queue')
    assert p.publish([message("b")]).verdicts == ["ACKED"]
    gone = probe(broker.url("?routing_key=no-such-queue"))
    assert gone.ask("check 5000").lines[0].startswith("3 ")
    broker.make(name)
    assert "every queue" in probe(broker.url(f"?exchange={name}")).ask("check 5000").lines[0]
    assert probe(broker.url(f"?exchange={name}&mandatory=no")).ask("check 5000").lines[0].startswith("2 ")


@pytest.mark.parametrize("level,words,arguments", [
    (2, "x-max-length", {"x_max_length": 10}),
    (2, "x-max-length-bytes", {"x_max_length_bytes": 10000}),
    (2, "x-message-ttl", {"x_message_ttl": 1000}),
    (2, "x-expires", {"x_expires": 600000}),
    (1, "arguments of its own (x-dead-letter-exchange)", {"x_dead_letter_exchange": "dead"}),
])
def test_check_tells_what_a_queue_does_to_its_messages(broker, probe, name, level, words, arguments):
    broker.make(None, name, x_queue_type="quorum", **arguments)
    (line,) = probe(broker.url(f"?routing_key={name}")).ask("check 5000").lines
    assert line.startswith(f"{level} ") and words in line and name in line, line


def test_check_of_a_stream_and_of_a_queue_that_is_named_like_an_argument(broker, probe, name):
    broker.make(None, name, x_queue_type="stream")
    assert f'0 queue "{name}" is a stream' in probe(broker.url(f"?routing_key={name}")).ask("check 5000").lines[0]
    broker.make(None, "durable", x_queue_type="quorum", x_max_length=10)
    assert "x-max-length" in probe(broker.url("?routing_key=durable")).ask("check 5000").lines[0]


@pytest.fixture
def relay_user(broker, name):
    """A user that may use all exchanges, and on the exchange `name` routing keys that begin with good."""
    broker.ctl("add_user", name, "pw")
    broker.ctl("set_permissions", name, ".*", ".*", ".*")
    broker.ctl("set_topic_permissions", name, name, "^good", ".*")
    yield f"{name}:pw"
    broker.ctl("delete_user", name)


@pytest.mark.parametrize("exchange", ["fixed", "{topic}"])
def test_a_forbidden_routing_key_is_its_messages_alone(broker, probe, name, relay_user, exchange):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={exchange.replace('fixed', name)}&routing_key={{type}}", login=relay_user))
    bad = "bad." + "x" * 200  # the broker's words end before the exchange
    left = [message(f"m-{i}", type={3: "bad.x", 7: bad}.get(i, "good.x"), topic=name) for i in range(10)]
    for _ in range(4):
        answer = p.publish(left)
        assert answer.status == "ok", answer
        for one, (verdict, native, reason) in zip(left, answer.items):
            assert verdict in ("ACKED", "UNKNOWN") if one[1] == "good.x" else verdict in ("RETRY", "UNKNOWN"), reason
            assert verdict != "RETRY" or (native == 403 and one[1][:100] in reason)
        left = [one for one, verdict in zip(left, answer.verdicts) if verdict == "UNKNOWN"]
        if not left:
            break
    assert not left
    assert set(broker.ids(name)) == {f"m-{i}" for i in range(10) if i not in (3, 7)}


def test_the_only_routing_key_is_forbidden(broker, probe, name, relay_user):
    broker.make(name, name)
    p = probe(broker.url(f"?exchange={name}&routing_key=bad", login=relay_user))
    answer = p.publish(batch(5))
    assert answer.status == "auth" and answer.native == 403 and "'bad'" in answer.text
    assert set(answer.verdicts) == {"UNKNOWN"}
