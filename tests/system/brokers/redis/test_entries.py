# SPDX-License-Identifier: Apache-2.0
"""What consumers see: fields, streams, trimming; and what becomes of messages that the server refuses."""
import json

import kit
from rig import entries, judge


def detours(shop):
    return {ident: (state, attempts, error) for ident, state, attempts, error in
            shop.rows("SELECT id, state, attempts, last_error FROM outbox_detour")}


def test_everything_arrives_as_it_was(server, courier, producer):
    redis = server()
    producer.publish(300)
    courier.drain(redis.url())
    assert judge(producer.finish(), entries(redis.client())) == 0


def test_binary_fields(server, courier, place):
    redis = server()
    ident = place(payload=b"\x00%s%n\r\n$5\r\n\xff", content_type="application/x-odd", key="42",
                  headers='{"id":"not ours","data":"%s","Tenant":"\\u00e9"}', subject="s", topic="t",
                  correlation_id="c", causation_id="p")
    courier.drain(redis.url("?stream=shop:{type}"))
    [fields] = entries(redis.client(), "shop:order.placed")
    assert fields.pop("time")
    assert fields == {
        "specversion": b"1.0", "id": ident.encode(), "source": fields["source"], "type": b"order.placed",
        "subject": b"s", "partitionkey": b"42", "correlationid": b"c", "causationid": b"p", "kind": b"event",
        "topic": b"t", "sequence": b"1", "datacontenttype": b"application/x-odd",
        "data": b"\x00%s%n\r\n$5\r\n\xff",
        "header.id": b"not ours", "header.data": b"%s", "header.Tenant": "é".encode()}


def test_native_fields(server, courier, place):
    redis = server()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    ident = place(payload=b"\x00\x01", content_type="application/x-odd", key="42", traceparent=trace,
                  headers='{"payload":"mine","traceparent":"shadowed","z":"last"}')
    courier.drain(redis.url(), "--envelope", "events=native")
    [fields] = entries(redis.client())
    assert fields.pop("outbox-time")
    assert fields == {
        "outbox-id": ident.encode(), "outbox-source": fields["outbox-source"], "outbox-type": b"order.placed",
        "outbox-key": b"42", "outbox-kind": b"event", "outbox-attempt": b"1", "traceparent": trace.encode(),
        "content-type": b"application/x-odd", "payload": b"\x00\x01",
        "header.payload": b"mine", "header.z": b"last"}


def test_structured_is_one_field(server, courier, place):
    redis = server()
    ident = place(payload='{"a":  1}')
    courier.drain(redis.url(), "--envelope", "events=structured")
    [fields] = entries(redis.client())
    assert list(fields) == ["event"]
    event = json.loads(fields["event"])
    assert (event["id"], event["data"]) == (ident, {"a": 1})
    assert b'"data":{"a":  1}' in fields["event"]


def test_database_and_default_stream(server, courier, place):
    redis = server()
    place()
    courier.drain(redis.url("3"))
    assert redis.client(db=3).xlen("events") == 1
    assert redis.client().keys() == []


def test_a_database_that_is_not_there(server, courier, place):
    redis = server()
    place()
    relay = courier.start(redis.url("99"))
    kit.until(lambda: "DB index is out of range" in relay.log(), "the relay to say why")
    assert "another database" in relay.log()


def test_trimmed_only_when_asked(server, courier, place):
    redis = server()
    place(times=300)
    courier.drain(redis.url("?stream=whole"), "--batch", 50)
    assert redis.client().xlen("whole") == 300


def test_maxlen(server, courier, place):
    redis = server()
    place(times=300)
    courier.drain(redis.url("?stream=exact&maxlen=10&maxlen_exact=yes"))
    assert redis.client().xlen("exact") == 10
    place(times=300)
    courier.drain(redis.url("?stream=about&maxlen=10"))
    assert 10 <= redis.client().xlen("about") < 300  # whole nodes of 100 are removed


def test_only_the_guilty_wait(server, courier, shop, place):
    """A stream that is something else, one that does not exist, one that is not permitted."""
    redis = server()
    client = redis.client()
    client.set("wrong", "a string")
    for name in ("good", "forbidden"):
        client.xadd(name, {"first": "1"})
    client.execute_command("ACL", "SETUSER", "relay", "on", ">pw", "~good", "~wrong", "~missing", "+xadd")
    ids = {kind: place(kind) for kind in ("good", "wrong", "missing", "forbidden")}
    place("good")
    courier.once(redis.url("?stream={type}&create=no", "relay:pw@"))
    assert client.xlen("good") == 3
    seen = detours(shop)
    assert set(seen) == {ids["wrong"], ids["missing"], ids["forbidden"]}
    for name, words in (("wrong", "WRONGTYPE"), ("missing", "does not exist"), ("forbidden", "NOPERM")):
        state, attempts, error = seen[ids[name]]
        assert (state, attempts) == ("pending", 1)
        assert words in error and f"stream {name}:" in error, error
    assert client.exists("missing") == 0


