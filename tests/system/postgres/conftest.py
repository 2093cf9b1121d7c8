# SPDX-License-Identifier: Apache-2.0
"""Faults: the integration tests' kit, with servers that are restarted, promoted, filled and cut off."""
import os
import random
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "support"), os.path.join(HERE, "..", "integration")]
# pylint: disable=wrong-import-position
import kit
import postgres
from pgshop import PostgresShop
from sturdy import SturdyProducer

postgres.end_on_signals()  # a test that takes too long leaves no server behind

def pytest_report_header():
    return f"outbox: {kit.BINARY}, OUTBOX_TEST_SEED={kit.SEED}"


@pytest.fixture
def rng(request):
    return random.Random(f"{kit.SEED}/{request.node.name}")


@pytest.fixture(scope="module")
def server():
    """A server that the tests of a file share; whoever harms it makes one of their own."""
    with postgres.Server() as one:
        yield one


@pytest.fixture
def make(tmp_path, rng):
    """make(server, lanes=1, ...) gives a shop, a crew of relays for it and a producer; all end with the test."""
    made = []

    def build(one, lanes=1, options="", url=None, **more):
        shop = PostgresShop(None, lanes, options, server=url or one.url(), **more)
        crew = kit.Crew(shop, tmp_path)
        producer = SturdyProducer(shop, rng)
        made.extend([producer, crew])
        return shop, crew, producer

    yield build
    for thing in made:
        thing.close()
