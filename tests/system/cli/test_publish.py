# SPDX-License-Identifier: Apache-2.0
"""publish: every field arrives, every wrong one is told."""
import os
import sqlite3
import time

import pytest


def test_every_field_arrives(shop):
    ran = shop.run(
        "publish", "--type", "order.placed", "--key", "42", "--data", '{"id":42}', "--id", "my-id",
        "--kind", "command", "--subject", "orders/42", "--ce-source", "/shop", "--topic", "orders",
        "--correlation-id", "c1", "--causation-id", "c0", "--header", "tenant=acme", "--header", "x=a=b",
        "--traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "--published",
        "--priority", "-5", "--event-time", "2026-11-15T09:00:00Z")
    assert ran.out == "my-id\n"
    message = shop.run("show", "my-id", "--payload", "--json").json["message"]
    expected = {
        "id": "my-id", "type": "order.placed", "key": "42", "kind": "command", "subject": "orders/42",
        "source": "/shop", "topic": "orders", "correlation_id": "c1", "causation_id": "c0",
        "headers": {"tenant": "acme", "x": "a=b"}, "published": True, "priority": -5,
        "event_time": "2026-11-15T09:00:00Z", "payload": '{"id":42}', "content_type": "application/json",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    assert {name: message[name] for name in expected} == expected
    assert isinstance(message["seq"], str)


def test_data_from_a_file_and_from_stdin(shop):
    (shop.folder / "data.json").write_text('{"from":"file"}')
    one = shop.run("publish", "--type", "t", "--data", "@data.json").out.strip()
    two = shop.run("publish", "--type", "t", "--data", "-", data=b'{"from":"stdin"}').out.strip()
    assert shop.run("show", one, "--raw-payload").out == '{"from":"file"}'
    assert shop.run("show", two, "--raw-payload").out == '{"from":"stdin"}'


def test_bytes_are_kept_as_they_are(shop):
    data = bytes(range(256))
    shop.run("publish", "--type", "blob", "--content-type", "application/octet-stream", "--data", "-",
             "--id", "blob", data=data)
    assert shop.run("show", "blob", "--raw-payload").raw == data
    assert "000000  00 01 02" in shop.run("show", "blob", "--payload").out
    assert "payload_base64" in shop.run("show", "blob", "--payload", "--json").json["message"]
    shop.relay()
    assert "data_base64" in shop.lines()[0]


def test_a_repeat_is_harmless_and_told(shop):
    args = ["publish", "--type", "t", "--data", "1", "--id", "order-1"]
    assert shop.run(*args, "--json").json["repeated"] is False
    again = shop.run(*args)
    assert again.out == "order-1\n" and "published before" in again.err
    assert shop.run(*args, "--json").json["repeated"] is True
    assert shop.run("status", "--json").json["messages"] == 1


def test_due_messages_wait_and_expired_ones_fail(shop):
    later = shop.run("publish", "--type", "later", "--data", "1", "--due", "+1h").out.strip()
    late = shop.run("publish", "--type", "late", "--data", "1", "--expires", "2020-01-01T00:00:00Z").out.strip()
    shop.relay(code=1)
    states = {d["id"]: (d["state"], d["why"]) for d in shop.run("list", "--json").json["deliveries"]}
    assert states == {later: ("pending", "deferred"), late: ("failed", None)}
    assert shop.lines() == []


@pytest.mark.parametrize("args, text", [
    (["--data", "{broken"], "not JSON"),
    (["--data", ""], "not JSON"),
    (["--data", "1", "--type", "x" * 501], "type"),
    (["--data", "1", "--key", "k" * 256], "key"),
    (["--data", "1", "--header", "nothing"], "is not NAME=VALUE"),
    (["--data", "1", "--kind", "rumour"], "is not one of event or command"),
    (["--data", "1", "--priority", "101"], "-100 to 100"),
    (["--data", "1", "--due", "soon"], "--due"),
    (["--data", "@nosuchfile"], "cannot read nosuchfile"),
    (["--data", "1", "--traceparent", "x"], "traceparent"),
])
def test_wrong_fields_are_told_and_nothing_is_written(shop, args, text):
    kind = [] if "--type" in args else ["--type", "t"]
    ran = shop.run("publish", *kind, *args, code=2)
    assert text in ran.err
    assert shop.run("status", "--json").json["messages"] == 0


def test_an_empty_key_is_refused_however_it_comes(shop):
    assert "key: is empty; give it a value or leave it unset" in shop.run("publish", "--type", "t", "--data", "1", "--key", "", code=2).err
    with pytest.raises(Exception, match="key is (not )?empty; leave it NULL"):
        shop.insert(key="")
    shop.insert(key=None)
    assert shop.run("status", "--json").json["messages"] == 1


def test_headers_have_a_limit_however_they_come(shop):
    with pytest.raises(Exception, match="headers is at most 256 KiB"):
        shop.insert(headers='{"a":"%s"}' % ("x" * (256 << 10)))
    shop.run("publish", "--type", "t", "--data", "1", "--header", "a=" + "\u0001" * 32000)  # six times as long as JSON
    assert shop.run("status", "--json").json["messages"] == 1


@pytest.mark.sqlite
def test_a_due_time_is_in_microseconds(shop):
    now = int(time.time())
    for wrong in (now + 60, (now + 60) * 1000):
        with pytest.raises(sqlite3.IntegrityError, match="due_at is in microseconds since 1970; this is in seconds or milliseconds"):
            shop.insert(due_at=wrong)
    shop.insert(due_at=(now + 3600) * 10**6)
    shop.insert(due_at=0)
    assert shop.relay().err.count("delivered 1, ") == 1


@pytest.mark.sqlite
def test_messages_with_an_empty_key_of_before_go_on(shop):
    with shop.db() as db:
        trigger = db.execute("SELECT sql FROM sqlite_master WHERE name = 'outbox_message_insert'").fetchone()[0]
        db.execute("DROP TRIGGER outbox_message_insert")
        db.execute("INSERT INTO outbox_message (id, type, payload, key, created_at, event_time) VALUES ('a', 't', '{}', '', 1, 1)")
        db.execute(trigger)
    shop.run("upgrade")
    shop.relay(code=None)
    assert shop.run("list", "--json").json["deliveries"][0]["state"] == "delivered"


def test_a_payload_over_the_limit(shop):
    with open(shop.folder / "large", "wb") as file:
        os.truncate(file.fileno(), (16 << 20) + 1)
    ran = shop.run("publish", "--type", "t", "--content-type", "application/octet-stream", "--data",
                   "@large", code=2)
    assert "16777216" in ran.err or "16 MiB" in ran.err
    (shop.folder / "larger.bin").write_bytes(b"x" * ((16 << 20) + 65536))
    ran = shop.run("publish", "--type", "t", "--content-type", "text/plain", "--data", "@larger.bin", code=2)
    assert "larger than 16777216 bytes" in ran.err
