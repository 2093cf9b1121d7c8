# SPDX-License-Identifier: Apache-2.0
"""purge and its archive."""
import json
import signal
import subprocess
import time

import pytest

from shell import BINARY, end, until


def read_archive(shop, name):
    done = subprocess.run(["zstd", "-dc", name], cwd=shop.folder, capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def messages(shop):
    return shop.run("status", "--json").json["messages"]


def test_purge_what_is_old_enough(shop):
    for i in range(5):
        shop.insert(key=str(i))
    shop.relay()
    waiting = shop.insert()
    assert "nothing is old enough" in shop.run("purge", "--delivered-before", "1h").out
    assert "would purge 5 messages" in shop.run("purge", "--delivered-before", "0", "--dry-run").out
    assert messages(shop) == 6
    told = shop.run("purge", "--delivered-before", "0", "--json").json
    assert (told["messages"], told["archive"]) == (5, None)
    assert messages(shop) == 1 and shop.run("show", waiting)


def test_failed_messages_stay_unless_asked_for(shop):
    message = shop.fail()[0]
    shop.insert()
    shop.relay()
    shop.run("purge", "--delivered-before", "0")
    assert shop.run("show", message)
    told = shop.run("purge", "--failed-before", "0", "--json").json
    assert (told["messages"], told["failed"]) == (1, 1)
    assert shop.run("audit", "--json").json["audit"][0]["detail"] == "1 message, 1 of them with a failed delivery"
    assert shop.run("show", message, code=3)


def test_nothing_goes_before_every_target_has_it(two):
    two.insert()
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert two.run("purge", "--delivered-before", "0", "--json").json["messages"] == 0
    two.run("relay", "--to", "partner=null:", "--until-idle")
    assert two.run("purge", "--delivered-before", "0", "--json").json["messages"] == 1


def test_a_target_that_does_not_get_it_holds_nothing_back(bare):
    bare.run("init")
    bare.run("publish", "--id", "b1", "--type", "order.placed", "--data", "{}")
    bare.run("relay", "--to", "ev=file:o", "--to", "part=file:p", "--match", "part=zzz.*", "--until-idle")
    assert bare.run("archive", "old.zst", "--json").json["messages"] == 1
    assert bare.run("replay", "--from-log", "--target", "ev", "--to", "file:again", "--dry-run", "--json").json["messages"] == 1
    assert bare.run("purge", "--delivered-before", "0s", "--json").json["messages"] == 1
    assert messages(bare) == 0
    bare.run("publish", "--id", "b2", "--type", "zzz.x", "--data", "{}")
    bare.run("relay", "--to", "ev=file:o", "--until-idle")
    assert bare.run("purge", "--delivered-before", "0s", "--json").json["messages"] == 0
    bare.run("relay", "--to", "part=file:p", "--match", "part=zzz.*", "--until-idle")
    assert [line["id"] for line in bare.lines("p")] == ["b2"]
    assert bare.run("purge", "--delivered-before", "0s", "--json").json["messages"] == 1


def test_who_holds_retention_back_is_named(bare):
    bare.run("init")
    bare.run("relay", "--to", "ev=file:o", "--to", "part=file:p", "--match", "part=zzz.*", "--until-idle")
    bare.run("publish", "--type", "zzz.x", "--data", "{}")
    bare.run("relay", "--to", "ev=file:o", "--until-idle")
    told = " ".join(bare.run("purge", "--delivered-before", "0s").out.split())
    assert "nothing can be purged" in told and "nothing is old enough" not in told
    assert "part holds back 1 message that it still has to receive; the oldest was published" in told
    held = bare.run("purge", "--delivered-before", "0s", "--json").json["held_back"]
    assert [(h["target"], h["unfinished"], h["failed"]) for h in held] == [("part", 1, 0)] and held[0]["oldest"]
    assert "part holds back 1 message" in bare.run("archive", "old.zst").out
    assert bare.run("status", "--json").json["held_back"] == []
    assert "holds back" not in bare.run("doctor", code=None).out


def test_what_is_past_its_retention_is_told(bare):
    bare.run("init")
    bare.run("relay", "--to", "ev=file:o", "--to", "part=file:p", "--match", "part=zzz.*", "--until-idle")
    old = time.time() - 9 * 86400
    bare.insert(type="zzz.y", created_at=int(old * 1000000) if bare.url.startswith("sqlite")
                else time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(old)))
    bare.run("relay", "--to", "ev=file:o", "--until-idle")
    held = bare.run("status", "--json").json["held_back"]
    assert [(h["target"], h["unfinished"], h["more"]) for h in held] == [("part", 1, False)]
    assert "part holds back 1 message that it still has to receive; the oldest was published 9" in " ".join(bare.run("status").out.split())
    assert "retention: it holds back" in " ".join(bare.run("doctor", code=None).out.split())


