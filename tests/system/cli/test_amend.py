# SPDX-License-Identifier: Apache-2.0
"""A message that was delivered nowhere is corrected in its place."""
import json

RELAY = ["relay", "--to", "events=file:out.jsonl", "--hold", "events", "--until-idle"]


def ids(shop):
    return [json.loads(line)["id"] for line in (shop.folder / "out.jsonl").read_text().splitlines()]


def held(shop):
    """The first of its key is broken, three wait behind it."""
    for i, payload in enumerate(("{broken", "1", "2", "3")):
        shop.insert(id=f"m{i}", key="k", payload=payload)
    shop.run(*RELAY, code=1)
    return "m0"


def test_with_hold_the_corrected_one_goes_first(shop):
    message = held(shop)
    assert not ids(shop)
    (shop.folder / "fixed.json").write_text('{"total":1}')
    assert f"outbox amend {message}" in shop.run("show", message).out
    done = shop.run("amend", message, "--data", "@fixed.json", "--reason", "negative total, ticket 812", "--actor", "anna")
    assert done.out == "amended; its key goes on with it: 3 parked deliveries follow\n"
    assert "    reason: negative total, ticket 812" in shop.run("list").out.splitlines()
    shop.run(*RELAY)
    assert ids(shop) == ["m0", "m1", "m2", "m3"]
    assert json.loads((shop.folder / "out.jsonl").read_text().splitlines()[0])["data"] == {"total": 1}
    text = shop.run("show", message).out
    assert "by anna: negative total, ticket 812" in text and "--amended --payload shows the former version" in text and "{broken" not in text
    assert "{broken" in shop.run("show", message, "--amended", "--payload").out
    text = shop.run("show", message, "--amended").out
    assert "it was 7 bytes" in text and "{broken" not in text and "total\":" not in text
    assert "amend by anna: negative total" in text and "requeue events by anna" in text


def test_what_programs_are_told(shop):
    message = held(shop)
    done = shop.run("amend", message, "--data", "[]", "--header", "tenant=acme", "--reason", "r", "--actor", "anna", "--json").json
    assert done == {"id": message, "requeued": 1, "parked": 3}
    view = shop.run("show", message, "--json").json
    assert view["message"]["headers"] == {"tenant": "***"}
    was, = view["amended"]
    assert was["actor"] == "anna" and was["reason"] == "r" and was["size"] == 7 and was["payload_left_out"] == "masked"
    assert "payload" not in was
    assert shop.run("show", message, "--amended", "--json").json == view, "masked all the same"
    assert shop.run("show", message, "--amended", "--payload", "--json").json["amended"][0]["payload"] == "{broken"
    assert [r["action"] for r in view["history"]] == ["amend", "requeue"]
    assert len({r["at"] for r in view["history"]}) == 1, "one act, one time"


def test_it_is_checked_as_a_publishers_is(shop):
    message = held(shop)
    err = shop.run("amend", message, "--data", "{again", "--reason", "r", code=2).err
    assert "--data: the content type is application/json, but this is not JSON" in err
    shop.run("amend", message, "--data", "{again", "--content-type", "text/plain", "--reason", "it is no JSON at all")
    err = shop.run("amend", message, "--header", "bad name=1", "--reason", "r", code=2).err
    assert "header" in err
    assert "--data, --content-type or --header" in shop.run("amend", message, "--reason", "r", code=2).err
    assert "--reason" in shop.run("amend", message, "--data", "1", code=2).err
    assert "no message" in shop.run("amend", "nobody", "--data", "1", "--reason", "r", code=3).err
    shop.run(*RELAY)
    assert "text/plain" in (shop.folder / "out.jsonl").read_text().splitlines()[0]


def test_not_what_a_target_has(shop):
    message = held(shop)
    shop.run(*RELAY, "--to", "all=null:", "--start", "all=oldest", code=None)
    assert "it was delivered to all" in shop.run("amend", message, "--data", "1", "--reason", "r", code=4).err
    assert not shop.run("show", message, "--json").json["amended"]


def test_what_it_was_goes_with_a_redaction(shop):
    message = held(shop)
    shop.run("amend", message, "--data", "1", "--reason", "r")
    shop.run(*RELAY)
    shop.run("redact", message, "--reason", "asked for")
    assert not shop.run("show", message, "--json").json["amended"]
    with shop.db() as db:
        assert db.execute("SELECT count(*) FROM outbox_amended").fetchall()[0][0] == 0


def test_what_it_was_goes_with_its_message(shop):
    message = held(shop)
    shop.run("amend", message, "--data", "1", "--reason", "r")
    shop.run(*RELAY)
    shop.run("purge", "--delivered-before", "0s")
    with shop.db() as db:
        assert db.execute("SELECT count(*) FROM outbox_message").fetchall()[0][0] == 0
        assert db.execute("SELECT count(*) FROM outbox_amended").fetchall()[0][0] == 0
