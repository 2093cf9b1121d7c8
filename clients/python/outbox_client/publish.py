# SPDX-License-Identifier: Apache-2.0
"""Publishing is an INSERT into outbox_message, in the transaction of the rows that the message is about."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .connection import POSTGRES, SQLITE, in_transaction, qualified
from .message import EPOCH, TIMES, InvalidMessage, Message

AT_ONCE = 1000  # SQLite takes 32,766 parameters, a message has up to 19 columns


def publish(conn: Any, message: Message, *, schema: str | None = None) -> str:
    """Publish a message when the transaction commits. Returns its id."""
    return publish_all(conn, [message], schema=schema)[0]


def publish_all(conn: Any, messages: Iterable[Message], *, schema: str | None = None) -> list[str]:
    """Several in order, in one statement for each thousand. All are checked before the first is written."""
    raw, database = in_transaction(conn)
    messages = list(messages)
    rows = []
    for number, message in enumerate(messages):
        try:
            rows.append(message.columns())
        except InvalidMessage as error:
            if len(messages) > 1:
                error.args = (f"message {number}: {error}",)
            raise
    own_ids = any(message.id for message in messages)
    cursor = raw.cursor()
    try:
        for start in range(0, len(rows), AT_ONCE):
            _insert(cursor, database, schema, rows[start:start + AT_ONCE], own_ids)
    finally:
        cursor.close()
    return [row["id"] for row in rows]


def _insert(cursor: Any, database: str, schema: str | None, rows: list[dict[str, Any]], own_ids: bool) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if database == SQLITE:
        for row in rows:
            row.update({name: (row[name] - EPOCH) // EPOCH.resolution for name in TIMES if name in row})
    one = "(" + ", ".join(["%s" if database == POSTGRES else "?"] * len(columns)) + ")"
    # An id that is there already is a repeat, which changes nothing.
    cursor.execute(f"INSERT INTO {qualified(schema, 'outbox_message')} ({', '.join(columns)}) VALUES "
                   + ", ".join([one] * len(rows)) + (" ON CONFLICT (id) DO NOTHING" if own_ids else ""),
                   [row.get(name) for row in rows for name in columns])
