# SPDX-License-Identifier: Apache-2.0
import pytest

from shell import BINARY, Shop


def pytest_report_header():
    return f"outbox: {BINARY}"


@pytest.fixture
def bare(tmp_path):
    """A folder without a database."""
    return Shop(tmp_path)


@pytest.fixture
def shop(bare):
    """A business database with an outbox."""
    with bare.db() as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL)")
    bare.run("init")
    return bare


@pytest.fixture
def two(shop):
    """The same with two targets that have seen everything so far."""
    shop.run("relay", "--to", "events=file:out.jsonl", "--to", "partner=null:", "--until-idle")
    return shop