def test_a_wrong_stream_for_all_charges_nobody(server, courier, shop, place):
    redis = server()
    redis.client().set("events", "a string")
    place()
    place()
    relay = courier.start(redis.url())
    kit.until(lambda: "WRONGTYPE" in relay.log(), "the relay to say why")
    assert detours(shop) == {}
    redis.client().delete("events")
    kit.until(lambda: redis.client().xlen("events") == 2, "both to arrive")
    relay.end()


def test_a_missing_stream_for_all_charges_nobody(server, courier, shop, place):
    redis = server()
    place()
    place()
    relay = courier.start(redis.url("?create=no"))
    kit.until(lambda: "stream events does not exist" in relay.log(), "the relay to say why")
    assert "leave out create=no" in relay.log()
    assert detours(shop) == {} and redis.client().exists("events") == 0
    redis.client().xadd("events", {"first": "1"})
    kit.until(lambda: redis.client().xlen("events") == 3, "both to arrive")
    relay.end()


def test_too_large_for_the_server(server, courier, shop, place):
    redis = server("proto-max-bulk-len 1mb")
    small = [place(key="a")]
    large = place(payload=b"x" * (2 << 20), content_type="application/octet-stream", key="b")
    small += [place(key="c"), place(key="d")]
    relay = courier.start(redis.url())
    kit.until(lambda: redis.client().xlen("events") >= 3, "the small ones to arrive")
    kit.until(lambda: large in detours(shop), "the large one to fail")
    relay.end()
    state, _, error = detours(shop)[large]
    assert state == "failed" and "proto-max-bulk-len" in error
    assert {fields["id"].decode() for fields in entries(redis.client())} == set(small)


def test_a_message_without_the_field_of_the_route(server, courier, shop, place):
    redis = server()
    ident, good = place(), place(topic="t")
    assert courier.once(redis.url("?stream=s:{topic}")) == 1
    assert detours(shop)[ident][0] == "failed" and "has no topic" in detours(shop)[ident][2]
    assert entries(redis.client(), "s:t")[0]["id"].decode() == good


def doctor(shop, url):
    said = kit.outbox("doctor", "--store", shop.store, "--to", f"events={url}", "--json", fails=True)
    return json.dumps(said)


def test_doctor_says_what_an_acknowledgement_means(server, shop):
    redis = server()
    client = redis.client()
    assert "on disk (appendonly, appendfsync always)" in doctor(shop, redis.url())
    assert "no replica" in doctor(shop, redis.url())
    assert "EVAL" not in doctor(shop, redis.url())
    for value, words in (("everysec", "lose up to two seconds"), ("no", "when the kernel writes it")):
        client.config_set("appendfsync", value)
        assert words in doctor(shop, redis.url())
    client.config_set("maxmemory-policy", "allkeys-lru")
    assert "may evict whole streams" in doctor(shop, redis.url())
    client.config_set("maxmemory-policy", "volatile-lru")
    assert "evict" not in doctor(shop, redis.url())
    client.config_set("appendonly", "no")
    assert "appendonly is off" in doctor(shop, redis.url())
    assert "maxlen=9 removes older" in doctor(shop, redis.url("?maxlen=9"))
    client.execute_command("ACL", "SETUSER", "poor", "on", ">pw", "~*", "+xadd")
    assert "INFO is not allowed" in doctor(shop, redis.url("", "poor:pw@"))
    assert "EVAL is not allowed" in doctor(shop, redis.url("", "poor:pw@"))
    client.execute_command("ACL", "SETUSER", "poor", "+info")
    client.config_set("appendonly", "yes")
    kit.until(lambda: client.info("persistence")["aof_rewrite_in_progress"] == 0, "the rewrite")
    assert "could not be read (CONFIG" in doctor(shop, redis.url("", "poor:pw@"))


def test_doctor_says_that_a_stream_takes_nothing(server, shop):
    redis = server()
    client = redis.client()
    client.set("taken", "by a text")
    client.xadd("there", {"a": "b"})
    assert "exists and is not a stream" in doctor(shop, redis.url("?stream=taken"))
    assert "there is no stream" in doctor(shop, redis.url("?stream=missing&create=no"))
    for good in ("?stream=there&create=no", "?stream=missing"):
        assert "refused" not in doctor(shop, redis.url(good))


def test_a_password_for_a_server_that_has_none(server, shop):
    redis = server()
    assert "the server has no password, the URL has one" in doctor(shop, redis.url("", ":pw@"))
