# SPDX-License-Identifier: Apache-2.0
"""For tests: what will be published if this transaction commits?"""
from __future__ import annotations

import contextlib
import json
import pathlib
import sqlite3
from collections.abc import Mapping
from typing import Any

from .connection import POSTGRES, driver_connection, qualified
from .message import is_json

COLUMNS = ("id", "type", "key", "kind", "published", "priority", "event_time", "due_at", "expires_at", "content_type",
           "source", "subject", "topic", "correlation_id", "causation_id", "traceparent", "headers", "payload",
           "payload_bin")


def published(conn: Any, type: str | None = None, *, key: str | None = None,
              schema: str | None = None) -> list[dict[str, Any]]:
    """The messages of the open transaction, of this type and key, in order: their columns that are not NULL, and JSON as
    data. What is committed already, whoever published it, is not among them."""
    raw, database = driver_connection(conn)
    if database == POSTGRES:
        mine, mark = "xid = pg_current_xact_id_if_assigned()", []
    else:
        mine, mark = "seq > ?", [_last_committed(raw, schema)]
    cursor = raw.cursor()
    cursor.execute(f"SELECT {', '.join(COLUMNS)} FROM {qualified(schema, 'outbox_message')} WHERE {mine} ORDER BY seq", mark)
    rows = [row if isinstance(row, Mapping) else dict(zip(COLUMNS, row)) for row in cursor.fetchall()]
    cursor.close()
    found = [{name: value for name, value in row.items() if value is not None} for row in rows]
    for row in found:
        if row.get("payload") and is_json(row.get("content_type")):
            row["data"] = json.loads(row["payload"])
        if "headers" in row:
            row["headers"] = json.loads(row["headers"])
    return [row for row in found if type in (None, row["type"]) and key in (None, row.get("key"))]


def _last_committed(conn: sqlite3.Connection, schema: str | None) -> int:
    """Another connection sees what is committed, and nobody else can commit while this one has written something."""
    cursor = conn.cursor()
    cursor.row_factory = None
    files = {name: file for _, name, file in cursor.execute("PRAGMA database_list").fetchall()}
    file = files.get(schema or "main")
    if not file:
        raise RuntimeError("published: a database in memory has no committed state to compare with; test with a file")
    with contextlib.closing(sqlite3.connect(pathlib.Path(file).as_uri() + "?mode=ro", uri=True)) as other:
        return int(other.execute("SELECT coalesce(max(seq), 0) FROM outbox_message").fetchone()[0])
