# SPDX-License-Identifier: Apache-2.0
"""What operators do over HTTP: bounded, audited, refused with the remedy, and seen through the command line."""
import os
import threading

import pytest

from console import Console
from shell import until

POSTGRES = os.environ.get("PGPORT")  # with-postgres: the same on a server


@pytest.fixture(params=["postgres" if POSTGRES else "sqlite"])
def console(tmp_path):
    stores = {"shop": new_database()} if POSTGRES else None
    made = Console(tmp_path, stores=stores)
    made.postgres = stores and stores["shop"]
    yield made
    made.down()


def new_database():
    import psycopg2  # pylint: disable=import-outside-toplevel
    name = "api_" + os.urandom(6).hex()
    db = psycopg2.connect(dbname="postgres")
    db.autocommit = True
    db.cursor().execute(f"CREATE DATABASE {name}")
    db.close()
    return f"postgres:///{name}"


def publish(console, count, broken=True, type="order.placed"):
    """Ids of messages that fail at once, or do not."""
    rows = [(type, f"k{i}", "{broken" if broken else "{}") for i in range(count)]
    if console.postgres:
        import psycopg2  # pylint: disable=import-outside-toplevel
        db = psycopg2.connect(dbname=console.postgres.rsplit("/", 1)[1])
        with db, db.cursor() as cursor:
            ids = []
            for row in rows:
                cursor.execute("INSERT INTO outbox_message (type, key, payload) VALUES (%s, %s, %s) RETURNING id", row)
                ids.append(str(cursor.fetchone()[0]))
        db.close()
        return ids
    with console.db() as db:
        db.execute("BEGIN IMMEDIATE")
        seqs = [db.execute("INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?) RETURNING seq", row).fetchone()[0]
                for row in rows]
        ids = [db.execute("SELECT id FROM outbox_message WHERE seq = ?", (seq,)).fetchone()[0] for seq in seqs]
        db.execute("COMMIT")
    return ids


def state_of(console, id):
    return console.cli("show", id)["deliveries"][0]["state"]


def failing(console, count, **how):
    ids = publish(console, count, **how)
    console.up()
    until(lambda: console.states().get("failed") == count, f"{count} failed deliveries")
    return ids


def audits(console, limit=1000):
    return console.cli("audit", "--limit", limit)["audit"]


def test_requeue_by_ids(console):
    ids = failing(console, 3)
    told = console.post("/api/messages/requeue", {"ids": ids[:2], "dry_run": True}).json
    assert (told["action"], told["done"], told["dry_run"]) == ("requeue", 2, True)
    assert audits(console) == [], "a dry run leaves nothing"
    console.post("/api/targets/events/pause", {"reason": "look first"})
    told = console.post("/api/messages/requeue", {"ids": ids[:2], "target": "events", "reason": "again"}).json
    assert (told["done"], told["refused"], told["why"]) == (2, 0, None)
    assert [state_of(console, id) for id in ids] == ["pending", "pending", "failed"]
    rows = [r for r in audits(console) if r["action"] == "requeue"]
    assert {(r["id"], r["reason"]) for r in rows} == {(id, "again") for id in ids[:2]}
    assert all(r["actor"].startswith("ada") and "127.0.0.1" in r["actor"] for r in rows)
    told = console.post("/api/messages/requeue", {"ids": ids[1:]}).json
    assert (told["done"], told["refused"]) == (1, 1) and told["why"], "one of the two is not failed any more"
    assert "failed" in console.post("/api/messages/requeue", {"ids": ids}, status=409).error
    console.post("/api/messages/requeue", {"ids": ["nothing"]}, status=404)


def test_ids_are_meant_whatever_else_came_before(console):
    """A bound in time is for filters: whoever names a message means it."""
    ids = failing(console, 1)
    console.post("/api/targets/events/pause", {"reason": "look first"})
    assert console.post("/api/messages/requeue", {"ids": ids, "before": "7d"}).json["done"] == 1
    assert "failed" in console.post("/api/messages/requeue", {"ids": ids, "before": "7d"}, status=409).error


