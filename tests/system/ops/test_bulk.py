# SPDX-License-Identifier: Apache-2.0
"""requeue, discard and defer by filter: many rows, interrupted and resumed, nothing twice, at a rate."""
import collections
import os
import re
import signal
import subprocess
import time

import pytest

from places import place
from shell import BINARY, PATIENCE, end, until

MANY = int(os.environ.get("OUTBOX_BULK") or 20000)
INSERT = ("INSERT INTO outbox_message (type, key, payload) "
          "SELECT CASE i % 2 WHEN 0 THEN 'invoice.sent' ELSE 'order.placed' END, 'k' || (i % 997), '{{broken' FROM {}")
SERIES = {
    "sqlite": "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n)",
    "postgres": "generate_series(1, {}) i",
}


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    return place(request.param, tmp_path, request)


def publish(shop, count):
    with shop.db() as db:
        db.execute(INSERT.format(SERIES[shop.kind].format(count)))


def failed(shop, count):
    """That many failed deliveries to partner, half of them order.placed."""
    publish(shop, count)
    shop.run("relay", "--to", "partner=file:out.jsonl", "--until-idle", code=1)


def states(shop):
    with shop.db() as db:
        return dict(db.execute("SELECT state, count(*) FROM outbox_detour GROUP BY state").fetchall())


def audited(shop, action="requeue"):
    """How often each message was acted on."""
    with shop.db() as db:
        rows = db.execute(f"SELECT id, count(*) FROM outbox_audit WHERE action = '{action}' GROUP BY id").fetchall()
    return collections.Counter(dict(rows))


def words(ran):
    return " ".join((ran.out + ran.err).split())


