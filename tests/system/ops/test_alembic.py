# SPDX-License-Identifier: Apache-2.0
"""What docs/stores/migrations.md says of Alembic, with Alembic itself: it wants to drop nothing of the outbox."""
import json
import re
import subprocess
import sys

import pytest

from before import ROOT
from fetch import fetch
from places import pgshop

PACKAGE = "alembic==1.13.3"
# Prints the tables that an empty set of models would have it drop.
COMPARE = """
import json, psycopg2, sys
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, create_engine
names = {}
exec(sys.argv[2], names)
with create_engine("postgresql+psycopg2://", creator=lambda: psycopg2.connect(sys.argv[1])).connect() as db:
    how = {"include_schemas": sys.argv[3] == "all", **({"include_name": names["include_name"]} if "include_name" in names else {})}
    found = compare_metadata(MigrationContext.configure(db, opts=how), MetaData())
print(json.dumps(sorted(f[1].name for f in found if f[0] == "remove_table")))
"""


@pytest.fixture(name="drops", scope="module")
def make_drops():
    folder = fetch(PACKAGE, "alembic")
    if not folder:
        pytest.skip(f"{PACKAGE} cannot be fetched here: the package index cannot be reached")
    page = (ROOT / "docs" / "stores" / "migrations.md").read_text()
    snippet, = re.findall(r"^```python alembic\n(.*?)^```$", page, re.M | re.S)

    def drops(shop, ignored, schemas="default"):
        env = {**shop.env, "PYTHONPATH": str(folder)}
        done = subprocess.run([sys.executable, "-c", COMPARE, shop.url, snippet if ignored else "", schemas], env=env, capture_output=True,
                              text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    return drops


@pytest.fixture(name="shop")
def make_shop(tmp_path, request):
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    made = pgshop.PgShop(tmp_path)
    request.addfinalizer(made.drop)
    made.sql("CREATE TABLE orders (id integer PRIMARY KEY)")
    return made


def test_a_schema_of_its_own_is_not_seen(shop, drops):
    shop.run("init", "--schema", "outbox")
    assert drops(shop, ignored=False) == ["orders"]
    assert drops(shop, ignored=True, schemas="all") == ["orders"]
    shop.sql(f"ALTER DATABASE {shop.name} SET search_path = public, outbox")
    assert drops(shop, ignored=True) == ["orders"]
    assert drops(shop, ignored=True, schemas="all") == ["orders"]
    shop.sql("INSERT INTO outbox_message (type, payload) VALUES ('t', '{}')")
    shop.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert len(shop.lines()) == 1


def test_in_public_it_is_passed_over(shop, drops):
    shop.run("init")
    assert "outbox_message" in drops(shop, ignored=False)
    assert drops(shop, ignored=True) == ["orders"]
