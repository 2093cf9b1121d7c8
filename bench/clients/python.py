#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What publish() of the Python client costs beside the same driver's plain INSERT: python.py (in tests/support/with-postgres)

Each number is the median of five rounds, in which the ways take turns; messages a second.
"""
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import psycopg
import psycopg2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "python"))
from outbox_client import Message, publish, publish_all  # pylint: disable=wrong-import-position

MESSAGES, ROUNDS = 2000, 5
ORDER = {"id": 42, "total": 99.5, "lines": [{"sku": f"sku-{n}", "quantity": n} for n in range(5)]}


def ways(conn, mark, schema):
    table = "outbox.outbox_message" if schema else "outbox_message"
    insert = f"INSERT INTO {table} (type, key, payload) VALUES ({mark}, {mark}, {mark})"

    def plain(count):
        cursor = conn.cursor()
        for n in range(count):
            cursor.execute(insert, ("order.placed", str(n), json.dumps(ORDER)))

    def client(count):
        for n in range(count):
            publish(conn, Message("order.placed", ORDER, key=str(n)), schema=schema)

    def batch(count):
        publish_all(conn, [Message("order.placed", ORDER, key=str(n)) for n in range(count)], schema=schema)
    return plain, client, batch


def per_second(conn, act, transactions, each):
    start = time.perf_counter()
    for _ in range(transactions):
        act(each)
        conn.commit()
    return transactions * each / (time.perf_counter() - start)


def measure(name, conn, mark, schema=None):
    plain, client, batch = ways(conn, mark, schema)
    found = [(per_second(conn, plain, 1, MESSAGES), per_second(conn, client, 1, MESSAGES),
              per_second(conn, batch, 1, MESSAGES), per_second(conn, plain, 300, 1), per_second(conn, client, 300, 1))
             for _ in range(ROUNDS)]
    a, b, c, d, e = (statistics.median(column) for column in zip(*found))
    print(f"| Python, {name} | {a:,.0f} | {b:,.0f} ({b / a:.0%}) | {c:,.0f} ({c / a:.0%}) | {d:,.0f} | {e:,.0f} ({e / d:.0%}) |")


def main():
    outbox, postgres = os.environ["OUTBOX_BIN"], os.environ["OUTBOX_TEST_POSTGRES"]
    with tempfile.TemporaryDirectory() as folder:
        for url in (f"sqlite:{folder}/bench.db", f"{postgres}?schema=outbox"):
            subprocess.run([outbox, "init", "--store", url], check=True, stdout=subprocess.DEVNULL)
        measure("`sqlite3`", sqlite3.connect(f"{folder}/bench.db"), "?")
    measure("psycopg2", psycopg2.connect(postgres), "%s", "outbox")
    measure("psycopg 3", psycopg.connect(postgres), "%s", "outbox")


main()
