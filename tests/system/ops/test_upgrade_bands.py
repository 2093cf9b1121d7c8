# SPDX-License-Identifier: Apache-2.0
"""Bands on a store that was made by the version before, and relays of the version before beside them."""
import collections
import subprocess
import threading

import pytest

from before import ROOT, before
from places import bare_place, delivered, pgshop, relay
from shell import until


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    """As the version before leaves it: three delivered, three not."""
    made = bare_place(request.param, tmp_path, request)
    old = before(made)
    old.run("init")
    publish(made)
    relay(old)
    publish(made)
    return made


def publish(shop):
    """One for each band, all of one key."""
    for priority in (5, 0, -5):
        shop.insert(key="k", priority=priority)


def expect_all(shop, count):
    """Every message arrived; returns those that came more than once."""
    times = collections.Counter(line["id"] for line in shop.lines())
    with shop.db() as db:
        ids = [row[0] for row in db.execute("SELECT id FROM outbox_message ORDER BY seq").fetchall()]
    assert len(ids) == count
    lost = [(i, message) for i, message in enumerate(ids) if message not in times]
    assert not lost, f"lost: {lost}; delivered: {delivered(shop)}"
    return [message for message in ids if times[message] > 1]


def test_bands_after_an_upgrade(shop):
    """What was waiting stays with events, in its order; what follows goes by its band."""
    shop.run("upgrade")
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events": 6}
    publish(shop)
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events-high": 1, "events": 7, "events-low": 1}
    assert not expect_all(shop, 9)
    assert [line["sequence"] for line in shop.lines()][:6] == sorted((line["sequence"] for line in shop.lines()), key=int)[:6]


def test_the_version_before_beside_bands(shop):
    """It knows nothing of them and sends every band to events, where bands send it, too: twice, but never not at all."""
    old = before(shop)
    shop.run("upgrade")
    relay(shop, "--bands", "events")
    publish(shop)
    relay(old)
    relay(shop, "--bands", "events")
    expect_all(shop, 9)
    publish(shop)
    relay(shop, "--bands", "events")
    publish(shop)
    relay(old)
    publish(shop)
    relay(shop)
    relay(old)
    publish(shop)
    relay(shop, "--bands", "events")
    expect_all(shop, 21)
    # from here on all are of the new version
    known = len(shop.lines())
    publish(shop)
    relay(shop, "--bands", "events")
    relay(shop)
    assert len(shop.lines()) == known + 3
    expect_all(shop, 24)


# From this version back to 3, where bands were a part of the kind.
BACK = """
UPDATE outbox_route SET kind = coalesce(kind, '*') || ' ' || bands::text WHERE bands IS NOT NULL;
DROP TYPE outbox_ahead CASCADE;
DROP TABLE outbox_attempt, outbox_cancelled;
DROP TRIGGER outbox_detour_forget ON outbox_detour;
DROP TYPE outbox_request CASCADE;
DROP TYPE outbox_moment CASCADE;
DROP TYPE outbox_fault CASCADE;
DROP TYPE outbox_registration CASCADE;
DROP FUNCTION outbox_bands_take CASCADE;
ALTER TYPE outbox_view DROP ATTRIBUTE bands CASCADE;
ALTER TYPE outbox_view DROP ATTRIBUTE headers CASCADE;
ALTER TABLE outbox_route DROP COLUMN headers CASCADE;
ALTER TABLE outbox_route DROP COLUMN bands CASCADE;
ALTER TABLE outbox_lane DROP COLUMN refused_kind CASCADE;
DROP TRIGGER outbox_message_accept ON outbox_message;
UPDATE outbox_meta SET value = '3' WHERE name = 'schema';
"""


@pytest.fixture
def banded(request, tmp_path):
    made = bare_place("postgres", tmp_path, request)
    made.run("init", "--lanes", "1")
    relay(made, "--bands", "events")
    return made


