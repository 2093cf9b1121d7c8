# SPDX-License-Identifier: Apache-2.0
"""standard_conforming_strings = off, for everybody or for the one who publishes: a backslash means what it means."""
import pathlib
import re

import pytest

GLOBS = "order_1.*,a%b?,back\\slash"
TAKEN = {"order_1.x", "a%bc", "back\\slash"}
LEFT = {"order11.x", "axxbc", "a%b", "backslash", "back\\\\slash"}
PSQL = re.compile(r"\\(set|g|if|endif)")  # its commands, which the server never sees


@pytest.fixture
def odd(pg_bare):
    pg_bare.sql(f"ALTER DATABASE {pg_bare.name} SET standard_conforming_strings = off")
    return pg_bare


def deliver(shop):
    match = [word for glob in GLOBS.split(",") for word in ("--match", f"events={glob}")]
    shop.run("relay", "--to", "events=file:out.jsonl", "--start", "events=oldest", *match, "--until-idle")
    return {line["type"] for line in shop.lines()}


@pytest.mark.parametrize("partition", ["none", "auto"])
def test_publishing_and_routing(odd, partition):
    odd.run("init", "--partition", partition)
    for number, name in enumerate(sorted(TAKEN | LEFT)):
        if number % 2:
            odd.insert(type=name, key=str(number))
        else:
            odd.run("publish", "--type", name, "--key", str(number), "--data", "{}")
    assert deliver(odd) == TAKEN
    assert len(odd.run("list", "--type", "order_1.*", "--json").json["deliveries"]) == 1
    told = {(f["subject"], f["level"]) for f in odd.run("doctor", "--json").json["findings"]}
    assert not [one for one in told if one[1] in ("warning", "error")], told
    if partition == "auto":
        assert ("partitions", "ok") in told


def test_a_route_that_became_another_one_is_mended(pg):
    """By an earlier version's mistake, or by hand: the next registration gives the lanes what was configured."""
    pg.insert(type="order_1.x")
    match = ["--match", "events=order_1.*"]
    pg.run("relay", "--to", "events=file:out.jsonl", *match, "--until-idle")
    assert [line["type"] for line in pg.lines()] == ["order_1.x"]
    version = pg.sql("SELECT version FROM outbox_target")[0][0]
    pg.sql("UPDATE outbox_route SET types = '{wrong}' WHERE version = (SELECT version FROM outbox_target)")
    pg.insert(type="order_1.y")
    pg.run("relay", "--to", "events=file:out.jsonl", *match, "--until-idle")
    assert [line["type"] for line in pg.lines()] == ["order_1.x", "order_1.y"]
    pg.run("relay", "--to", "events=file:out.jsonl", *match, "--until-idle")
    assert pg.sql("SELECT version FROM outbox_target")[0][0] == version + 1, "once, not with every start"


def test_no_backslash_in_our_sql():
    for path in (pathlib.Path(__file__).parents[3] / "sql" / "postgres").glob("*.sql"):
        lines = [line for line in path.read_text().splitlines() if "\\" in line]
        assert not lines or path.name == "roles.sql" and all(PSQL.search(line) for line in lines), lines
