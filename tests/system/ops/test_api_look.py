# SPDX-License-Identifier: Apache-2.0
"""What the admin server says: the same as the command line, from one code, without secrets, page by page."""
import base64
import json

import pytest

from console import Console
from shell import until


@pytest.fixture
def console(tmp_path):
    made = Console(tmp_path)
    yield made
    made.down()


def published(console, count, **columns):
    with console.db() as db:
        db.execute("BEGIN IMMEDIATE")
        names = ["type", "key", "payload", *columns]
        for i in range(count):
            db.execute(f"INSERT INTO outbox_message ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
                       ["order.placed", f"k{i}", json.dumps({"n": i}), *columns.values()])
        db.execute("COMMIT")


def drained(console):
    """Wait until nothing is pending or being sent."""
    until(lambda: not {"pending", "sending"} & set(console.states()), "an empty outbox")


def newer(console):
    """The next sample: what was done before this is in it."""
    first = console.get("/api/outbox").json["at"]
    seen = until(lambda: [s for s in [console.get("/api/outbox").json["at"]] if s > first], "a newer sample")[0]
    until(lambda: console.get("/api/outbox").json["at"] > seen, "one more")


def test_the_outbox_and_its_targets(console):
    published(console, 7)
    console.insert(payload="{broken", key="bad")
    console.up()
    drained(console)
    newer(console)
    told = console.get("/api/outbox").json
    assert [s["name"] for s in told["sources"]] == ["shop"]
    source = told["sources"][0]
    assert source["state"] == "running" and source["trouble"] is None and source["messages"] == 8
    target = source["targets"][0]
    cli = console.cli("status")["targets"][0]
    moving = {"rate", "lanes", "delivered_last_minute", "retries_last_minute"}
    assert {k: v for k, v in target.items() if k not in moving} == {k: v for k, v in cli.items() if k not in moving}
    assert (target["delivered"], target["failed"], target["pending"]) == (7, 1, 0)
    assert told["level"] != "healthy" and told["findings"], "a failed delivery is critical"
    rows = console.get("/api/targets").json["targets"]
    assert [(r["source"], r["name"], r["transport"], r["breaker"]) for r in rows] == \
        [("shop", "events", "file", "closed")]
    assert console.get("/api/targets", source="nobody").json["targets"] == []
    lanes = console.get("/api/lanes").json["lanes"]
    assert [(l["source"], l["target"], l["lane"], l["live"]) for l in lanes] == [("shop", "events", 0, True)]
    alerts = console.get("/api/alerts").json
    assert any(f["rule"] == "failed" and f["target"] == "events" for f in alerts["findings"]), alerts


def test_deliveries_are_those_of_the_command_line(console):
    published(console, 3)
    console.insert(type="invoice.sent", payload="{broken", key="bad")
    console.up()
    drained(console)
    assert console.get("/api/messages").json == console.cli("list")
    for query, options in (({"state": "failed"}, ["--state", "failed"]), ({"type": "order.*"}, ["--type", "order.*"]),
                           ({"key": "k1"}, ["--key", "k1"]), ({"why": "retry"}, ["--why", "retry"]),
                           ({"target": "events"}, ["--target", "events"])):
        assert console.get("/api/messages", **query).json == console.cli("list", *options), query
    assert console.get("/api/messages", before="1h").json["deliveries"] == []
    assert len(console.get("/api/messages", before="0s").json["deliveries"]) == 4


def test_a_large_log_comes_page_by_page(console):
    published(console, 2500)
    console.up()
    drained(console)
    seqs, cursor, pages = [], None, 0
    while True:
        page = console.get("/api/messages", **({"cursor": cursor} if cursor else {}), limit=400).json
        assert len(page["deliveries"]) <= 400
        seqs += [int(row["seq"]) for row in page["deliveries"]]
        cursor, pages = page["next"], pages + 1
        assert pages < 50, "it never ends"
        if not cursor:
            break
    assert pages == 7 and len(seqs) == 2500 and seqs == sorted(set(seqs))
    assert len(console.get("/api/messages").json["deliveries"]) == 100, "unasked, a page is 100"


def test_one_message_with_its_history(console):
    id = console.insert(payload="{broken", key="bad", headers='{"tenant": "blue"}')
    console.up()
    until(lambda: console.states() == {"failed": 1}, "a failed delivery")
    console.post("/api/messages/requeue", {"ids": [id], "reason": "try"})
    until(lambda: console.states() == {"failed": 1}, "failed again")
    told = console.get(f"/api/messages/{id}").json
    cli = console.cli("show", id)
    assert told["deliveries"] == cli["deliveries"] and told["history"] == cli["history"]
    assert [a["verdict"] for a in told["failed_attempts"]] == ["rejected"] * 2
    assert told["failed_attempts"] == cli["failed_attempts"]
    assert [(h["action"], h["reason"]) for h in told["history"]] == [("requeue", "try")]
    assert told["history"][0]["actor"].startswith("ada")
    assert told["message"]["headers"] == {"tenant": "***"} and told["message"]["size"] == 7
    assert told["message"] == cli["message"]
    shown = console.get(f"/api/messages/{id}", payload="true", token="ada").json
    assert shown["message"]["headers"] == {"tenant": "blue"} and shown == console.cli("show", id, "--payload")
    assert 'no message' in console.get("/api/messages/nothing", status=404).error