def test_by_filter_in_bounded_steps(console):
    failing(console, 25)
    console.post("/api/targets/events/pause", {"reason": "hold"})
    # null is no value: what was meant as a rehearsal must not be the act
    for field in ("dry_run", "type", "state", "key"):
        answer = console.post("/api/messages/requeue", {"state": "failed", "type": "order.*", field: None}, status=400)
        assert f'{field}: "null" is n' in answer.json["error"]["message"]
    told = console.post("/api/messages/requeue", {"state": "failed", "type": "order.*", "dry_run": True}).json
    assert told["done"] == 25 and console.states() == {"failed": 25}
    body, done, calls = {"state": "failed", "type": "order.*", "limit": 10}, 0, 0
    while True:
        told = console.post("/api/messages/requeue", body).json
        assert told["done"] <= 10
        done, calls = done + told["done"], calls + 1
        if not told["more"]:
            break
        assert calls < 10, told
        body.update(before=told["before"], **({"cursor": told["cursor"]} if told.get("cursor") else {}))
    assert done == 25 and calls >= 3 and console.states() == {"pending": 25}
    assert len([r for r in audits(console) if r["action"] == "requeue"]) == 25
    assert console.post("/api/messages/requeue", {"state": "failed"}).json["done"] == 0


def test_what_fails_again_meanwhile_is_not_taken_twice(console):
    """A client that was interrupted and has only `before` left: all are in the same state again, and it ends."""
    failing(console, 12)
    body, done = {"state": "failed", "limit": 5}, 0
    for _ in range(20):
        told = console.post("/api/messages/requeue", body).json
        done += told["done"]
        body.update(before=told["before"])
        until(lambda: console.states() == {"failed": 12}, "all failed again")
        if not told["more"]:
            break
    assert done == 12 and not told["more"]


def test_discard_and_defer(console):
    ids = failing(console, 2)
    console.post("/api/targets/events/pause", {"reason": "hold"})
    fresh = publish(console, 2, broken=False)
    assert "reason" in console.post("/api/messages/discard", {"ids": ids}, status=400).error
    console.post("/api/messages/discard", {"state": "failed", "reason": "test data"})
    assert [state_of(console, id) for id in ids] == ["discarded"] * 2
    assert "until is missing: the earliest time to send; write a time like" in console.post(
        "/api/messages/defer", {"ids": fresh}, status=400).error
    error = console.post("/api/messages/defer", {"ids": fresh, "until": "2020-01-01T00:00:00Z"}, status=400).error
    assert error == "until is in the past; give a later time, like +5m"
    assert console.cli("show", fresh[0])["deliveries"][0]["why"] != "deferred"
    told = console.post("/api/messages/defer", {"ids": fresh[:1], "until": "+1h"}).json
    assert told["done"] == 1
    assert console.cli("show", fresh[0])["deliveries"][0]["why"] == "deferred"
    assert state_of(console, fresh[1]) == "pending"
    console.post("/api/messages/requeue", {"ids": ids[:1]}, status=409)


def test_pause_and_resume(console):
    console.up()
    told = console.post("/api/targets/events/pause", {"reason": "maintenance", "dry_run": True}).json
    assert told["changed"] and not console.cli("status")["targets"][0]["paused"]
    assert console.post("/api/targets/events/pause", {"reason": "maintenance"}).json == \
        {"target": "events", "paused": True, "changed": True}
    target = console.cli("status")["targets"][0]
    assert target["paused"] and target["paused_reason"] == "maintenance" and target["paused_by"].startswith("ada")
    publish(console, 3, broken=False)
    assert console.states() == {"pending": 3}
    assert not console.post("/api/targets/events/pause", {"reason": "again"}).json["changed"]
    assert console.post("/api/targets/events/resume").json["changed"]
    until(lambda: console.states() == {"delivered": 3}, "deliveries after the pause")
    assert "reason" in console.post("/api/targets/events/pause", {}, status=400).error
    assert "events" in console.post("/api/targets/event/pause", {"reason": "x"}, status=404).error