def test_bands_become_a_column(banded):
    """What version 3 had in kind: the kind is a word again, and every band gets what it got."""
    publish(banded)
    relay(banded, "--bands", "events")
    routes = banded.sql("SELECT target, version, types, kind, published_only, bands FROM outbox_route ORDER BY 1, 2")
    assert any(route[-1] for route in routes)
    publish(banded)
    banded.sql(BACK)
    assert banded.sql("SELECT count(*) FROM outbox_route WHERE kind LIKE '* {%}'")[0][0] > 0
    banded.run("upgrade")
    assert banded.sql("SELECT target, version, types, kind, published_only, bands FROM outbox_route ORDER BY 1, 2") == routes
    relay(banded, "--bands", "events")
    assert delivered(banded) == {"events-high": 2, "events": 2, "events-low": 2}
    assert not expect_all(banded, 6)


NONE = "ROW(0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}')::outbox_outcomes"
ONE = "ROW(1, {0}, {0}, {0}, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}', '{{}}')::outbox_outcomes"


@pytest.mark.parametrize("target, taken", [("events-high", 0), ("all", 1)])
def test_what_version_3_reads_ahead(banded, target, taken):
    """It knows nothing of the column: of a target with bands, what it read ahead may be others'."""
    banded.run("relay", "--to", "all=null:", "--start", "all=oldest", "--until-idle")
    for priority in (5, 5, -5):
        banded.insert(priority=priority)
    first, second = (row[0] for row in banded.sql("SELECT seq FROM outbox_message ORDER BY seq LIMIT 2"))
    n, token = banded.sql(f"SELECT n, token FROM outbox_take('{target}', 0, 'old', 7, NULL)")[0]
    version = banded.sql(f"SELECT version FROM outbox_target WHERE name = '{target}'")[0][0]
    call = f"SELECT head, seq FROM outbox_advance('{target}', 0, 'old', {{}}, {{}}, {{}}, {version}, {{}}, 1, 1000, NULL"
    assert banded.sql(call.format(n, token, 8, NONE) + ")")[0][1] == first
    *rows, last = banded.sql(call.format(n + 1, 8, 9, ONE.format(first)) + f", 1, {second}, {second})")
    assert (last[0][7], [row[1] for row in rows]) == (taken, [] if taken else [second])


VERSION_3 = "ab74927"  # the last one with schema 3
CODE_3 = ["bands", "window", "lane", "settle", "claim", "advance", "target", "look", "tail", "act", "purge", "partition", "views", "check"]


def code_of_version_3():
    shown = subprocess.run(["git", "-C", ROOT, "show", *(f"{VERSION_3}:sql/postgres/{name}.sql" for name in CODE_3)],
                           capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        pytest.skip(f"version 3, {VERSION_3}, is not in this checkout's history (a shallow clone, or no git)")
    return shown.stdout


@pytest.mark.parametrize("before_it", ["nothing", "a claim", "the same claim"])
def test_a_claim_that_waits_for_the_upgrade(banded, before_it):
    """It began with the functions of version 3, which know the bands by kind: it must not end as if there were none."""
    banded.sql(BACK)
    banded.sql("DROP FUNCTION outbox_stretch, outbox_window CASCADE;" + code_of_version_3())
    n, token = banded.sql("SELECT n, token FROM outbox_take('events-high', 0, 'old', 7, NULL)")[0]
    version = banded.sql("SELECT version FROM outbox_target WHERE name = 'events-high'")[0][0]
    call = f"SELECT seq FROM outbox_advance('events-high', 0, 'old', {{}}, {{}}, {{}}, {version}, {{}}, 10, 100000, NULL)"
    request = call.format(n, token, 8, NONE)
    publish(banded)
    mine = banded.sql("SELECT min(seq) FROM outbox_message")[0][0]
    if before_it != "nothing":
        assert banded.sql(request)[0][0] == mine
    if before_it == "a claim":
        publish(banded)
        request = call.format(n + 1, 8, 9, ONE.format(mine))
        mine += 3
    said = []

    def claim():
        try:
            said.append([row[0] for row in banded.sql(request) if row[0]])
        except pgshop.psycopg2.Error as error:
            said.append(error.pgcode)

    upgrade = pgshop.psycopg2.connect(host="127.0.0.1", port=banded.server.port, user="postgres", dbname=banded.name)
    upgrade.autocommit = True
    script = banded.run("sql", "postgres", "--from", "3", people=False).out
    upgrade.cursor().execute(script[:script.rindex("COMMIT;")])
    old = threading.Thread(target=claim)
    old.start()
    until(lambda: banded.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0], "the claim to wait")
    upgrade.cursor().execute("COMMIT")
    old.join()
    upgrade.close()
    claim()
    # an error after which a relay connects again and asks anew
    assert said == ["42883", [mine]]


