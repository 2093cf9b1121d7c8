# SPDX-License-Identifier: Apache-2.0
"""redact --key: a person is erased from every finished message, and from no other."""
import json

import pytest

from shell import end, until

REASON = ["--reason", "erasure 17"]


def payloads(shop):
    with shop.db() as db:
        return dict(db.execute("SELECT id, payload FROM outbox_message ORDER BY seq").fetchall())


def redacted(shop):
    return sorted(name for name, payload in payloads(shop).items() if payload == '{"redacted":true}')


@pytest.fixture
def people(shop):
    """Finished: a1, a2 (ada), b1 (bob), d1 (no key). Not finished: a3 waits, a4 is scheduled, a5 failed."""
    for name, key in (("a1", "ada"), ("b1", "bob"), ("a2", "ada"), ("d1", None), ("a6", "Ada"), ("a7", "ada/2")):
        shop.insert(id=name, key=key, payload=json.dumps({"who": key}))
    shop.relay()
    shop.insert(id="a5", key="ada", payload="{broken")
    shop.relay(code=1)
    shop.insert(id="a4", key="ada", payload='{"who":"ada"}', due_at=4_000_000_000_000_000)
    shop.relay(code=None)
    shop.insert(id="a3", key="ada", payload='{"who":"ada"}')
    return shop


def test_every_finished_message_of_a_key_and_no_other(people):
    before = payloads(people)
    ran = people.run("redact", "--key", "ada", *REASON, "--dry-run", code=1)
    assert "would redact 2 messages (searched 9)" in ran.out and redacted(people) == []
    assert "does not reach what targets have received, archive files and backups" in " ".join(ran.out.split())
    ran = people.run("redact", "--key", "ada", *REASON, "--yes", code=1)
    assert "redacted 2 messages (searched 9)" in ran.out and redacted(people) == ["a1", "a2"]
    after = payloads(people)
    assert {n: p for n, p in after.items() if n not in ("a1", "a2")} == \
        {n: p for n, p in before.items() if n not in ("a1", "a2")}
    told = " ".join(ran.err.split())
    assert "3 messages are not finished and were left as they are:" in told
    assert "a5 to events is failed: requeue it or discard it" in told
    assert "a4 to events is deferred: wait until it is due, cancel it or discard it" in told
    assert "a3 to events is new: wait until it is delivered, or discard it" in told
    audit = people.run("audit", "--json").json["audit"]
    assert sorted(row["id"] for row in audit if row["action"] == "redact") == ["a1", "a2"]
    assert all(row["reason"] == "erasure 17" for row in audit) and "ada" not in json.dumps(audit)
    # what it says to do, and the same command again
    people.run("discard", "a5", "--reason", "x")
    people.run("cancel", "a4", "--reason", "x")
    people.relay(code=None)
    ran = people.run("redact", "--key", "ada", *REASON, "--yes", "--json").json
    assert (ran["redacted"], ran["unfinished"], ran["searched"]) == (3, 0, 9)
    assert redacted(people) == ["a1", "a2", "a3", "a4", "a5"]
    assert people.run("redact", "--key", "ada", *REASON, "--yes", "--json").json["redacted"] == 0
    assert people.run("list", "--key", "ada", "--json").json["deliveries"] == []


def test_keys_by_a_pattern(people):
    ran = people.run("redact", "--key-like", "?da/*", *REASON, "--yes", "--json").json
    assert ran["redacted"] == 1 and redacted(people) == ["a7"]
    ran = people.run("redact", "--key-like", "*", *REASON, "--yes", "--json", code=1).json
    assert (ran["redacted"], ran["before"], ran["unfinished"]) == (4, 1, 3)
    assert redacted(people) == ["a1", "a2", "a6", "a7", "b1"], "not the one without a key"


def test_a_mistyped_key_does_not_look_done(people):
    ran = people.run("redact", "--key", "add", *REASON, "--yes")
    assert "redacted 0 messages (searched 9) No message there has such a key" in " ".join(ran.out.split())
    assert "the key is empty" in people.run("redact", "--key", "", *REASON, "--yes", code=2).err
    assert redacted(people) == []


def test_it_is_asked_for(people):
    ran = people.run("redact", "--key", "ada", *REASON, code=10)
    assert "add --yes" in ran.err and redacted(people) == []
    assert "--reason is missing" in people.run("redact", "--key", "ada", "--yes", code=2).err
    for args in ([], ["a1", "--key", "ada"], ["--key", "ada", "--key-like", "a*"]):
        assert "give one of an ID" in people.run("redact", *args, *REASON, code=2).err
    assert "are for --key" in people.run("redact", "a1", *REASON, "--dry-run", code=2).err
    assert "redacted 0 messages (searched 9)" in people.run("redact", "--key", "nobody", *REASON, "--yes").out


def test_nothing_is_finished_while_there_is_no_target(shop):
    shop.insert(id="a1", key="ada")
    for how in ("--dry-run", "--yes"):
        ran = shop.run("redact", "--key", "ada", *REASON, how, code=1)
        assert "a1: no target is registered yet: it waits for one" in ran.err and redacted(shop) == []


def test_it_goes_on_after_a_kill(shop):
    with shop.db() as db:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?)",
                       [("t", f"k{i % 2}", json.dumps(f"person {i % 2}")) for i in range(4000)])
        db.execute("COMMIT")
    shop.relay()
    running = shop.start("redact", "--key", "k1", *REASON, "--yes")
    until(lambda: len(redacted_rows(shop)) > 20, "the first messages")
    running.kill()
    end(running)
    done = len(redacted_rows(shop))
    assert done < 2000
    ran = shop.run("redact", "--key", "k1", *REASON, "--yes", "--json").json
    assert ran["redacted"] == 2000 - done
    with shop.db() as db:
        left = db.execute("SELECT payload, count(*) FROM outbox_message GROUP BY payload ORDER BY payload").fetchall()
    assert left == [('"person 0"', 2000), ('{"redacted":true}', 2000)]
    assert len([r for r in shop.run("audit", "--limit", "1000", "--json").json["audit"] if r["action"] == "redact"]) == 1000


def redacted_rows(shop):
    with shop.db() as db:
        return db.execute("SELECT seq FROM outbox_message WHERE payload = '{\"redacted\":true}'").fetchall()