def test_purge(console):
    publish(console, 5, broken=False)
    console.up()
    until(lambda: console.states() == {"delivered": 5}, "deliveries")
    assert "delivered_before" in console.post("/api/purge", {}, status=400).error
    assert console.post("/api/purge", {"delivered_before": "1h"}).json["messages"] == 0
    told = console.post("/api/purge", {"delivered_before": "0s", "dry_run": True}).json
    assert told["messages"] == 5 and told["dry_run"] and console.states() == {"delivered": 5}
    gone = 0
    for _ in range(10):
        told = console.post("/api/purge", {"delivered_before": "0s", "limit": 2}).json
        assert told["messages"] <= 2
        gone += told["messages"]
        if not told["more"]:
            break
    assert gone == 5 and console.states() == {}
    assert any(r["action"] == "purge" and r["actor"].startswith("ada") for r in audits(console))


def test_keys_that_wait(console):
    """With hold, a failed message keeps the later ones of its key back: which keys, behind what, how many."""
    text = console.config.read_text()
    console.config.write_text(text.replace('"file:events.jsonl"\n', '"file:events.jsonl"\n    hold: true\n'))
    bad = failing(console, 3)
    for _ in range(2):
        publish(console, 2, broken=False)
    until(lambda: {k["key"]: k["parked"] for k in console.get("/api/keys").json["keys"]} == {"k0": 2, "k1": 2, "k2": 0},
          "parked ones")
    page = console.get("/api/keys", limit=1).json
    assert [(k["key"], k["target"], k["front"]["id"], k["front"]["state"]) for k in page["keys"]] == \
        [("k0", "events", bad[0], "failed")]
    page = console.get("/api/keys", limit=1, cursor=page["next"], target="events").json
    assert [k["key"] for k in page["keys"]] == ["k1"]
    console.post("/api/messages/discard", {"ids": bad, "reason": "test data"})
    until(lambda: console.get("/api/keys").json["keys"] == [], "nobody waits")
    until(lambda: console.states() == {"discarded": 3, "delivered": 4}, "the others went on")


def test_a_failed_message_is_amended(console):
    fine, = publish(console, 1, broken=False)
    bad, = failing(console, 1)
    until(lambda: console.states() == {"delivered": 1, "failed": 1}, "deliveries")
    path = f"/api/messages/{bad}/amend"
    assert "reason" in console.post(path, {"payload": "1"}, status=400).error
    assert "nothing to change" in console.post(path, {"reason": "r"}, status=400).error
    assert "not JSON" in console.post(path, {"payload": "{again", "reason": "r"}, status=400).error
    assert "base64" in console.post(path, {"payload_base64": "!", "reason": "r"}, status=400).error
    assert "headers" in console.post(path, {"headers": {"a": 1}, "reason": "r"}, status=400).error
    console.post(path, {"payload": "1", "reason": "r"}, token="rob", status=403)
    console.post(f"/api/messages/{fine}/amend", {"payload": "1", "reason": "r"}, status=409)
    console.post("/api/messages/none/amend", {"payload": "1", "reason": "r"}, status=404)
    body = {"payload": '{"total":1}', "headers": {"tenant": "acme"}, "reason": "negative total"}
    assert console.post(path, body).json == {"id": bad, "requeued": 1, "parked": 0}
    until(lambda: console.states() == {"delivered": 2}, "the corrected one")
    view = console.get(f"/api/messages/{bad}", payload="true", token="ada").json
    assert view["message"]["payload"] == '{"total":1}' and view["message"]["headers"] == {"tenant": "acme"}
    assert view["amended"][0]["reason"] == "negative total" and "payload" in view["amended"][0]
    assert "payload" not in console.get(f"/api/messages/{bad}").json["amended"][0]
    row, = [r for r in audits(console) if r["action"] == "amend"]
    assert row["reason"] == "negative total" and row["id"] == bad


