# SPDX-License-Identifier: Apache-2.0
"""OUTBOX_TEST_STORE=postgres runs the same tests on PostgreSQL; those marked `sqlite` are left out then."""
import os

import pytest

import pgshop
from shell import BINARY, Shop

STORE = os.environ.get("OUTBOX_TEST_STORE") or "sqlite"
# what has nothing to do with the store, or runs on PostgreSQL anyway
ONCE = ("test_config", "test_man", "test_policy", "test_postgres_", "test_usage")


def pytest_report_header():
    return f"outbox: {BINARY}, store: {STORE}"


def pytest_configure(config):
    config.addinivalue_line("markers", "sqlite: what only SQLite has, or does in its own way")


def pytest_collection_modifyitems(config, items):
    if STORE == "sqlite":
        return
    mine = [item for item in items
            if not item.get_closest_marker("sqlite") and not item.path.name.startswith(ONCE)]
    config.hook.pytest_deselected(items=[item for item in items if item not in mine])
    items[:] = mine


@pytest.fixture
def pg_bare(tmp_path):
    """A PostgreSQL database without an outbox."""
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    shop = pgshop.PgShop(tmp_path)
    yield shop
    shop.drop()


@pytest.fixture
def pg(pg_bare):
    """The same with an outbox and a business table."""
    pg_bare.sql("CREATE TABLE orders (id integer PRIMARY KEY, total numeric)")
    pg_bare.run("init")
    return pg_bare


@pytest.fixture
def bare(tmp_path, request):
    """A folder without a database; on PostgreSQL a database without an outbox."""
    return Shop(tmp_path) if STORE == "sqlite" else request.getfixturevalue("pg_bare")


@pytest.fixture
def shop(bare):
    """A business database with an outbox."""
    with bare.db() as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL)")
    # one lane, as on SQLite, so that first attempts leave in log order
    bare.run("init", "--lanes", "1")
    return bare


@pytest.fixture
def two(shop):
    """The same with two targets that have seen everything so far."""
    shop.run("relay", "--to", "events=file:out.jsonl", "--to", "partner=null:", "--until-idle")
    return shop