def test_interrupted_and_resumed(shop):
    """SIGINT between pages, then kill -9 in the middle, then to the end: each delivery once."""
    failed(shop, MANY)
    args = ["requeue", "--state", "failed", "--type", "order.*", "--yes"]
    look = shop.run(*args[:-1], "--dry-run")
    assert f"would requeue {MANY // 2:,} deliveries to partner (oldest " in words(look)
    process = shop.start(*args, "--rate", "5000/s")
    until(lambda: states(shop).get("pending", 0) > 0, "the first page")
    code, out, err = end(process, signal.SIGINT)
    assert code == 130 and out == "", out + err
    told = re.search(r"interrupted: requeued ([\d,]+) of ([\d,]+) deliveries", " ".join(err.split()))
    done = int(told.group(1).replace(",", ""))
    assert told.group(2) == f"{MANY // 2:,}" and 0 < done < MANY // 2
    assert states(shop) == {"pending": done, "failed": MANY - done}
    # killed in the middle of whatever it does: whole pages or nothing
    process = shop.start(*args, "--rate", "5000/s")
    until(lambda: states(shop)["pending"] > done, "another page")
    process.kill()
    process.communicate()
    # (a server may still end the page that it was told to do)
    now = states(shop)
    assert done < now["pending"] < MANY // 2 and sum(now.values()) == MANY
    # what was suggested does the rest
    command = err[err.index("outbox requeue"):].replace("outbox", BINARY, 1).replace(" --rate 300000/min", "")
    told = subprocess.run(["bash", "-c", command], cwd=shop.folder, env=shop.env, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert told.returncode == 0 and "requeued " in told.stdout, str(told)
    assert states(shop) == {"pending": MANY // 2, "failed": MANY - MANY // 2}
    times = audited(shop)
    assert len(times) == MANY // 2 and set(times.values()) == {1}
    assert "requeued 0 deliveries" in shop.run(*args).out


def test_what_comes_later_is_not_meant(shop):
    """Neither what is published nor what fails again while a bulk act is under way."""
    failed(shop, 60)
    args = ["requeue", "--state", "failed", "--yes"]
    process = shop.start(*args, "--rate", "20/s")
    until(lambda: states(shop).get("pending", 0) > 0, "the first page")
    publish(shop, 40)
    shop.run("relay", "--to", "partner=file:out.jsonl", "--until-idle", code=1)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    assert b"requeued 60 deliveries" in out
    times = audited(shop)
    assert len(times) == 60 and set(times.values()) == {1}


def test_a_resumed_requeue_leaves_what_failed_again(shop):
    failed(shop, 200)
    process = shop.start("requeue", "--state", "failed", "--yes", "--rate", "50/s")
    until(lambda: states(shop).get("pending", 0) > 0, "the first page")
    code, _, err = end(process, signal.SIGINT)
    done = states(shop)["pending"]
    assert code == 130 and 0 < done < 200
    shop.run("relay", "--to", "partner=file:out.jsonl", "--until-idle", code=1)
    assert states(shop) == {"failed": 200}
    command = err[err.index("outbox requeue"):].replace("outbox", BINARY, 1).replace(" --rate 3000/min", "")
    told = subprocess.run(["bash", "-c", command], cwd=shop.folder, env=shop.env, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)
    assert f"requeued {200 - done} deliveries" in told.stdout, str(told)
    assert set(audited(shop).values()) == {1}


def test_a_rate_is_kept(shop):
    """At 600/min a page is six; a second later at most a few pages are done, not all."""
    failed(shop, 300)
    began = time.monotonic()
    process = shop.start("requeue", "--state", "failed", "--yes", "--rate", "600/min")
    until(lambda: states(shop).get("pending", 0) > 0, "the first page")
    end(process, signal.SIGINT)
    spent = time.monotonic() - began
    # never more than the time that has passed allows, and a page ahead
    assert states(shop)["pending"] <= 10 * spent + 2


def test_as_json(shop):
    failed(shop, 3000)
    look = shop.run("requeue", "--state", "failed", "--dry-run", "--json").json
    assert (look["action"], look["dry_run"], look["done"]) == ("requeue", True, 3000)
    process = shop.start("requeue", "--state", "failed", "--yes", "--json", "--rate", "100/s")
    until(lambda: states(shop).get("pending", 0) > 0, "the first page")
    code, out, _ = end(process, signal.SIGTERM)
    assert code == 143 and '"more":true' in out and f'"done":{states(shop)["pending"]},' in out


def test_defer_by_filter(shop):
    publish(shop, 10)
    shop.run("relay", "--to", "partner=null:", "--once", "--match", "partner=nothing")
    shop.run("relay", "--to", "partner=null:", "--once")
    publish(shop, 10)
    look = shop.run("defer", "--type", "order.*", "--until", "+1h", "--dry-run")
    assert "would defer 5 deliveries to partner" in words(look)
    assert "deferred 5 deliveries" in shop.run("defer", "--type", "order.*", "--until", "+1h", "--yes").out
    rows = shop.run("list", "--why", "deferred", "--json").json["deliveries"]
    assert len(rows) == 5 and {r["type"] for r in rows} == {"order.placed"}
    assert "only pending deliveries can be deferred" in shop.run("defer", "--state", "failed", "--until", "+1h", "--yes", code=2).err


def test_by_age(shop):
    failed(shop, 4)
    assert shop.run("list", "--state", "failed", "--created-before", "1h", "--json").json["deliveries"] == []
    assert "requeued 0" in shop.run("requeue", "--state", "failed", "--changed-before", "1h", "--yes").out
    stamp = shop.run("status", "--json").json["now"]
    failed(shop, 4)
    assert len(shop.run("list", "--state", "failed", "--created-before", stamp, "--json").json["deliveries"]) == 4
    assert "requeued 4 deliveries" in shop.run("requeue", "--changed-before", stamp, "--yes").out
    assert states(shop) == {"failed": 4, "pending": 4}


def test_list_by_ids(shop):
    failed(shop, 4)
    ids = [r["id"] for r in shop.run("list", "--json").json["deliveries"]]
    assert [r["id"] for r in shop.run("list", ids[2], ids[0], "--json").json["deliveries"]] == [ids[0], ids[2]]
