# SPDX-License-Identifier: Apache-2.0
"""Nothing is published but what is committed, with what it is about; nothing is handled twice."""
import contextlib
import datetime
import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from conftest import CLIENT
from fetch import fetch
from outbox_client import InvalidMessage, Message, NoTransaction, accept, once, publish, publish_all, published

PLACED = Message("order.placed", {"id": 42}, key="42")


def test_without_a_transaction_it_is_refused(place):
    conn = place.connect(autocommit=True)
    for act in (lambda: publish(conn, PLACED, schema=place.schema),
                lambda: accept(conn, "billing", "order-42", schema=place.schema)):
        with pytest.raises(NoTransaction, match="BEGIN"):
            act()
    assert not place.types()
    place.execute(conn, "BEGIN")
    publish(conn, PLACED, schema=place.schema)
    place.execute(conn, "COMMIT")
    assert place.types() == ["order.placed"]


def test_a_rollback_publishes_nothing(place):
    conn = place.connect()
    place.execute(conn, "INSERT INTO notes (note) VALUES ('lost')")
    publish(conn, PLACED, schema=place.schema)
    conn.rollback()
    assert not place.types()
    conn.commit()
    assert not place.types()


def test_a_savepoint_that_is_rolled_back_publishes_nothing(place):
    conn = place.connect()
    place.execute(conn, "INSERT INTO notes (note) VALUES ('kept')")
    publish(conn, Message("before", 1), schema=place.schema)
    place.execute(conn, "SAVEPOINT one")
    publish(conn, Message("inside", 1), schema=place.schema)
    assert [row["type"] for row in published(conn, schema=place.schema)] == ["before", "inside"]
    place.execute(conn, "ROLLBACK TO SAVEPOINT one")
    publish(conn, Message("behind", 1), schema=place.schema)
    assert [row["type"] for row in published(conn, schema=place.schema)] == ["before", "behind"]
    conn.commit()
    assert place.types() == ["before", "behind"]


def test_a_batch_is_all_or_none_and_in_order(place):
    conn = place.connect()
    messages = [Message("t", n, key=str(n % 7) if n % 2 else None, subject=f"s{n}") for n in range(2500)]
    with pytest.raises(InvalidMessage, match="^message 2500: key: is empty") as refused:
        publish_all(conn, [*messages, Message("t", 1, key="")], schema=place.schema)
    assert refused.value.field == "key"
    assert not published(conn, schema=place.schema)
    ids = publish_all(conn, messages, schema=place.schema)
    assert publish_all(conn, [], schema=place.schema) == []
    conn.commit()
    rows = list(place.rows())
    assert [row["id"] for row in rows] == ids and len(set(ids)) == 2500
    assert [row["subject"] for row in rows] == [f"s{n}" for n in range(2500)]


def test_an_id_of_ones_own_is_published_once(place):
    mine = f"{place.driver}-{place.before}"
    for _ in range(2):
        with place.connect() as conn:
            assert publish(conn, Message("t", 1, id=mine), schema=place.schema) == mine
            publish_all(conn, [Message("t", 1, id=mine), Message("other", 1)], schema=place.schema)
    assert place.types() == ["t", "other", "other"]


def test_published_sees_its_own_transaction_alone(place):
    first, conn = place.connect(), place.connect()
    publish(first, Message("committed.before", 1, key="42"), schema=place.schema)
    first.commit()
    assert published(conn, schema=place.schema) == []
    publish(conn, Message("order.placed", {"total": 99.5}, key="42", headers={"tenant": "7"}), schema=place.schema)
    if place.schema:  # SQLite has one writer
        publish(first, Message("committed.meanwhile", 1, key="42"), schema=place.schema)
        first.commit()
    publish(conn, Message("order.noted", payload="text", content_type="text/plain"), schema=place.schema)
    assert [row["type"] for row in published(conn, schema=place.schema)] == ["order.placed", "order.noted"]
    (row,) = published(conn, "order.placed", key="42", schema=place.schema)
    assert row["data"] == {"total": 99.5} and row["headers"] == {"tenant": "7"}
    assert published(conn, "order.placed", key="43", schema=place.schema) == []
    assert published(conn, key="42", schema=place.schema) == [row]
    conn.commit()
    assert published(conn, schema=place.schema) == []


def test_published_needs_a_file():
    with contextlib.closing(sqlite3.connect(":memory:")) as conn:
        with pytest.raises(RuntimeError, match="test with a file"):
            published(conn)


def test_a_storm_of_duplicates_is_handled_once(place):
    """Each of 40 messages three times, to four consumers at once; every fifth handler fails the first time."""
    name = f"storm {place.driver} {place.before}"
    failed, lock = set(), threading.Lock()

    @once(name, schema=place.schema)
    def on_order(conn, event):
        place.execute(conn, "INSERT INTO notes (note) VALUES (?)", (name + event["id"],))
        publish(conn, Message("order.billed", 1), schema=place.schema)
        with lock:
            first = event["id"] not in failed
            failed.add(event["id"])
        if first and int(event["id"]) % 5 == 0:
            raise ConnectionError("of the handler")
        return event["id"]

    handled = []

    def consume(conn):
        for number in range(40):
            for attempt in range(3):
                try:
                    if place.driver == "sqlite3":
                        place.execute(conn, "BEGIN IMMEDIATE")
                    done = on_order(conn, {"id": str(number), "correlationid": "all"})
                    conn.commit()
                    handled.append(done)
                except ConnectionError:
                    conn.rollback()
                    assert attempt < 3

    consumers = [threading.Thread(target=consume, args=(place.connect(),)) for _ in range(4)]
    for one in consumers:
        one.start()
    for one in consumers:
        one.join()
    effects = place.execute(place.look, "SELECT note FROM notes WHERE note LIKE ?", (name + "%",))
    assert sorted(note for note, in effects) == sorted(name + str(n) for n in range(40))
    assert sorted(int(done) for done in handled if done is not None) == list(range(40))
    rows = list(place.rows())
    assert sorted(row["causation_id"] for row in rows) == sorted(str(n) for n in range(40))
    assert {row["correlation_id"] for row in rows} == {"all"}


def test_a_time_without_a_zone_and_values_that_are_no_text(place):
    conn = place.connect()
    for field, message in {"due_at": Message("t", 1, due_at=datetime.datetime(2030, 1, 1)),
                           "key": Message("t", 1, key=42), "headers": Message("t", 1, headers={"n": 1}),
                           "subject": Message("t", 1, subject="\ud800"), "payload": Message("t", float("nan"))}.items():
        with pytest.raises(InvalidMessage) as refused:
            publish(conn, message, schema=place.schema)
        assert refused.value.field == field


def test_the_current_span_is_the_trace():
    folder = fetch("opentelemetry-sdk==1.27.0", "opentelemetry")
    if not folder:
        pytest.skip("OpenTelemetry for Python cannot be fetched here: the package index cannot be reached")
    program = """
from opentelemetry.sdk.trace import TracerProvider
from outbox_client import Message, handling
other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
with TracerProvider().get_tracer("t").start_as_current_span("s") as span, handling({"id": "e", "traceparent": other}):
    context = span.get_span_context()
    assert Message("t", 1).columns()["traceparent"] == f"00-{context.trace_id:032x}-{context.span_id:016x}-01"
    assert Message("t", 1, traceparent=other).columns()["traceparent"] == other
assert "traceparent" not in Message("t", 1).columns()
"""
    env = {**os.environ, "PYTHONPATH": f"{folder}:{CLIENT}"}
    subprocess.run([sys.executable, "-c", program], check=True, env=env)
