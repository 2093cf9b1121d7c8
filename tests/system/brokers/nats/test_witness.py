# SPDX-License-Identifier: Apache-2.0
"""What the relay sends is read by nats-py, whose authors have never heard of us: ids, headers and payloads as published.

The client is fetched once with pip into the user's cache. Where it cannot be had a bare socket reads, and the output
says so."""
import base64
import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

import natsd

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from fetch import fetch  # pylint: disable=wrong-import-position

BINARY = os.environ.get("OUTBOX_BIN", "outbox")
CLIENT = "nats-py==2.9.0"
MESSAGES = [
    {"id": "m-1", "type": "order.placed", "key": "42", "payload": '{"total":"12,50 €"}', "headers": {"tenant": "blue"}},
    {"id": "m-2", "type": "order.placed", "key": "4 2", "payload": '{"path":"C:\\\\temp\\n"}', "headers": {}},
    {"id": "m-3", "type": "picture", "key": None, "payload": bytes(range(256)), "headers": {"x-a": "1", "X-B": "two words"}},
    {"id": "m-4", "type": "nothing", "key": "k", "payload": b"", "headers": {}},
]


def read(server, count):
    folder = fetch(CLIENT, "nats", alone=True)
    if not folder:
        print(f"witness: a bare socket, {CLIENT} could not be had")
        return [{"headers": headers, "data": data} for headers, data in natsd.Witness(server.port).messages("S")]
    print(f"witness: {CLIENT}")
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("witness.py"), server.url, "S", str(count)],
                          env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [{**row, "data": base64.b64decode(row["data"])} for row in rows]


def test_another_client_reads_what_was_published(servers, tmp_path):
    server = servers()
    natsd.Witness(server.port).create("S")
    path = tmp_path / "app.db"
    env = {**os.environ, "OUTBOX_STORE": f"sqlite:{path}"}
    subprocess.run([BINARY, "init"], env=env, check=True, capture_output=True)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        for message in MESSAGES:
            column = "payload" if isinstance(message["payload"], str) else "payload_bin"
            db.execute(f"INSERT INTO outbox_message (id, type, key, headers, {column}) VALUES (?, ?, ?, ?, ?)",
                       (message["id"], message["type"], message["key"], json.dumps(message["headers"]),
                        message["payload"]))
    subprocess.run([BINARY, "relay", "--to", f"events={server.url}/S.{{type}}?stream=S", "--until-idle"], env=env,
                   check=True, capture_output=True, timeout=60)
    arrived = read(server, len(MESSAGES))
    assert len(arrived) == len(MESSAGES)
    for message, row in zip(MESSAGES, arrived):
        payload = message["payload"]
        assert row["data"] == (payload.encode() if isinstance(payload, str) else payload)
        assert row.get("subject", "S." + message["type"]) == "S." + message["type"]
        assert row["headers"]["Nats-Msg-Id"] == row["headers"]["ce-id"] == message["id"]
        assert row["headers"]["ce-type"] == message["type"]
        assert message["headers"].items() <= row["headers"].items()
