# SPDX-License-Identifier: Apache-2.0
"""A place to publish to, for each driver: a SQLite file, or a schema on a PostgreSQL server."""
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

import psycopg
import psycopg2
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CLIENT = ROOT / "clients" / "python"
sys.path[:0] = [str(CLIENT), str(ROOT / "tests" / "support")]
CASES = json.loads((ROOT / "clients" / "testdata" / "cases.json").read_text(encoding="utf-8"))
OUTBOX = os.environ["OUTBOX_BIN"]
POSTGRES = os.environ["OUTBOX_TEST_POSTGRES"]
COLUMNS = ("id", "type", "key", "kind", "published", "priority", "content_type", "source", "subject", "topic",
           "correlation_id", "causation_id", "traceparent", "headers", "payload", "payload_bin")
SHOP = ("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, note TEXT)", "CREATE TABLE IF NOT EXISTS notes (note TEXT)")


def outbox(*args):
    return subprocess.run([OUTBOX, *map(str, args)], check=True, capture_output=True, text=True).stdout


class Place:
    """connect() is as the driver makes connections; autocommit: one that commits every statement."""

    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder
        self.schema = None if driver == "sqlite3" else f"outbox_{driver}"
        self.url = f"sqlite:{folder}/shop.db" if driver == "sqlite3" else f"{POSTGRES}?schema={self.schema}"
        self.made = []
        outbox("init", "--store", self.url)
        outbox("init", "--inbox", "--store", self.url)
        self.look = self.connect(autocommit=True)
        for table in SHOP:
            self.execute(self.look, table)
        (self.before,), = self.execute(self.look, f"SELECT coalesce(max(seq), 0) FROM {self.table}")

    @property
    def table(self):
        return f"{self.schema}.outbox_message" if self.schema else "outbox_message"

    def connect(self, autocommit=False):
        if self.driver == "sqlite3":
            conn = sqlite3.connect(self.folder / "shop.db", timeout=60, check_same_thread=False,
                                   **({"isolation_level": None} if autocommit else {}))
        else:
            conn = (psycopg if self.driver == "psycopg" else psycopg2).connect(POSTGRES)
            conn.autocommit = autocommit
        self.made.append(conn)
        return conn

    def execute(self, conn, sql, args=()):
        cursor = conn.cursor()
        cursor.execute(sql if self.driver == "sqlite3" else sql.replace("?", "%s"), args)
        return cursor.fetchall() if cursor.description else None

    def rows(self):
        """What is committed since the place was made, as the cases write it."""
        times = ("event_time", "due_at", "expires_at")
        as_number = "{0}" if self.driver == "sqlite3" else "(extract(epoch FROM {0}) * 1000000)::bigint"
        found = self.execute(self.look, f"SELECT {', '.join(COLUMNS)}, {', '.join(map(as_number.format, times))} FROM "
                                        f"{self.table} WHERE seq > ? ORDER BY seq", (self.before,))
        for values in found:
            row = {name: value for name, value in zip(COLUMNS + times, values) if value is not None}
            if "headers" in row:
                row["headers"] = json.loads(row["headers"])
            yield row

    def types(self):
        return [row["type"] for row in self.rows()]

    def close(self):
        for conn in self.made:
            conn.close()


@pytest.fixture(name="place", params=["sqlite3", "psycopg2", "psycopg"])
def make_place(request, tmp_path):
    place = Place(request.param, tmp_path)
    yield place
    place.close()