def test_the_archive_has_what_went(shop):
    ids = [shop.insert(key=str(i), payload=json.dumps({"n": i}), headers='{"tenant":"acme"}')
           for i in range(20)]
    shop.relay()
    ids += shop.fail()
    kept = shop.insert()
    ran = shop.run("purge", "--delivered-before", "0", "--failed-before", "0", "--archive", "old.jsonl.zst")
    assert "purged 21 messages (1 with a failed delivery), kept in old.jsonl.zst" in ran.out
    events = read_archive(shop, "old.jsonl.zst")
    assert [e["id"] for e in events] == ids
    assert [e["data"]["n"] for e in events[:20]] == list(range(20))
    assert events[20]["data_base64"] == "e2Jyb2tlbg==" and events[20]["datacontenttype"] == "application/json"
    assert messages(shop) == 1 and shop.run("show", kept)


def test_an_archive_is_never_overwritten(shop):
    shop.insert()
    shop.relay()
    (shop.folder / "old.zst").write_text("precious")
    ran = shop.run("purge", "--delivered-before", "0", "--archive", "old.zst", code=4)
    assert "it exists, give another name; nothing was purged" in ran.err
    assert (shop.folder / "old.zst").read_text() == "precious"
    assert messages(shop) == 1


def test_nothing_to_purge_leaves_no_file(shop):
    shop.relay()
    shop.run("purge", "--delivered-before", "7d", "--archive", "old.zst")
    assert not list(shop.folder.glob("old*"))


def test_an_archive_that_cannot_be_written_purges_nothing(shop):
    shop.insert()
    shop.relay()
    assert shop.run("purge", "--delivered-before", "0", "--archive", "/nowhere/old.zst", code=3)
    limited = ["bash", "-c", f"ulimit -f 0; trap '' XFSZ; exec {BINARY} purge --delivered-before 0 "
                             "--archive old.zst"]
    done = subprocess.run(limited, cwd=shop.folder, env=shop.env, capture_output=True, check=False)
    assert done.returncode != 0
    assert messages(shop) == 1
    assert not list(shop.folder.glob("old*"))


def test_large_payloads_are_archived(shop):
    big = json.dumps("x" * (3 << 20))
    for i in range(30):
        shop.insert(payload=big, key=str(i))
    shop.relay()
    told = shop.run("purge", "--delivered-before", "0", "--archive", "big.zst", "--json").json
    assert (told["messages"], told["archived"]) == (30, 30)
    assert len(read_archive(shop, "big.zst")) == 30


def test_an_interrupted_archive_leaves_nothing_behind(shop):
    for i in range(10):
        shop.insert(payload=json.dumps("x" * (1 << 20)), key=str(i))
    shop.relay()
    purge = shop.start("purge", "--delivered-before", "0", "--archive", "old.zst")
    until(lambda: list(shop.folder.glob("old.zst*")) or purge.poll() is not None, "the archive's draft")
    code, _, _ = end(purge)
    if code == 0:  # it was faster than the signal
        assert len(read_archive(shop, "old.zst")) == 10 and messages(shop) == 0
    else:
        assert code == 128 + signal.SIGTERM
        kept = read_archive(shop, "old.zst") if (shop.folder / "old.zst").exists() else []
        assert len(kept) == 10 or (not kept and messages(shop) == 10)
    assert not list(shop.folder.glob("old.zst.*"))


@pytest.mark.sqlite
def test_a_text_that_is_not_utf8_does_not_stop_an_archive(shop):
    with shop.db() as db:
        db.execute("INSERT INTO outbox_message (id, type, payload, subject) VALUES ('odd', 't', '{}', CAST(x'ff41' AS TEXT))")
    shop.insert()
    shop.relay(code=1)
    shop.run("discard", "odd", "--target", "events", "--reason", "cannot be sent")
    shop.run("purge", "--delivered-before", "0s", "--archive", "old.jsonl.zst")
    events = {event["id"]: event for event in read_archive(shop, "old.jsonl.zst")}
    assert len(events) == 2 and events["odd"]["subject"] == "\\xffA"
