# SPDX-License-Identifier: Apache-2.0
import contextlib
import random

import pytest

import rig  # first: it finds the others
import kit
from producer import Producer


def pytest_report_header():
    return f"outbox: {kit.BINARY}, redis: {rig.PROGRAM}, OUTBOX_TEST_SEED={kit.SEED}"


@pytest.fixture
def server(tmp_path):
    """server(settings) starts one; all end with the test."""
    made = []

    def start(settings=""):
        made.append(rig.Server(tmp_path / f"redis-{len(made)}", settings))
        return made[-1]

    if not rig.PROGRAM:
        pytest.skip("no Redis server on this machine (Debian: redis-server)")
    yield start
    for one in made:
        one.close()


@pytest.fixture
def shop(tmp_path):
    return kit.Shop(str(tmp_path), 1)


@pytest.fixture
def courier(shop, tmp_path):
    made = rig.Courier(shop, tmp_path)
    yield made
    made.close()


@pytest.fixture
def producer(shop, request):
    made = Producer(shop, random.Random(f"{kit.SEED}/{request.node.name}"))
    yield made
    made.close()


@pytest.fixture
def place(shop):
    """place(type, payload, ...) publishes a message, or several of them, and returns the (last) id."""
    def insert(kind="order.placed", payload='{"n":1}', times=1, **columns):
        columns = {"type": kind, "payload_bin" if isinstance(payload, bytes) else "payload": payload, **columns}
        with contextlib.closing(shop.connect()) as db:
            db.execute("BEGIN")
            for _ in range(times):
                ident = db.execute(f"INSERT INTO outbox_message ({', '.join(columns)}) VALUES"
                                   f" ({', '.join('?' * len(columns))}) RETURNING id",
                                   list(columns.values())).fetchone()[0]
            db.execute("COMMIT")
        return ident

    return insert