def test_a_payload_is_masked_and_shown_to_operators(console):
    text = console.insert(payload='{"card": "4111"}')
    raw = bytes(range(256))
    bytes_id = console.insert(payload=None, payload_bin=raw, content_type="application/octet-stream")
    large = console.insert(payload=json.dumps("x" * 300000))
    console.up()
    answer = console.get(f"/api/messages/{text}")
    assert b"4111" not in answer.body and answer.json["message"]["payload_left_out"] == "masked"
    assert "payload" not in answer.json["message"]
    assert b"4111" not in console.get("/api/messages").body
    assert "operate" in console.get(f"/api/messages/{text}", payload="true", status=403).error
    shown = console.get(f"/api/messages/{text}", payload="true", token="ada").json["message"]
    assert shown["payload"] == '{"card": "4111"}' and "payload_left_out" not in shown
    shown = console.get(f"/api/messages/{bytes_id}", payload="true", token="ada").json["message"]
    assert base64.b64decode(shown["payload_base64"]) == raw and "payload" not in shown
    shown = console.get(f"/api/messages/{large}", payload="true", token="ada").json["message"]
    assert shown["payload_left_out"] == "too large" and shown["size"] == 300002
    console.get(f"/api/messages/{text}/payload", status=403)
    for id, data in ((text, b'{"card": "4111"}'), (bytes_id, raw), (large, json.dumps("x" * 300000).encode())):
        answer = console.get(f"/api/messages/{id}/payload", token="ada")
        assert answer.body == data and answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("query, words", [
    ({"limit": "0"}, ["limit", '"0"', "1 to 1000"]),
    ({"limit": "many"}, ["limit", '"many"', "1 to 1000"]),
    ({"state": "lost"}, ["state", '"lost"', "pending, sending, delivered, failed or discarded"]),
    ({"why": "bored"}, ["why", '"bored"', "retry"]),
    ({"state": "failed", "why": "retry"}, ["why", "pending"]),
    ({"before": "yesterday"}, ["before", '"yesterday"', "7d"]),
    ({"cursor": "zz"}, ["zz"]),
    ({"stat": "failed"}, ["stat"]),
    ({"key": ""}, ["key"]),
])
def test_wrong_queries_name_the_parameter_and_the_remedy(console, query, words):
    console.up()
    error = console.get("/api/messages", status=400, **query).error
    assert all(word in error for word in words), error


def test_a_target_and_a_source_that_are_not_there(console):
    console.up()
    assert "did you mean events" in console.get("/api/messages", target="event", status=404).error
    assert "shop" in console.get("/api/messages", source="shp", status=404).error


def test_several_sources_want_a_name(tmp_path):
    console = Console(tmp_path, sources=("shop", "billing"))
    try:
        console.up()
        console.insert()
        assert "shop, billing" in console.get("/api/messages", status=400).error
        until(lambda: len(console.get("/api/messages", source="shop").json["deliveries"]) == 1, "its delivery")
        assert console.get("/api/messages", source="billing").json["deliveries"] == []
        assert [s["name"] for s in console.get("/api/outbox").json["sources"]] == ["shop", "billing"]
    finally:
        console.down()


def test_the_configuration_is_shown_without_secrets(tmp_path):
    (tmp_path / "password").write_text("planted-password\n")
    (tmp_path / "password").chmod(0o600)
    console = Console(tmp_path)
    text = console.config.read_text()
    console.config.write_text(text.replace("targets:\n", 'targets:\n  - name: mq\n    to: "nats://u@127.0.0.1:1/s?stream=S"\n'
                                                         "    password: file:password\n"))
    try:
        console.up()
        values = {v["key"]: v for v in console.get("/api/config").json["values"]}
        assert "shop.db" in values["sources.shop.store"]["value"], values
        assert "planted" not in json.dumps(values), "Answer looks, too"
        assert values["targets.mq.password"]["value"], "there is one"
    finally:
        console.down()


def test_the_audit_says_who(console):
    ids = [console.insert(payload="{broken", key=f"k{i}") for i in range(3)]
    console.up()
    until(lambda: console.states() == {"failed": 3}, "failed deliveries")
    console.post("/api/messages/discard", {"ids": ids[:2], "reason": "test data"})
    console.run("discard", ids[2], "--reason", "by hand", "--config", "outbox.yaml")
    rows = console.get("/api/audit").json["audit"]
    assert rows == console.cli("audit")["audit"]
    assert [r["actor"].split("@")[0].split(" ")[0] for r in rows] == ["alice", "ada", "ada"]
    assert "127.0.0.1" in rows[1]["actor"]
    assert len(console.get("/api/audit", limit=1).json["audit"]) == 1
    assert [r["id"] for r in console.get("/api/audit", id=ids[0]).json["audit"]] == [ids[0]]
