#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Publish from Python: publish.py DATABASE ORDER TOTAL

DATABASE is a SQLite file, or what libpq connects to: dbname=shop, or postgresql://app@db/shop (with psycopg 3 or psycopg2).
The order and its message are written in one transaction: both exist, or neither does.
"""
import pathlib
import sqlite3
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))  # or: pip install
from outbox_client import Message, publish


def connect(database):
    """A transaction begins with the first statement: that is how these drivers are."""
    if "=" not in database and "://" not in database:
        return sqlite3.connect(database, timeout=5), "?"
    try:
        import psycopg
    except ImportError:
        import psycopg2 as psycopg
    return psycopg.connect(database), "%s"


def place_order(db, mark, order, total):
    cursor = db.cursor()
    cursor.execute(f"INSERT INTO orders (id, total) VALUES ({mark}, {mark})", (order, total))
    if total < 0:
        raise ValueError(f"order {order}: total {total} is negative")
    return publish(db, Message("order.placed", {"id": order, "total": total}, key=str(order)))


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    db, mark = connect(sys.argv[1])
    try:
        with db:  # COMMIT at its end, ROLLBACK when something raises
            db.cursor().execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL NOT NULL)")
            print(place_order(db, mark, int(sys.argv[2]), float(sys.argv[3])))
    except (ValueError, db.Error) as error:
        sys.exit(f"publish.py: {error}")


main()
