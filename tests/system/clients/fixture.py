#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The cases of the clients' tests, held to the program: fixture.py [--write]

clients/testdata/cases.json says what is published, refused and signed. What becomes of it is what the library
(OUTBOX_CLIENT_PROBE) and the relay (OUTBOX_BIN) make of it: the rows, the events, the signatures. It is compared with
the file; --write puts it there. The rows are inserted with plain SQL as well: that must give the same events.
"""
import base64
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

FILE = pathlib.Path(__file__).resolve().parents[3] / "clients" / "testdata" / "cases.json"
OUTBOX = os.environ["OUTBOX_BIN"]
PROBE = os.environ["OUTBOX_CLIENT_PROBE"]
GIVEN_BY_THE_LOG = {"seq", "created_at"}
OPTIONAL = ("id", "time", "source")  # attributes of an event that the outbox gives where the publisher does not


def run(*args, **how):
    return subprocess.run([str(a) for a in args], check=True, stdout=subprocess.PIPE, **how).stdout


def make_outbox(folder, name):
    path = pathlib.Path(folder, f"{name}.db")
    run(OUTBOX, "init", "--store", f"sqlite:{path}", stderr=subprocess.DEVNULL)
    return path


def rows_of(path, messages):
    """The columns that are not NULL. What the log gives where the publisher does not is left out."""
    with sqlite3.connect(path) as db:
        db.row_factory = sqlite3.Row
        for row, message in zip(db.execute("SELECT * FROM outbox_message ORDER BY seq"), messages):
            row = {name: row[name] for name in row.keys() if row[name] is not None and name not in GIVEN_BY_THE_LOG}
            for name in ("id", "event_time"):
                if name not in message:
                    del row[name]
            if "payload_bin" in row:
                row["payload_base64"] = base64.b64encode(row.pop("payload_bin")).decode()
            if "headers" in row:
                row["headers"] = json.loads(row["headers"])
            yield row


def events_of(path, messages):
    run(OUTBOX, "relay", "--store", f"sqlite:{path}", "--to", f"x=file:{path}.jsonl", "--until-idle",
        stderr=subprocess.DEVNULL)
    events = map(json.loads, pathlib.Path(f"{path}.jsonl").read_text(encoding="utf-8").splitlines())
    for event, message in zip(sorted(events, key=lambda event: int(event["sequence"])), messages):
        del event["sequence"]
        for name in OPTIONAL:
            if {"time": "event_time"}.get(name, name) not in message:
                del event[name]
        yield event


def insert(path, row):
    columns = dict(row)
    if "headers" in columns:
        columns["headers"] = json.dumps(columns["headers"], ensure_ascii=False)
    if "payload_base64" in columns:
        columns["payload_bin"] = base64.b64decode(columns.pop("payload_base64"))
    with sqlite3.connect(path) as db:
        db.execute(f"INSERT INTO outbox_message ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                   list(columns.values()))


def expand(value):
    """{"repeat": "x", "times": 3} is "xxx", wherever a text stands."""
    if isinstance(value, dict) and set(value) == {"repeat", "times"}:
        return value["repeat"] * value["times"]
    return {name: expand(one) for name, one in value.items()} if isinstance(value, dict) else value


def shorten(value, message):
    """Back again: what is long in the message is written as it is there."""
    for short in [*message.values(), *message.get("headers", {}).values()]:
        if isinstance(short, dict) and set(short) == {"repeat", "times"} and value == expand(short):
            return short
    return {name: shorten(one, message) for name, one in value.items()} if isinstance(value, dict) else value


def public_key(seed):
    """openssl's view of an Ed25519 key: whpk_ and base64 of the public half of whsk_..."""
    der = bytes.fromhex("302e020100300506032b657004220420") + base64.b64decode(seed)
    public = run("openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER", input=der)
    return "whpk_" + base64.b64encode(public[-32:]).decode()


def webhook(case, signed):
    """What the receiver gets: what was sent, with the case's changes."""
    webhook_id, signature = signed
    changed = dict(case.get("changed", {}))
    if "version" in changed:
        signature = f"{changed.pop('version')},{signature.split(',')[1]}"
    headers = {"webhook-id": webhook_id, "webhook-timestamp": str(case["sent"]["timestamp"]),
               "webhook-signature": changed.pop("before", "") + signature}
    body = changed.pop("body", case["sent"]["body"])
    headers = {name: value for name, value in {**headers, **changed}.items() if value is not None}
    keys = [public_key(key[5:]) if key.startswith("whsk_") else key for key in case["keys"]]
    return {"keys": keys, "headers": headers, "body": body}


def main():
    text = FILE.read_text(encoding="utf-8")
    cases = json.loads(text)
    messages = [case["message"] for case in cases["publish"]]
    with tempfile.TemporaryDirectory() as folder:
        library, plain = make_outbox(folder, "library"), make_outbox(folder, "plain")
        said = json.loads(run(PROBE, library, input=text.encode()))
        rows = list(rows_of(library, messages))
        for row in rows:
            insert(plain, row)
        for made in zip(cases["publish"], messages, rows, events_of(library, messages), events_of(plain, messages), strict=True):
            case, message, row, event, again = made
            assert again == event, f"{case['name']}: a plain INSERT gives {again}, the library {event}"
            case["row"], case["event"] = shorten(row, message), shorten(event, message)
    for case, refusal in zip(cases["refused"], said["refused"]):
        field = {"payload": "data"}.get(case["field"], case["field"])
        assert refusal is None or refusal.startswith(field + ": "), f"{case['name']}: the library says: {refusal}"
    for case, signed in zip(cases["webhooks"], said["webhooks"]):
        case.update(webhook(case, signed))
    return text, cases


def written(cases):
    """One case a line, so that a change can be read."""
    parts = (f'"{name}": [\n' + ",\n".join(json.dumps(one, ensure_ascii=False) for one in part) + "\n]"
             for name, part in cases.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    before, after = main()
    if sys.argv[1:] == ["--write"]:
        FILE.write_text(written(after), encoding="utf-8")
    for old, new in zip(before.splitlines(), written(after).splitlines()):
        if old != new and not sys.argv[1:]:
            sys.exit(f"cases.json says\n{old}\nthe program\n{new}\nremedy: see that this is right, then run with --write")
    print(f"{sum(len(part) for part in after.values())} cases")