def test_a_scheduled_message_is_cancelled(console):
    console.up()
    console.cli("publish", "--type", "reminder", "--id", "later", "--due", "+1h", "--data", "{}")
    console.cli("publish", "--type", "reminder", "--id", "now", "--data", "{}")
    assert "reason" in console.post("/api/messages/later/cancel", {}, status=400).error
    console.post("/api/messages/later/cancel", {"reason": "paid"}, token="rob", status=403)
    assert "not scheduled" in console.post("/api/messages/now/cancel", {"reason": "paid"}, status=409).error
    console.post("/api/messages/none/cancel", {"reason": "paid"}, status=404)
    until(lambda: console.states() == {"delivered": 1, "pending": 1}, "the relay to have read both")
    assert console.post("/api/messages/later/cancel", {"reason": "paid"}).json == {"id": "later", "changed": True}
    assert not console.post("/api/messages/later/cancel", {"reason": "paid"}).json["changed"]
    assert [d["state"] for d in console.cli("show", "later")["deliveries"]] == ["discarded"]
    row, = [r for r in audits(console) if r["action"] == "cancel"]
    assert row["id"] == "later" and row["reason"] == "paid" and row["actor"]


def test_a_finished_message_is_redacted(console):
    id, = publish(console, 1, broken=False)
    bad, = failing(console, 1)
    until(lambda: console.states() == {"delivered": 1, "failed": 1}, "deliveries")
    assert "reason" in console.post(f"/api/messages/{id}/redact", {}, status=400).error
    console.post(f"/api/messages/{id}/redact", {"reason": "asked to"}, token="rob", status=403)
    console.post(f"/api/messages/{bad}/redact", {"reason": "asked to"}, status=409)
    console.post("/api/messages/none/redact", {"reason": "asked to"}, status=404)
    assert console.post(f"/api/messages/{id}/redact", {"reason": "asked to"}).json == {"id": id, "changed": True}
    assert console.cli("show", id, "--payload")["message"]["payload"] == '{"redacted":true}'
    assert not console.post(f"/api/messages/{id}/redact", {"reason": "again"}).json["changed"]
    row, = [r for r in audits(console) if r["action"] == "redact"]
    assert row["actor"] == "ada@127.0.0.1" and row["reason"] == "asked to"


@pytest.mark.parametrize("path, body, words", [
    ("requeue", {}, ["ids", "state"]),
    ("requeue", {"ids": ["a"], "state": "failed"}, ["ids", "filter"]),
    ("requeue", {"state": "delivered"}, ["state", '"delivered"', "failed"]),
    ("requeue", {"stat": "failed"}, ['"stat"', "did you mean state"]),
    ("requeue", {"ids": []}, ["ids", "1 to 1000"]),
    ("requeue", {"ids": ["x"] * 1001}, ["ids", "1 to 1000"]),
    ("requeue", {"ids": "x"}, ["ids", '"x"']),
    ("requeue", {"state": "failed", "limit": 1001}, ["limit", '"1001"', "1 to 1000"]),
    ("requeue", {"state": "failed", "limit": "10"}, ["limit", '"10"']),
    ("requeue", {"state": "failed", "dry_run": "yes"}, ["dry_run", '"yes"', "true nor false"]),
    ("requeue", {"state": "failed", "rate": "5/s"}, ['"rate"']),
    ("discard", {"target": "events", "reason": "x"}, ["state", "pending or failed"]),
    ("discard", {"state": "failed", "why": "retry", "reason": "x"}, ["why", "pending"]),
    ("discard", {"state": "failed", "reason": 7}, ["reason", '"7"']),
    ("discard", {"state": "failed", "reason": ""}, ["reason"]),
    ("defer", {"target": "events", "until": "soon"}, ["until", '"soon"', "+5m"]),
    ("defer", {"state": "failed", "until": "+5m"}, ["state", "pending"]),
    ("defer", {"target": "events", "until": "2020-01-01T00:00:00Z"}, ["until is in the past", "+5m"]),
])
def test_wrong_bodies_change_nothing_and_say_why(tmp_path, path, body, words):
    console = Console(tmp_path)
    console.postgres = None
    try:
        failing(console, 1)
        error = console.post(f"/api/messages/{path}", body, status=400).error
        assert all(word in error for word in words), error
        assert console.states() == {"failed": 1} and audits(console) == []
    finally:
        console.down()


