#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Publish from Python with psycopg alone: publish_pg.py CONNECTION ORDER TOTAL

CONNECTION is libpq's: "dbname=shop" or postgresql://app@db/shop. The order and its message are written
in one transaction: both exist, or neither does. It works with psycopg 3 and with psycopg2.
"""
import json
import sys

try:
    import psycopg
except ImportError:
    import psycopg2 as psycopg


def place_order(db, order, total):
    with db.cursor() as cursor:
        cursor.execute("INSERT INTO orders (id, total) VALUES (%s, %s)", (order, total))
        if total < 0:
            raise ValueError(f"order {order}: total {total} is negative")
        cursor.execute(
            "INSERT INTO outbox_message (type, key, payload) VALUES (%s, %s, %s) RETURNING id",
            ("order.placed", str(order), json.dumps({"id": order, "total": total})),
        )
        return cursor.fetchone()[0]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    try:
        with psycopg.connect(sys.argv[1]) as db:  # COMMIT at its end, ROLLBACK when something raises
            print(place_order(db, int(sys.argv[2]), float(sys.argv[3])))
    except (ValueError, psycopg.Error) as error:
        sys.exit(f"publish_pg.py: {error}")


main()
