# SPDX-License-Identifier: Apache-2.0
"""Lanes that relays refuse, because position and log do not belong together: everybody says so, and realign helps."""
import re

import pytest

from shell import until

BREAK = {
    "reset": "ALTER SEQUENCE outbox_message_seq_seq RESTART",
    "copied": "UPDATE outbox_meta SET value = '42' WHERE name = 'cluster'",
}
WHY = {"reset": "its sequence", "copied": "written on another server"}


@pytest.fixture(name="broken", params=BREAK)
def fixture_broken(pg, request):
    """Two targets have delivered three messages and a fourth waits, then it happens."""
    for _ in range(3):
        pg.insert()
    pg.run("relay", "--to", "events=file:out.jsonl", "--to", "partner=null:", "--until-idle")
    pg.insert()
    pg.sql(BREAK[request.param])
    pg.why = WHY[request.param]
    return pg


def test_status_and_doctor_say_so(broken):
    for target in broken.run("status", "--json").json["targets"]:
        assert target["state"] == "refused"
        for lane in target["lanes"]:
            assert f"target {target['name']}, lane {lane['lane']}" in lane["refused"]
            assert "outbox realign" in lane["refused"]
        assert any(broken.why in lane["refused"] for lane in target["lanes"])
    text = " ".join(broken.run("status").out.split())
    assert "events: relays refuse 4 of its 4 lanes; target events, lane 0" in text and broken.why in text
    assert [t["state"] for t in broken.run("target", "list", "--json").json["targets"]] == ["refused"] * 2
    told = [f for f in broken.run("doctor", "--json", code=1).json["findings"] if f["level"] == "error"]
    assert {f["subject"] for f in told} >= {"events", "partner"}
    assert all("outbox realign" in f["text"] for f in told)


def test_a_relay_says_so_once_and_goes_on_after_a_realign(broken):
    said = broken.folder / "said"
    with said.open("wb") as err:
        relay = broken.start("relay", "--to", "events=file:out.jsonl", stderr=err)
    try:
        until(lambda: broken.why in said.read_text(), "the relay to say so")
        broken.run("realign", "--yes")
        broken.insert()
        until(lambda: len(broken.lines()) == 5, "a delivery")
    finally:
        relay.terminate()
        relay.wait()
    assert said.read_text().count("nothing is sent from this lane") == 1
    assert "store answers again" not in said.read_text()


def test_runs_that_end_say_why_they_did_nothing(broken):
    for how in ("--once", "--until-idle"):
        ran = broken.run("relay", "--to", "events=file:out.jsonl", how, code=14)
        assert broken.why in ran.err.splitlines()[-1] and "outbox realign" in ran.err


def test_realign_in_plain_words(broken):
    before = broken.run("status", "--json").json["targets"]
    plan = broken.run("realign", "--dry-run").out
    assert plan.startswith("reason: target events, lane 0")
    plan = " ".join(plan.split())
    assert broken.why in plan and "run: outbox realign" not in plan and "detour" not in plan
    assert len(re.findall(r"would continue after message \d+; nothing before that is left to send", plan)) == 6
    assert len(re.findall(r"1 message before that is not sent yet and comes first", plan)) == 2
    assert "Run again with --yes" in plan
    told = broken.run("realign", "--dry-run", "--json").json
    assert broken.why in told["reason"] and len(told["lanes"]) == 8
    for one, other in zip(before, broken.run("status", "--json").json["targets"]):
        assert [lane["receipts"] for lane in one["lanes"]] == [lane["receipts"] for lane in other["lanes"]]
    assert broken.run("audit", "--json").json["audit"] == []
    done = " ".join(broken.run("realign", "--yes").out.split())
    assert "continues after message" in done and "would" not in done and done.endswith("Start the relays again.")
    assert "nothing was changed" in broken.run("realign", "--yes").out
    [row] = broken.run("audit", "--json").json["audit"]
    assert row["action"] == "rebase" and row["actor"].startswith("alice@") and "continues after message" in row["detail"]
    assert {t["state"] for t in broken.run("status", "--json").json["targets"]} == {"no relay"}
    assert broken.run("realign", "--yes", "--json").json["reason"] is None


def test_sqlite_says_so_too(tmp_path):
    from shell import Shop
    shop = Shop(tmp_path)
    shop.run("init")
    shop.insert()
    shop.relay()
    shop.run("purge", "--delivered-before", "0s")
    with shop.db() as db:
        db.execute("UPDATE sqlite_sequence SET seq = 0 WHERE name = 'outbox_message'")
    [target] = shop.run("status", "--json").json["targets"]
    assert target["state"] == "refused" and "the log ends at 0" in target["lanes"][0]["refused"]
    assert "relays refuse 1 of its 1 lanes" in " ".join(shop.run("status").out.split())
    assert "relays refuse" in " ".join(shop.run("doctor", code=1).out.split())
