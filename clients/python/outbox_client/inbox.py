# SPDX-License-Identifier: Apache-2.0
"""Each message once for each consumer, although it is delivered at least once."""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .connection import POSTGRES, in_transaction, qualified
from .message import handling

Result = TypeVar("Result")
Handler = Callable[[Any, Mapping[str, Any]], Result]


def accept(conn: Any, consumer: str, id: str, *, schema: str | None = None) -> bool:
    """True the first time this consumer accepts this id. Commit it with what the handler writes, or roll both back."""
    raw, database = in_transaction(conn)
    cursor = raw.cursor()
    try:
        if database == POSTGRES:
            cursor.execute(f"SELECT 1 WHERE {qualified(schema, 'outbox_inbox_accept')}(%s, %s)", (consumer, id))
            return cursor.fetchone() is not None
        cursor.execute(f"INSERT INTO {qualified(schema, 'outbox_inbox')} (consumer, id) VALUES (?, ?) "
                       "ON CONFLICT DO NOTHING", (consumer, id))
        return bool(cursor.rowcount == 1)
    finally:
        cursor.close()


def once(consumer: str, *, schema: str | None = None) -> Callable[[Handler[Result]], Handler[Result | None]]:
    """Decorates handler(conn, event), of a CloudEvent: a repeat does not reach it. What it publishes names the event as
    its cause."""
    def decorate(handler: Handler[Result]) -> Handler[Result | None]:
        @functools.wraps(handler)
        def handle(conn: Any, event: Mapping[str, Any]) -> Result | None:
            if not accept(conn, consumer, event["id"], schema=schema):
                return None
            with handling(event):
                return handler(conn, event)
        return handle
    return decorate
