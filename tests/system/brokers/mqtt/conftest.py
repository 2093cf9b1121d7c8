# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import random
import subprocess

import pytest

import rig  # first: it finds the others
import kit
from producer import Producer

PROBE = os.environ["MQTT_PROBE"]


def pytest_report_header():
    return f"outbox: {kit.BINARY}, mosquitto: {rig.PROGRAM}, OUTBOX_TEST_SEED={kit.SEED}"


def pytest_collection_modifyitems(items):
    reason = rig.reason_to_skip()
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def server(tmp_path):
    """server(settings, access) starts one; all end with the test."""
    made = []

    def start(settings="", access="allow_anonymous true"):
        made.append(rig.Server(tmp_path / f"mosquitto-{len(made)}", settings, access))
        return made[-1].start()

    yield start
    for one in made:
        one.kill()


@pytest.fixture
def witness():
    """witness(port, ...) connects one; all end with the test."""
    made = []

    def start(port, **options):
        made.append(rig.Witness(port, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture
def probe():
    """Connect and publish with the driver: the lines that it prints."""
    def run(url, count=1, connect=10, publish=20, *more, timeout=60):
        done = subprocess.run([PROBE, url, *map(str, (count, connect, publish, *more))], capture_output=True,
                              timeout=timeout, check=False)
        assert done.returncode in (0, 1), (done.returncode, done.stdout, done.stderr)
        assert not done.stderr, done.stderr
        return done.stdout.decode()
    return run


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
    """place(type, payload, ...) publishes a message and returns its id."""
    def insert(kind="order.placed", payload='{"n":1}', **columns):
        columns = {"type": kind, "payload_bin" if isinstance(payload, bytes) else "payload": payload, **columns}
        with contextlib.closing(shop.connect()) as db:
            return db.execute(f"INSERT INTO outbox_message ({', '.join(columns)}) VALUES"
                              f" ({', '.join('?' * len(columns))}) RETURNING id",
                              list(columns.values())).fetchone()[0]

    return insert