# As the program of version 3 registers a target, and as this one does: name, kind, bands, family, start.
OLD_PUT = """SELECT outbox_band_note({0}, {3}, outbox_target_put({0}, {0} || '"', '{{a.*}}', outbox_band_kind({0}, {1}, {2}, {3}, {4}), true, false,
    false, outbox_band_start({4}, {0}, {3}), 77, NULL, NULL, NULL)) FROM outbox_route_lock({0}, {0} || '"', '{{a.*}}', true)"""
NEW_PUT = """SELECT outbox_register(ROW({0}, {0} || '"', '{{a.*}}', {1}, true, {2}, {3}, NULL, false, false, {4}, NULL, NULL, 77, NULL)
    ::outbox_registration)"""


@pytest.mark.parametrize("kind", ["NULL", "'event'"])
@pytest.mark.parametrize("start", [1, 2])
def test_version_3_registers_the_same(banded, kind, start):
    """It passes the bands as a part of the kind. Switched on when the target is new, off, and on again."""
    def put(names, family):
        for name, bands in names:
            for form, who in ((OLD_PUT, "old"), (NEW_PUT, "new")):
                banded.sql(form.format(f"'{who}{name}'", kind, bands, f"'{who}'" if family else "NULL", start))
        publish(banded)

    def routes(who):
        return banded.sql(f"SELECT substr(target, 4), version, types, kind, published_only, bands FROM outbox_route"
                          f" WHERE target LIKE '{who}%' ORDER BY 1, 2")

    publish(banded)
    put([("", 2), ("-high", 1), ("-low", 4)], True)
    put([("", 7)], False)
    put([("", 2), ("-high", 1), ("-low", 4)], True)
    assert routes("old") == routes("new") and len(routes("old")) > 3
    assert {row[3] for row in routes("old")} == {kind.strip("'") if kind != "NULL" else None}
    assert all(row[5] for row in routes("old"))
    look = "SELECT substr(target, 4), pos, floor, prev_seq FROM outbox_receipt WHERE target LIKE '{}%' AND n = 1 ORDER BY 1"
    assert banded.sql(look.format("old")) == banded.sql(look.format("new"))


# What the lane of a target is refused for, and what makes it so.
REFUSALS = {
    "log end": "SELECT setval('outbox_message_seq_seq', 1, false)",
    "transaction": "UPDATE outbox_receipt SET cur_xid = '99999999'",
    "server": "UPDATE outbox_meta SET value = '4711' WHERE name = 'cluster'",
    "reuse": "UPDATE outbox_receipt SET prev_xid = '3', cur_xid = '3'",
}


@pytest.mark.parametrize("kind", REFUSALS)
def test_refusals_get_their_kind(banded, kind):
    """Version 3 noted the text alone, with the remedy in it."""
    publish(banded)
    relay(banded, "--bands", "events")
    banded.sql(BACK)
    banded.sql("DROP FUNCTION outbox_stretch, outbox_window CASCADE;" + code_of_version_3())
    banded.sql(REFUSALS[kind])
    banded.sql("SELECT outbox_refuse('events', 0, NULL)")
    was = banded.sql("SELECT refused FROM outbox_lane WHERE target = 'events'")[0][0]
    assert was.endswith("; run: outbox rebase")
    banded.run("upgrade")
    assert banded.sql("SELECT target, refused_kind, refused FROM outbox_lane WHERE refused IS NOT NULL OR refused_kind IS NOT NULL") == [
        ("events", kind, was.removesuffix("; run: outbox rebase"))]
    told = next(t for t in banded.run("status", "--json").json["targets"] if t["name"] == "events")["lanes"][0]["refused"]
    assert told == was.replace("rebase", "realign")
    banded.run("realign", "--yes")
    assert banded.sql("SELECT count(*) FROM outbox_lane WHERE refused IS NOT NULL OR refused_kind IS NOT NULL")[0][0] == 0
    publish(banded)
    relay(banded, "--bands", "events")
    expect_all(banded, 6)
