# SPDX-License-Identifier: Apache-2.0
"""Archives, and sending what is in them, or in the retained log, again: to one target, in order, each once."""
import collections
import contextlib
import json
import shutil
import signal
import socket
import subprocess

import pytest

from places import place
from shell import end, until

FILE = """
sources:
  - name: shop
    store: "{url}"
targets:
  - name: events
    to: "file:events.jsonl"
  - name: partner
    to: "file:partner.jsonl"
    external: true
    match: {{ type: ["order.*"] }}
"""


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    made = place(request.param, tmp_path, request)
    (tmp_path / "outbox.yaml").write_text(FILE.format(url=made.env["OUTBOX_STORE"]))
    return made


@pytest.fixture
def lite(request, tmp_path):
    return place("sqlite", tmp_path, request)


def publish_all(shop, count, kind="sqlite"):
    numbers = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT i FROM n" if
               kind == "sqlite" else "SELECT i FROM generate_series(1, {}) i").format(count)
    with shop.db() as db:
        db.execute("INSERT INTO outbox_message (type, key, payload, published) SELECT CASE i % 2 WHEN 0 THEN 'order.placed' "
                   f"ELSE 'mail.sent' END, 'k' || (i % 10), '{{\"n\":' || i || '}}', {'1' if kind == 'sqlite' else 'true'} FROM ({numbers}) x")


def archive_of(shop, count):
    publish_all(shop, count)
    shop.run("relay", "--to", "events=file:events.jsonl", "--until-idle")
    shop.run("archive", "old.jsonl.zst")
    return "old.jsonl.zst"


def first_seen(lines):
    """Numbers by key, in the order in which each id came first."""
    seen, keys = set(), collections.defaultdict(list)
    for line in lines:
        if line["id"] not in seen:
            seen.add(line["id"])
            keys[line["partitionkey"]].append(line["data"]["n"])
    return seen, keys


def plain(line):
    return {name: value for name, value in line.items() if name not in ("sequence", "replayed")}


def test_an_archive_keeps_everything(lite):
    lite.run("publish", "--type", "order.placed", "--key", "42", "--data", '{"id": 42.50}', "--id", "my-id", "--kind",
             "command", "--subject", "orders/42", "--ce-source", "/shop", "--topic", "orders", "--correlation-id", "c1",
             "--causation-id", "c0", "--header", "tenant=acme", "--header", "X-Y=a=b", "--traceparent",
             "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "--published", "--priority", "-5",
             "--event-time", "2026-11-15T09:00:00Z", "--expires", "+1h")
    lite.run("publish", "--type", "bytes", "--content-type", "application/octet-stream", "--data", "-", data=bytes(range(256)))
    lite.run("publish", "--type", "text", "--content-type", "text/plain", "--data", 'quo"ted\nhe said: {"data": 1}')
    lite.run("publish", "--type", "empty", "--content-type", "text/plain", "--data", "")
    lite.run("relay", "--to", "events=file:events.jsonl", "--until-idle")
    assert "archived 4 messages in a.zst" in lite.run("archive", "a.zst").out
    lite.run("archive", "a.zst", code=4)
    ran = lite.run("replay", "a.zst", "--to", "file:again.jsonl", "--target", "again", "--yes")
    assert "replayed 4 messages to again" in ran.out
    before, after = lite.lines("events.jsonl"), lite.lines("again.jsonl")
    assert [plain(line) for line in before] == [plain(line) for line in after]
    assert all("replayed" in line for line in after)
    # what envelopes do not carry is in the archive, too
    text = subprocess.run(["zstd", "-dc", "a.zst"], cwd=lite.folder, capture_output=True, check=True).stdout
    first = json.loads(text.splitlines()[0])
    assert first["outboxpublished"] is True and first["outboxpriority"] == -5
    assert not list(lite.folder.glob("*.replay*")), "state that is of no use any more"


