# SPDX-License-Identifier: Apache-2.0
"""The caller's connection: the driver's own, SQLAlchemy's Session and Connection, or Django's."""
from __future__ import annotations

import inspect
from typing import Any

SQLITE, POSTGRES = "sqlite", "postgres"
DRIVERS = {"sqlite3": SQLITE, "psycopg": POSTGRES, "psycopg2": POSTGRES}


class NoTransaction(RuntimeError):
    """No transaction is open, and none would be opened."""

    def __init__(self, remedy: str):
        super().__init__(f"not in a transaction: your rows could be committed without the outbox's, or those without "
                         f"yours; {remedy}")


def driver_connection(conn: Any) -> tuple[Any, str]:
    """The driver's connection, and its database."""
    if hasattr(conn, "in_atomic_block"):  # Django: the block, not the driver, knows about the transaction
        if not conn.in_atomic_block:
            raise NoTransaction("enter transaction.atomic() first")
        conn = conn.connection
    if hasattr(conn, "get_bind"):  # SQLAlchemy: a Session has a Connection, which has the pool's, which has the driver's
        conn = conn.connection()
    if hasattr(conn, "engine"):
        conn = conn.connection.driver_connection
    for module in (kind.__module__.split(".")[0] for kind in type(conn).__mro__):
        if module in DRIVERS and not inspect.iscoroutinefunction(type(conn).commit):
            return conn, DRIVERS[module]
    raise TypeError(f"{type(conn)} is no connection of {', '.join(DRIVERS)}, SQLAlchemy or Django that is not async")


def in_transaction(conn: Any) -> tuple[Any, str]:
    """The same, and a transaction is open, or the driver opens one before the next statement."""
    conn, database = driver_connection(conn)
    if database == SQLITE:
        begins = conn.isolation_level is not None and getattr(conn, "autocommit", None) is not True
        if not conn.in_transaction and not begins:
            raise NoTransaction("execute BEGIN first, or leave isolation_level as it is")
    elif conn.autocommit and conn.info.transaction_status == 0:
        raise NoTransaction("execute BEGIN first, or leave autocommit off")
    return conn, database


def qualified(schema: str | None, name: str) -> str:
    quoted = '"' + schema.replace('"', '""') + '".' if schema else ""
    return quoted.replace("%", "%%") + name
