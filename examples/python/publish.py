#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Publish from Python with the standard library alone: publish.py DATABASE ORDER TOTAL

The order and its message are written in one transaction: both exist, or neither does.
"""
import json
import sqlite3
import sys


def place_order(db, order, total):
    with db:  # BEGIN ... COMMIT, or ROLLBACK when something in here raises
        db.execute("INSERT INTO orders (id, total) VALUES (?, ?)", (order, total))
        if total < 0:
            raise ValueError(f"order {order}: total {total} is negative")
        db.execute(
            "INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?)",
            ("order.placed", str(order), json.dumps({"id": order, "total": total})),
        )


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    db = sqlite3.connect(sys.argv[1], timeout=5)
    db.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, total REAL NOT NULL)")
    try:
        place_order(db, int(sys.argv[2]), float(sys.argv[3]))
    except (ValueError, sqlite3.Error) as error:
        sys.exit(f"publish.py: {error}")


main()
