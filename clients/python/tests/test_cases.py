# SPDX-License-Identifier: Apache-2.0
"""The cases that every client runs: clients/testdata."""
import base64
import datetime
import json

import pytest

from conftest import CASES, outbox
from recorder import Recorder
from outbox_client import InvalidMessage, InvalidSignature, Message, accept, handling, publish, verify


def expand(value):
    if isinstance(value, dict) and set(value) == {"repeat", "times"}:
        return value["repeat"] * value["times"]
    return {name: expand(one) for name, one in value.items()} if isinstance(value, dict) else value


def message_of(case):
    fields = {name: value if name == "data" else expand(value) for name, value in case["message"].items()}
    for name in ("event_time", "due_at", "expires_at"):
        if name in fields:
            text = fields[name].replace("Z", "+00:00").replace(".25+", ".250000+")  # for Python 3.9
            fields[name] = datetime.datetime.fromisoformat(text)
    if "payload_base64" in fields:
        fields["payload_bin"] = base64.b64decode(fields.pop("payload_base64"))
    return Message(fields.pop("type", None), **fields)


def check_row(case, row):
    wanted = expand(case["row"])
    for name in ("id", "event_time"):
        if name not in case["message"]:
            assert row.pop(name), case["name"]
    if "payload_bin" in row:
        row["payload_base64"] = base64.b64encode(row.pop("payload_bin")).decode()
    if "data" in case["message"]:
        row["payload"], wanted["payload"] = json.loads(row["payload"]), json.loads(wanted["payload"])
    assert row == wanted, case["name"]


def check_event(case, event):
    wanted = expand(case["event"])
    for name in ("id", "time", "source", "sequence"):
        if name not in wanted:
            del event[name]
    assert event == wanted, case["name"]


def test_rows_and_events(place):
    with place.connect() as conn:
        for case in CASES["publish"]:
            message = message_of(case)
            with handling(case.get("handling", {})):
                published = publish(conn, message, schema=place.schema)
            assert published == (message.id or published)
    rows = list(place.rows())
    for case, row in zip(CASES["publish"], rows):
        check_row(case, dict(row))
    outbox("relay", "--store", place.url, "--to", f"events=file:{place.folder}/events", "--until-idle")
    found = map(json.loads, (place.folder / "events").read_text(encoding="utf-8").splitlines())
    events = {event["id"]: event for event in found}
    for case, row in zip(CASES["publish"], rows):
        check_event(case, events.pop(row["id"]))
    assert len(rows) == len(CASES["publish"])


def test_what_is_refused(place):
    conn = place.connect()
    for case in CASES["refused"]:
        with pytest.raises(InvalidMessage) as refused:
            publish(conn, message_of(case), schema=place.schema)
        assert refused.value.field == case["field"], (case["name"], refused.value)
    conn.commit()  # the transaction goes on: nothing has reached the database
    assert not place.types()


def test_inbox(place):
    conn = place.connect()
    run = f"{place.driver} {place.before} "
    for case in CASES["inbox"]:
        assert accept(conn, run + case["consumer"], case["id"], schema=place.schema) == case["first"], case


@pytest.mark.parametrize("case", CASES["webhooks"], ids=lambda case: case["name"])
def test_webhooks(case):
    how = (case["keys"], {name.title(): value for name, value in case["headers"].items()}, case["body"].encode())
    if case["valid"]:
        verify(*how, now=case["now"])
    else:
        with pytest.raises(InvalidSignature):
            verify(*how, now=case["now"])


def test_a_webhook_of_the_relay(tmp_path):
    key = next(key for case in CASES["webhooks"] for key in case["keys"] if key.startswith("whsec_"))
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    store = f"sqlite:{tmp_path}/shop.db"
    outbox("init", "--store", store)
    outbox("publish", "--store", store, "--type", "order.placed", "--id", "order.42", "--data", "{}")
    with Recorder() as receiver:
        outbox("relay", "--store", store, "--until-idle", "--to",
               f"hook=http://127.0.0.1:{receiver.port}/#secret_file={tmp_path}/key&allow_private=127.0.0.0/8")
    (request,) = receiver.requests
    verify(key, request.headers, request.body)
    with pytest.raises(InvalidSignature):
        verify(key, request.headers, request.body + b" ")


@pytest.mark.parametrize("key", ["", "whsec_", "whsec_c2hvcnQ=", "whpk_c2hvcnQ=", "whsk_" + "A" * 43 + "=", "plain"])
def test_a_key_that_is_none_is_no_wrong_signature(key):
    with pytest.raises(ValueError, match="whsec_") as refused:
        verify(key, CASES["webhooks"][0]["headers"], "", now=CASES["webhooks"][0]["now"])
    assert not isinstance(refused.value, InvalidSignature)