def test_readers_do_nothing(console):
    ids = failing(console, 1)
    for path, body in (("/api/messages/requeue", {"ids": ids}), ("/api/messages/discard", {"ids": ids, "reason": "x"}),
                       ("/api/messages/defer", {"ids": ids, "until": "+1h"}), ("/api/purge", {"failed_before": "0s"}),
                       ("/api/targets/events/pause", {"reason": "x"}), ("/api/targets/events/resume", {}),
                       ("/api/drain", {}), ("/api/reload", {})):
        console.post(path, body, status=403, token="rob")
        console.post(path, body, status=401, token=None)
    assert console.states() == {"failed": 1} and audits(console) == []
    assert console.process.poll() is None


def test_acts_while_the_relay_runs(console):
    """Four people requeue and discard what fails while new messages come: each delivery once, nothing lost."""
    console.up()
    stop, won, errors = threading.Event(), [], []

    def requeue():
        while not stop.is_set():
            answer = console.ask("POST", "/api/messages/requeue", {"state": "failed", "type": "again", "limit": 7})
            if answer.status == 200:
                won.append(answer.json["done"])
            elif answer.status not in (409, 503):
                errors.append(str(answer))

    people = [threading.Thread(target=requeue) for _ in range(4)]
    for person in people:
        person.start()
    good = []
    for _ in range(10):
        publish(console, 5, type="again")
        good += publish(console, 5, broken=False)
    until(lambda: sum(won) >= 50, "requeues")
    stop.set()
    for person in people:
        person.join()
    assert not errors, errors[:3]
    until(lambda: console.states() == {"failed": 50, "delivered": 50}, "an end")
    assert sorted({state_of(console, id) for id in good[:5]}) == ["delivered"]
    lines = [l["id"] for l in console.lines("events.jsonl")]
    assert sorted(lines) == sorted(good), "each exactly once: nothing crashed"
    requeues = [r for r in audits(console) if r["action"] == "requeue"]
    assert len(requeues) == min(1000, sum(won)), "each requeue that won is in the audit, once"


def test_reload_and_its_dry_run(tmp_path):
    console = Console(tmp_path)
    try:
        console.up()
        text = console.config.read_text()
        told = console.post("/api/reload", {"dry_run": True}).json
        assert told["dry_run"] and (told["kept"], told["changed"], told["added"], told["removed"]) == (1, 0, 0, 0)
        console.config.write_text(text.replace("file:events.jsonl", "flie:events.jsonl"))
        answer = console.post("/api/reload", status=400).json
        assert answer["error"]["code"] == "config" and answer["problems"], answer
        assert any("flie" in p["message"] and p["line"] for p in answer["problems"]), answer
        until(lambda: console.get("/api/outbox").json["sources"][0]["state"] == "running", "it goes on")
        console.config.write_text(text.replace("targets:\n", 'targets:\n  - name: more\n    to: "file:more.jsonl"\n    start: oldest\n'))
        assert console.post("/api/reload", {"dry_run": True}).json["changed"] == 1
        assert "targets[1].name" not in {v["key"] for v in console.get("/api/config").json["values"]}
        assert console.post("/api/reload").json["changed"] == 1
        assert (tmp_path / "relay.log").read_text().count("reload, asked for by ada@127.0.0.1") == 2, "dry runs aside"
        console.insert(key="a")
        until(lambda: console.lines("more.jsonl"), "what the new target gets")
        until(lambda: {t["name"] for t in console.get("/api/targets").json["targets"]} == {"events", "more"}, "both")
    finally:
        console.down()


def test_drain_ends_the_process(tmp_path):
    console = Console(tmp_path)
    try:
        console.up()
        assert not console.post("/api/drain", {"dry_run": True}).json["draining"]
        assert console.ready()
        assert console.post("/api/drain").json["draining"]
        assert console.process.wait(timeout=60) == 0
        assert "drain, asked for by ada@127.0.0.1" in (tmp_path / "relay.log").read_text()
    finally:
        console.down()
