# SPDX-License-Identifier: Apache-2.0
"""A scheduled message is cancelled before it is due. In an application's transaction: test_postgres_cancel.py."""
from shell import until

RELAY = ["relay", "--to", "events=file:out.jsonl", "--until-idle"]


def schedule(shop, message, due="+1h"):
    shop.run("publish", "--type", "reminder", "--id", message, "--due", due, "--data", "{}")


def states(shop, message):
    return {d["target"]: d["state"] for d in shop.run("show", message, "--json").json["deliveries"]}


def test_it_is_not_sent(shop):
    schedule(shop, "m1")
    schedule(shop, "m2", "+2s")
    shop.run(*RELAY, code=None)  # it may end before the second one is due
    told = shop.run("cancel", "m1", "--reason", "the order was paid", "--actor", "anna")
    assert told.out == "m1 was cancelled: no target sends it\n"
    assert shop.run("cancel", "m1", "--reason", "again").out == "m1 was cancelled before; nothing was changed\n"
    assert shop.run("cancel", "m1", "--reason", "again", "--json").json == {"id": "m1", "changed": False}
    assert states(shop, "m1") == {"events": "discarded"}
    text = shop.run("show", "m1").out
    assert "the order was paid" in text and "cancel by anna: the order was paid" in " ".join(text.split())

    def sent():
        shop.run(*RELAY, code=None)
        return states(shop, "m2") == {"events": "delivered"}

    until(sent, "the other one")
    shop.run("relay", "--to", "events=file:out.jsonl", "--to", "late=file:late.jsonl", "--start", "late=oldest", "--until-idle")
    assert [m["id"] for m in shop.lines()] == ["m2"] and [m["id"] for m in shop.lines("late.jsonl")] == ["m2"]
    assert states(shop, "m1") == {"events": "discarded", "late": "discarded"}


def test_what_cannot_be(shop):
    message = shop.insert()
    assert "is not scheduled" in shop.run("cancel", message, "--reason", "r", code=4).err
    assert "no message with the id" in shop.run("cancel", "none", "--reason", "r", code=3).err
    assert "reason" in shop.run("cancel", message, code=2).err
    shop.run(*RELAY)
    assert "is not scheduled" in shop.run("cancel", message, "--reason", "r", code=4).err
    schedule(shop, "m1", "+10ms")
    until(lambda: "it was due at" in shop.run("cancel", "m1", "--reason", "r", code=None).err
          or shop.run("show", "m1", "--json").json["deliveries"][0]["state"] == "discarded", "its time")
