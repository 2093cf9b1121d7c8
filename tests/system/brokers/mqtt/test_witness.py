# SPDX-License-Identifier: Apache-2.0
"""What consumers see, read by paho: topics, properties, payloads, expiry and retained messages."""
import json
import time

from rig import judge, properties

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_everything_arrives_as_it_was(server, courier, producer, witness):
    broker = server()
    reader = witness(broker.port)
    producer.publish(300)
    courier.drain(broker.url())
    assert judge(producer.finish(), reader.read()) == 0


def test_binary(server, courier, place, witness):
    broker = server()
    reader = witness(broker.port)
    ident = place(payload=b"\x00%s%n\r\n\xff", content_type="application/x-odd", key="4 2", subject="s", topic="t",
                  headers='{"Tenant":"\\u00e9","empty":""}', correlation_id="c", causation_id="p", traceparent=TRACE)
    courier.drain(broker.url("shop/{type}/{key}"))
    [message] = reader.read()
    fields = properties(message)
    assert fields.pop("time") and fields.pop("source")
    assert fields == {"specversion": "1.0", "id": ident, "type": "order.placed", "subject": "s", "partitionkey": "4 2",
                      "correlationid": "c", "causationid": "p", "kind": "event", "topic": "t", "sequence": "1",
                      "traceparent": TRACE, "Tenant": "é", "empty": ""}
    assert (message.topic, message.payload, message.qos, message.retain) == (
        "shop/order.placed/4 2", b"\x00%s%n\r\n\xff", 1, 0)
    assert message.properties.ContentType == "application/x-odd"
    assert not hasattr(message.properties, "MessageExpiryInterval")


def test_structured(server, courier, place, witness):
    broker = server()
    reader = witness(broker.port)
    ident = place(payload='{"a":  1}')
    courier.drain(broker.url(), "--envelope", "events=structured")
    [message] = reader.read()
    assert message.properties.ContentType.startswith("application/cloudevents+json")
    assert not hasattr(message.properties, "UserProperty")
    assert json.loads(message.payload)["id"] == ident and b'"data":{"a":  1}' in message.payload


def test_native(server, courier, place, witness):
    broker = server()
    reader = witness(broker.port)
    ident = place(headers='{"z":"last"}')
    courier.drain(broker.url(), "--envelope", "events=native")
    [message] = reader.read()
    fields = properties(message)
    assert fields["outbox-id"] == ident and fields["outbox-type"] == "order.placed" and fields["z"] == "last"
    assert message.payload == b'{"n":1}' and message.properties.ContentType == "application/json"


def test_3_1_1(server, courier, place, witness):
    broker = server()
    reader = witness(broker.port, version=4)
    ident = place(payload='{"a":1}')
    courier.drain(broker.url(options="?version=3.1.1"))
    [message] = reader.read()
    event = json.loads(message.payload)
    assert (event["id"], event["data"], message.topic) == (ident, {"a": 1}, "shop/order.placed")
    # it has no properties for the other envelopes
    for envelope in ("binary", "native"):
        refused = courier.start(broker.url(options="?version=3.1.1"), "--once", "--envelope", f"events={envelope}")
        assert refused.wait() == 2 and "choose the envelope structured" in refused.log(), refused.log()


def test_expiry(server, courier, place, witness):
    broker = server()
    reader = witness(broker.port)
    now = time.time()
    place(expires_at=int((now + 3600) * 1e6))
    courier.drain(broker.url())
    [message] = reader.read()
    # the broker counts down what it hands on
    assert 0 < message.properties.MessageExpiryInterval <= 3600
    assert message.properties.MessageExpiryInterval >= 3600 - (time.time() - now) - 2


def test_retained_only_when_asked(server, courier, place, witness):
    broker = server()
    place("plain")
    courier.drain(broker.url())
    place("kept")
    courier.drain(broker.url(options="?retain=yes"))
    [message] = witness(broker.port).read()
    assert (message.topic, message.retain) == ("shop/kept", 1)