def test_to_one_target_by_its_own_rules(shop):
    """partner is external: published orders only, stripped; events gets nothing again."""
    publish_all(shop, 20, shop.kind)
    shop.run("publish", "--type", "order.secret", "--data", "{}")
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    shop.run("purge", "--delivered-before", "0", "--archive", "old.jsonl.zst")
    events, partner = shop.lines("events.jsonl"), shop.lines("partner.jsonl")
    assert (len(events), len(partner)) == (21, 10)
    args = ["replay", "old.jsonl.zst", "--config", "outbox.yaml", "--target", "partner"]
    look = " ".join(shop.run(*args, "--dry-run").out.split())
    assert "would replay 10 messages to partner (from " in look
    assert shop.run(*args, "--dry-run", "--json").json["messages"] == 10
    assert "add --yes" in shop.run(*args, code=10).err
    assert "replayed 10 messages to partner" in shop.run(*args, "--yes").out
    again = shop.lines("partner.jsonl")
    assert sorted(line["id"] for line in again) == sorted(line["id"] for line in partner * 2)
    assert first_seen(again[10:])[1] == first_seen(partner)[1], "in the order of each key"
    assert "kind" not in again[-1] and again[-1]["type"] == "order.placed"
    assert shop.lines("events.jsonl") == events
    (row,) = [r for r in shop.run("audit", "--json").json["audit"] if r["action"] == "replay"]
    assert (row["actor"].split("@")[0], row["target"], json.loads(row["detail"])["messages"]) == ("alice", "partner", 10)


@pytest.mark.parametrize("way", ["archive", "log"])
def test_a_replayed_message_keeps_its_sequence(shop, way):
    publish_all(shop, 30, shop.kind)
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    was = shop.lines("events.jsonl")
    past = ["--from-log"]
    if way == "archive":
        shop.run("purge", "--delivered-before", "0", "--archive", "old.jsonl.zst")
        past = ["old.jsonl.zst"]
    shop.run("replay", *past, "--config", "outbox.yaml", "--target", "events", "--yes", "--key", "k2")
    again = shop.lines("events.jsonl")[len(was):]
    assert again and all("T" in line.pop("replayed") for line in again)
    assert again == [line for line in was if line.get("partitionkey") == "k2"]


def test_from_the_log(shop):
    publish_all(shop, 30, shop.kind)
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    before = shop.run("status", "--config", "outbox.yaml", "--json").json["targets"]
    partner = shop.lines("partner.jsonl")
    args = ["replay", "--from-log", "--config", "outbox.yaml", "--target", "partner", "--yes"]
    assert "replayed 15 messages to partner" in shop.run(*args).out
    assert "replayed 2 messages to partner" in shop.run(*args, "--key", "k2").out.replace("3 messages", "2 messages")
    again = shop.lines("partner.jsonl")
    assert first_seen(again[15:30]) == first_seen(partner)
    assert {line["partitionkey"] for line in again[30:]} == {"k2"}
    # the source is as it was: nothing is pending, nobody else got anything
    after = shop.run("status", "--config", "outbox.yaml", "--json").json["targets"]
    assert [(t["name"], t["delivered"], t["pending"]) for t in after] == [(t["name"], t["delivered"], t["pending"]) for t in before]
    # what still waits is not of the past
    publish_all(shop, 2, shop.kind)
    assert shop.run(*args, "--dry-run", "--json").json["messages"] == 15


def test_filters(lite):
    for hour in range(4):
        lite.run("publish", "--type", "t", "--key", "k", "--data", f'{{"n":{hour}}}', "--event-time", f"2026-11-15T0{hour}:00:00Z")
    lite.run("relay", "--to", "events=file:events.jsonl", "--until-idle")
    lite.run("archive", "old.jsonl.zst")
    args = ["replay", "old.jsonl.zst", "--to", "file:again.jsonl", "--target", "again", "--yes"]
    lite.run(*args, "--after", "2026-11-15T01:00:00Z", "--before", "2026-11-15T03:00:00Z")
    assert [line["data"]["n"] for line in lite.lines("again.jsonl")] == [1, 2]
    assert "no message matches" in lite.run(*args, "--type", "nothing.*").out
    assert "--after is not earlier than --before" in lite.run(*args, "--after", "2026-11-15T03:00:00Z", "--before", "2026-11-15T01:00:00Z", code=2).err
    assert lite.run("archive", "b.zst", "--type", "x*", "--json").json == {"dry_run": False, "messages": 0, "archive": None, "held_back": []}
    assert not (lite.folder / "b.zst").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_and_resumed(lite, number):
    count = 3000
    name = archive_of(lite, count)
    args = ["replay", name, "--to", "file:again.jsonl", "--target", "again", "--yes"]
    process = lite.start(*args, "--rate", "1000/s")
    until(lambda: len(lite.lines("again.jsonl")) > 0, "the first ones")
    code, out, err = end(process, number)
    assert code == (130 if number == signal.SIGINT else -9), out + err
    some = len(lite.lines("again.jsonl"))
    assert 0 < some < count
    if number == signal.SIGINT:
        assert "run the same command again to go on" in " ".join(err.split()) and ".replay)" in err
        assert "belongs to another replay" in lite.run(*args, "--key", "k1", code=4).err
    ran = lite.run(*args, "--json").json
    lines = lite.lines("again.jsonl")
    seen, keys = first_seen(lines)
    assert len(seen) == count and all(numbers == sorted(numbers) for numbers in keys.values())
    # killed, what was in flight goes again; interrupted, nothing does
    assert len(lines) == count if number == signal.SIGINT else len(lines) <= count + 500
    assert ran["left"] == 0 and not list(lite.folder.glob("*.replay*"))


