# SPDX-License-Identifier: Apache-2.0
"""requeue, discard, defer, pause, resume."""
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from shell import end, until


def state(shop, message, target="events"):
    rows = shop.run("show", message, "--json").json["deliveries"]
    row = next(r for r in rows if r["target"] == target)
    return row["state"], row["why"], row["attempts"]


def test_requeue_by_id(shop):
    message = shop.fail()[0]
    assert "requeued 1 delivery" in shop.run("requeue", message).out
    assert state(shop, message)[0] == "pending"
    ran = shop.run("requeue", message, code=4)
    assert f"{message} to events: cannot requeue a pending delivery: only failed ones" in ran.err
    assert shop.run("requeue", "nobody", code=3).err.count("nobody")


def test_requeue_by_id_looks_first(shop):
    message = shop.fail()[0]
    assert shop.run("requeue", message, "--dry-run", "--json").json["dry_run"] is True
    assert "would requeue 1 delivery" in shop.run("requeue", message, "--dry-run").out
    assert state(shop, message)[0] == "failed"


def test_a_target_that_does_not_get_it(shop):
    message = shop.fail()[0]
    config = shop.folder / "outbox.yaml"
    config.write_text(f'sources: [{{ name: shop, store: "{shop.env["OUTBOX_STORE"]}" }}]\n'
                      'targets: [{ name: other, to: "null:", start: oldest, match: { type: [zzz] } }]\n')
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    for command in (["requeue"], ["discard", "--reason", "r"], ["defer", "--until", "+1h"], ["requeue", "--dry-run"]):
        ran = shop.run(*command, message, "--target", "other", code=3)
        assert f"{message} has no delivery to other" in ran.err and not ran.out
    assert state(shop, message)[0] == "failed"
    assert shop.run("audit", "--json").json["audit"] == []


def test_one_of_two_refused_is_told(shop):
    failed = shop.fail()[0]
    delivered = shop.insert()
    shop.relay()
    ran = shop.run("requeue", failed, delivered, code=4)
    assert "requeued 1 delivery" in ran.out and "1 refused; the first one: " in ran.err
    assert state(shop, failed)[0] == "pending"


def test_exactly_one_of_several_requeues_wins(shop):
    message = shop.fail()[0]
    with ThreadPoolExecutor(6) as pool:
        codes = sorted(pool.map(lambda _: shop.run("requeue", message, code=None).code, range(6)))
    assert codes == [0, 4, 4, 4, 4, 4]
    actions = [r["action"] for r in shop.run("audit", "--json").json["audit"]]
    assert actions == ["requeue"]


def test_requeue_by_filter(shop):
    shop.fail(3, type="order.placed")
    shop.fail(2, type="mail.sent")
    look = shop.run("requeue", "--state", "failed", "--target", "events", "--type", "order.*", "--dry-run")
    assert "would requeue 3 deliveries to events (oldest " in look.out
    assert "Run again without --dry-run; add --rate 100/s to limit the rate." in " ".join(look.out.split())
    assert shop.run("list", "--state", "failed", "--json").json["deliveries"][4]
    assert "add --yes" in shop.run("requeue", "--state", "failed", code=10).err
    done = shop.run("requeue", "--state", "failed", "--type", "order.*", "--yes", "--json").json
    assert (done["done"], done["refused"]) == (3, 0)
    left = shop.run("list", "--state", "failed", "--json").json["deliveries"]
    assert {row["type"] for row in left} == {"mail.sent"} and len(left) == 2
    assert shop.run("requeue", "--type", "nothing", "--yes", "--json").json["done"] == 0


def test_a_bulk_requeue_goes_through_all_pages(shop):
    with shop.db() as db:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO outbox_message (type, key, payload) VALUES ('t', ?, '{broken')",
                       [(str(i),) for i in range(2500)])
        db.execute("COMMIT")
    shop.relay(code=1)
    assert "would requeue 2,500 deliveries" in shop.run("requeue", "--state", "failed", "--dry-run").out
    assert "requeued 2,500 deliveries" in shop.run("requeue", "--state", "failed", "--yes").out
    assert shop.run("status", "--json").json["targets"][0]["failed"] == 0


def test_rate_goes_in_small_pages(shop):
    shop.fail(7)
    assert shop.run("requeue", "--state", "failed", "--yes", "--rate", "30/s", "--json").json["done"] == 7


def test_several_targets_want_to_be_named(two):
    message = two.insert(payload="{broken")
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)
    for args in (["requeue", message], ["discard", message, "--reason", "r"],
                 ["defer", message, "--until", "+1h"]):
        ran = two.run(*args, code=2)
        assert "--target is missing: a message has a delivery to each of events, partner" in ran.err
    assert "did you mean events?" in two.run("requeue", message, "--target", "event", code=3).err
    two.run("requeue", message, "--target", "events")
    assert state(two, message)[0] == "pending"


