# SPDX-License-Identifier: Apache-2.0
import os
import random

import pytest

import kit
from producer import Producer

STORE = os.environ.get("OUTBOX_TEST_STORE") or "sqlite"
if STORE == "postgres":
    from pgshop import PostgresShop as Shop
else:
    from kit import Shop


def pytest_report_header():
    return f"outbox: {kit.BINARY}, OUTBOX_TEST_STORE={STORE}, OUTBOX_TEST_SEED={kit.SEED}"


@pytest.fixture
def rng(request):
    """Random numbers that depend on the seed and the test alone, not on what ran before."""
    return random.Random(f"{kit.SEED}/{request.node.name}")


@pytest.fixture
def make(tmp_path, rng):
    """make(lanes=1, ...) gives a shop, a crew of relays for it and a producer; all end with the test."""
    made = []

    def build(lanes=1, options="", shop_folder=None, consumer=None):
        shop = Shop(str(shop_folder or tmp_path), lanes, options)
        crew = kit.Crew(shop, tmp_path, consumer)
        producer = Producer(shop, rng)
        made.extend([producer, crew])
        return shop, crew, producer

    yield build
    for thing in made:
        thing.close()