def test_killed_while_it_reads(lite):
    """Every crash between reading, noting and delivering: each id once or, in flight, twice; none missing."""
    name = archive_of(lite, 2000)
    args = ["replay", name, "--to", "file:again.jsonl", "--target", "again", "--yes"]
    for pause in range(6):
        process = lite.start(*args, "--rate", "100/s")
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.02 + pause * 0.03)
        process.kill()
        process.communicate()
    lite.run(*args)
    seen, keys = first_seen(lite.lines("again.jsonl"))
    assert len(seen) == 2000 and all(numbers == sorted(numbers) for numbers in keys.values())


def test_a_damaged_archive(lite):
    name = archive_of(lite, 5000)
    whole = (lite.folder / name).read_bytes()
    args = ["replay", "bad.zst", "--to", "file:again.jsonl", "--target", "again", "--yes"]
    wrong = bytearray(whole)
    wrong[len(whole) // 2] ^= 0x55
    for data, word in ((whole[:len(whole) * 2 // 3], "cut off"), (bytes(wrong), "damaged"), (whole[:-2], "cut off")):
        (lite.folder / "bad.zst").write_bytes(data)
        for more in (["--dry-run"], []):
            ran = lite.run(*args, *more, code=14)
            assert "nothing was sent" in ran.err
            # a changed byte may decompress: then the line that makes no sense is told, or the checksum tells
            assert f"bad.zst: {word} after line " in ran.err and "at byte " in ran.err or \
                word == "damaged" and "bad.zst, line " in ran.err, str(ran)
    assert not (lite.folder / "again.jsonl").exists()
    (lite.folder / "bad.zst").write_bytes(whole[:len(whole) * 2 // 3])
    ran = lite.run(*args, "--salvage")
    numbers = [line["data"]["n"] for line in lite.lines("again.jsonl")]
    assert 0 < len(numbers) < 5000 and numbers == list(range(1, len(numbers) + 1))
    assert "cut off after line" in " ".join(ran.err.split()) and f"replayed {len(numbers):,} messages" in ran.out


def test_a_line_that_is_not_ours(lite):
    name = archive_of(lite, 5)
    lines = subprocess.run(["zstd", "-dc", name], cwd=lite.folder, capture_output=True, check=True).stdout.splitlines()
    args = ["replay", "edited.jsonl", "--to", "file:again.jsonl", "--target", "again", "--yes"]
    for bad in (b"{not json", b"[]", b'{"id":"x"}', b'{"id":1,"type":"t"}', b'{"id":"x","type":"t","data_base64":"%"}',
                b'{"id":"x","type":"t","outboxheaders":"["}', b'{"id":"x","type":"t","time":"yesterday"}'):
        (lite.folder / "edited.jsonl").write_bytes(b"\n".join(lines[:2] + [bad] + lines[2:]) + b"\n")
        ran = lite.run(*args, code=None)
        assert ran.code == 14 and "line 3" in ran.err, str(ran)
        assert not (lite.folder / "again.jsonl").exists()
    ran = lite.run(*args, "--salvage")
    assert len(lite.lines("again.jsonl")) == 5 and "left out 1 line that cannot be read" in ran.err
    (lite.folder / "edited.jsonl").write_bytes(b"neither")
    assert "neither zstd nor JSON lines" in lite.run(*args, code=14).err
    assert "no such file" in lite.run("replay", "none.zst", "--to", "file:x.jsonl", "--target", "x", code=3).err


@pytest.fixture
def redis(tmp_path):
    program = shutil.which("redis-server")
    if not program:
        pytest.skip("no redis-server on this machine (Debian: redis-server)")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen([program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
                               stdout=subprocess.DEVNULL)

    def answers():
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True

    until(answers, "redis")
    yield f"redis://127.0.0.1:{port}/?stream={{topic}}"
    process.terminate()
    process.wait()


def test_what_fails_is_kept_and_can_be_repaired(lite, redis):
    """The second message has no topic: the target's route refuses it."""
    lines = [{"id": f"m{i}", "type": "t", "partitionkey": "k", "data": {"n": i}, **({"topic": "s"} if i != 2 else {})}
             for i in range(1, 4)]
    (lite.folder / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    args = ["replay", "old.jsonl", "--to", redis, "--target", "again", "--yes"]
    ran = lite.run(*args, code=1)
    assert "replayed 2 messages" in ran.out and "1 message was not delivered and is kept" in " ".join(ran.err.split()), str(ran)
    store = "sqlite:old.jsonl.again.replay"
    assert store in ran.err
    assert [r["id"] for r in lite.run("list", "--store", store, "--state", "failed", "--json").json["deliveries"]] == ["m2"]
    assert (lite.folder / "old.jsonl.again.replay").stat().st_mode & 0o77 == 0, "payloads are in it"
    lite.run("requeue", "m2", "--store", store)
    told = lite.run(*args, "--json", code=1).json
    assert (told["left"], told["delivered"]) == (1, 0), "nothing twice"
    lite.run("discard", "m2", "--store", store, "--reason", "of no use")
    assert "replayed 0 messages" in lite.run(*args).out
    assert not list(lite.folder.glob("*.replay*"))


def test_an_archive_outlives_its_database(lite):
    name = archive_of(lite, 3)
    (lite.folder / "app.db").unlink()
    ran = lite.run("replay", name, "--to", "file:again.jsonl", "--target", "again", "--yes")
    assert "not in the audit: no database at app.db" in ran.err and len(lite.lines("again.jsonl")) == 3


def test_one_at_a_time(lite):
    name = archive_of(lite, 3000)
    args = ["replay", name, "--to", "file:again.jsonl", "--target", "again", "--yes"]
    process = lite.start(*args, "--rate", "100/s")
    until(lambda: len(lite.lines("again.jsonl")) > 0, "the first ones")
    assert "this replay is already running" in lite.run(*args, code=4).err
    end(process, signal.SIGINT)


def test_mistakes_are_told(lite):
    assert "no messages are named" in lite.run("replay", "--target", "x", "--to", "null:", code=2).err
    assert "FILE and --from-log cannot be combined" in lite.run("replay", "f", "--from-log", "--target", "x", "--to", "null:", code=2).err
    assert "the target has no URL" in lite.run("replay", "f", "--target", "x", code=2).err
    (lite.folder / "outbox.yaml").write_text(FILE.format(url="sqlite:app.db"))
    # before anything is written, so that the command can be corrected
    lite.run("publish", "--type", "a", "--data", "{}")
    lite.run("relay", "--to", "events=file:events.jsonl", "--until-idle")
    for url, why in (("fiel:x.jsonl", "no driver for it"), ("file:x.jsonl?sycn=no", 'unknown option "sycn"')):
        ran = lite.run("replay", "--from-log", "--target", "x", "--to", url, "--yes", code=2)
        assert 'target "x"' in ran.err and why in ran.err
        assert not list(lite.folder.glob("*.replay*")) and lite.run("audit", "--json").json["audit"] == []
    assert "replayed 1 message to x" in lite.run("replay", "--from-log", "--target", "x", "--to", "file:x.jsonl", "--yes").out
    ran = lite.run("replay", "f", "--target", "x", "--config", "outbox.yaml", code=3)
    assert 'no target "x" in the file; there are: events, partner' in ran.err
    assert "--to cannot be combined with --config" in lite.run("replay", "f", "--target", "x", "--to", "null:", "--config", "outbox.yaml", code=2).err