def test_discard(shop):
    message = shop.fail()[0]
    assert "discarded 1 delivery" in shop.run("discard", message, "--reason", "test data").out
    row = shop.run("show", message, "--json").json["deliveries"][0]
    assert (row["state"], row["reason"]) == ("discarded", "test data")
    assert shop.run("discard", message, "--reason", "again", code=4)
    assert shop.run("requeue", message, code=4)


def test_discard_what_was_not_sent_yet(shop):
    shop.relay()
    message, other = shop.insert(key="1"), shop.insert(key="2")
    shop.run("discard", message, "--reason", "a mistake")
    shop.relay()
    assert [e["id"] for e in shop.lines()] == [other]


def test_discard_by_filter(shop):
    shop.fail(3)
    assert shop.run("discard", "--state", "failed", "--reason", "r", code=10)
    assert "would discard 3 deliveries to events" in shop.run(
        "discard", "--state", "failed", "--reason", "r", "--dry-run").out
    assert "discarded 3 deliveries" in shop.run("discard", "--state", "failed", "--reason", "r", "--yes").out
    assert shop.run("status", "--json").json["targets"][0]["discarded"] == 3


def test_defer(shop):
    shop.relay()
    message = shop.insert(key="k")
    after = shop.insert(key="k")
    assert "deferred 1 delivery" in shop.run("defer", message, "--until", "+1h").out
    assert state(shop, message)[:2] == ("pending", "deferred")
    shop.relay()
    assert [e["id"] for e in shop.lines()] == [after]
    shop.run("defer", message, "--until", "+1ms")
    shop.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert [e["id"] for e in shop.lines()] == [after, message]
    assert shop.run("defer", message, "--until", "+1h", code=4)


def test_pause_and_resume(two):
    assert "partner is paused" in two.run("pause", "partner", "--reason", "their maintenance").out
    assert "nothing changed" in two.run("pause", "--target", "partner", "--reason", "again").out
    assert "TARGET is missing" in two.run("pause", "--reason", "r", code=2).err
    assert "give one of them" in two.run("pause", "partner", "--target", "events", "--reason", "r", code=2).err
    message = two.insert()
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    two.run("relay", "--to", "partner=null:", "--once")
    assert state(two, message)[0] == "delivered"
    assert state(two, message, "partner")[:2] == ("pending", "paused")
    status = {t["name"]: t for t in two.run("status", "--json").json["targets"]}
    assert (status["partner"]["paused"], status["partner"]["paused_reason"]) == (True, "their maintenance")
    assert "their maintenance" in two.run("status").out
    stuck, = re.findall("relay.stuck.*", two.run("relay", "--to", "partner=null:", "--until-idle").err)
    assert "target partner" in stuck and "the target is paused" in stuck
    assert two.run("resume", "--target", "partner", "--json").json == {"target": "partner", "paused": False, "changed": True}
    two.run("relay", "--to", "partner=null:", "--until-idle")
    assert state(two, message, "partner")[0] == "delivered"
    actions = [r["action"] for r in two.run("audit", "--json").json["audit"]]
    assert actions == ["resume", "pause"]


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_pause_an_unknown_target(two, command):
    assert 'no target "nobody"; there are: events, partner' in two.run(
        command, "nobody", "--reason", "r", code=3).err


def test_a_bulk_requeue_ends_although_they_fail_again(shop):
    shop.fail(12)
    relay = shop.start("relay", "--to", "events=file:out.jsonl", "--poll", "10ms")
    try:
        done = shop.run("requeue", "--state", "failed", "--yes", "--rate", "20/s", "--json").json
    finally:
        code, _, _ = end(relay)
    assert (done["done"], code) == (12, 0)


def test_a_bulk_discard_leaves_what_came_later(shop):
    """Only what was there when it was counted and confirmed; a slow discard meets new messages."""
    shop.relay()
    for _ in range(3):
        shop.insert()
    discard = shop.start("discard", "--state", "pending", "--target", "events", "--reason", "old", "--yes", "--rate", "2/s")
    until(lambda: shop.run("list", "--state", "discarded", "--json").json["deliveries"], "the first to be discarded")
    for _ in range(5):
        shop.insert()
    discard.communicate(timeout=60)
    assert len(shop.run("list", "--state", "discarded", "--json").json["deliveries"]) == 3
    assert len(shop.run("list", "--state", "pending", "--json").json["deliveries"]) == 5
