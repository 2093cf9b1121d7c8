# SPDX-License-Identifier: Apache-2.0
"""publish --from: each line is a message, published once, whatever happens in between."""
import json
import os
import signal
import subprocess

import pytest

from shell import end, until

LINE = '{"type":"order.placed","payload":{"id":1}}'


def write(shop, text, name="orders.jsonl"):
    (shop.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def lines(count, ids=True):
    one = (lambda i: f'"id":"o-{i}",') if ids else lambda i: ""
    return "".join(f'{{{one(i)}"type":"order.placed","key":"k{i % 7}","payload":{{"n":{i}}}}}\n' for i in range(count))


def numbers(shop):
    """What was published, in order, as often as it is there."""
    with shop.db() as db:
        return [json.loads(row[0])["n"] for row in db.execute("SELECT payload FROM outbox_message ORDER BY seq").fetchall()]


def count(shop):
    return shop.run("status", "--json").json["messages"]


def test_every_field_arrives_by_the_name_that_show_gives_it(shop):
    message = {
        "id": "my-id", "type": "order.placed", "key": "42", "kind": "command", "subject": "orders/42", "source": "/shop",
        "topic": "orders", "correlation_id": "c1", "causation_id": "c0", "headers": {"tenant": "acme", "x": "a=b"},
        "published": True, "priority": -5, "event_time": "2026-11-15T09:00:00Z", "due_at": "2026-11-16T09:00:00Z",
        "expires_at": "2026-11-17T09:00:00Z", "payload": '{"id": 42}', "content_type": "application/json",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    name = write(shop, json.dumps(message) + "\n")
    assert shop.run("publish", "--from", name).out == "published 1 message\n"
    shown = shop.run("show", "my-id", "--payload", "--json").json["message"]
    assert {field: shown[field] for field in message} == message
    # and what was shown can be published again: elsewhere, or here under another id
    shown["id"] = "other"
    shop.run("publish", "--from", write(shop, json.dumps(shown)))
    again = shop.run("show", "other", "--payload", "--json").json["message"]
    own = ("id", "seq", "created_at")
    assert {f: v for f, v in again.items() if f not in own} == {f: v for f, v in shown.items() if f not in own}
    masked = shop.run("show", "my-id", "--json").json["message"]
    ran = shop.run("publish", "--from", write(shop, json.dumps(masked)), code=2)
    assert "payload_left_out" in ran.err and "--payload" in ran.err


def test_payloads_as_they_stand(shop):
    shop.run("publish", "--from", "-", data=b"""
{"id":"a","type":"t","payload":{"n": 1.10, "big":12345678901234567890}}
{"id":"b","type":"t","payload":"plain \\u00e4","content_type":"text/plain"}
{"id":"c","type":"t","payload_base64":"AP8="}
{"id":"d","type":"t","payload":null}
{"id":"e","type":"t","payload":[1,2]}
""")
    raw = {name: shop.run("show", name, "--raw-payload").raw for name in "abcde"}
    assert raw == {"a": b'{"n": 1.10, "big":12345678901234567890}', "b": "plain ä".encode(), "c": b"\x00\xff",
                   "d": b"null", "e": b"[1,2]"}
    assert shop.run("show", "c", "--json").json["message"]["content_type"] == "application/octet-stream"


def test_the_file_targets_lines_and_archives_come_back(shop, tmp_path):
    for i in range(3):
        shop.insert(id=f"m{i}", key=f"k{i}", payload=f'{{"n":{i}}}', headers='{"tenant":"acme","X-Y":"z"}', subject="s",
                    published=1, priority=7)
    shop.insert(id="bytes", payload=None, payload_bin=b"\x00\xff") if shop.name == "app" else None
    shop.relay()
    shop.run("archive", "all.jsonl.zst")
    other = [*("--store", "sqlite:other.db")]
    shop.run("init", *other)
    total = len(shop.lines())
    for name, more in (("out.jsonl", []), ("all.jsonl.zst", []), ("all.jsonl.zst", ["--format", "archive"]),
                       ("out.jsonl", ["--format", "cloudevents"])):
        ran = shop.run("publish", "--from", name, "--json", *more, *other).json
        assert ran["published"] + ran["repeated"] == total and ran["invalid"] == 0
    assert shop.run("status", "--json", *other).json["messages"] == total
    one, two = (shop.run("show", "m1", "--payload", "--json", *at).json["message"] for at in ([], other))
    for field in ("type", "key", "headers", "subject", "payload", "content_type", "event_time", "correlation_id", "kind"):
        assert one[field] == two[field], field
    ran = shop.run("publish", "--from", write(shop, LINE), "--format", "cloudevents", code=2)
    assert "specversion: is missing" in ran.err
    ran = shop.run("publish", "--from", "out.jsonl", "--format", "json", code=2)
    assert 'no field "specversion"' in ran.err


def test_cloudevents_of_others(shop):
    shop.run("publish", "--from", "-", data=b"""
{"specversion":"1.0","id":"a","source":"/x","type":"t","time":"2026-11-15T18:00:00Z","partitionkey":"k","n":5,"yes":true,
"none":null,"datacontenttype":"application/json","data":{"x":1}}
""".replace(b",\n", b","))
    shown = shop.run("show", "a", "--payload", "--json").json["message"]
    assert shown["headers"] == {"n": "5", "yes": "true"} and shown["key"] == "k" and shown["payload"] == '{"x":1}'


WRONG = [
    ('{"type":"t","payload":1,"kye":"x"}', 'no field "kye"; did you mean key?'),
    ('{"type":"t","payload":1,"priority":"5"}', 'priority: "5" is not a whole number'),
    ('{"type":"t","payload":1,"priority":101}', "priority: 101 is not a whole number from -100 to 100"),
    ('{"type":"t","payload":1,"due_at":"+5m"}', 'due_at: "+5m" is not a time; write one such as'),
    ('{"type":"t","payload":1,"kind":"thing"}', 'kind: "thing" is not a kind; write'),
    ('{"type":"t","payload":1,"published":1}', "published: 1 is not a boolean"),
    ('{"type":"t","payload":1,"headers":["a"]}', "headers:"),
    ('{"type":"t","payload":1,"headers":{"outbox-x":"y"}}', "headers: name"),
    ('{"type":7,"payload":1}', "type: 7 is not a string; put it in quotes"),
    ('{"type":"t","type":"u","payload":1}', "type: is there twice"),
    ('{"type":"t"}', "payload: is missing"),
    ('{"payload":1}', "type: is missing"),
    ('{"type":"t","payload":"{broken"}', "payload: not JSON at line 1, column 2"),
    ('{"type":"t","payload":""}', "payload: is empty"),
    ('{"type":"t","payload":1,"payload_base64":"AA=="}', "payload_base64: there is a payload as well"),
    ('{"type":"t","payload_base64":"%"}', "payload_base64: is not base64"),
    ('{"type":"t","key":"a\\u0000b","payload":1}', "key: has a NUL"),
    ('{"type":"t","key":"' + "k" * 256 + '","payload":1}', "has 256 characters, at most 255; shorten it"),
    ('{"specversion":"1.0","id":"x","source":"/","type":"t","partitionkey":"' + "k" * 256 + '"}', "partitionkey:"),
    ('{"specversion":"1.0","id":"x","source":"/","type":"t","kind":"thing"}', '"kind": is neither event nor command'),
    ('{"specversion":"1.0","source":"/","type":"t"}', "no id or no type"),
    ("[1]", "not a JSON object"),
    ("not json", "not JSON at column 1"),
    (b'{"type":"t\xff","payload":1}', "not JSON at column"),
    (b'{"type":"t\x00","payload":1}', "not JSON at column"),
]


def test_whatever_is_wrong_is_told_with_its_line_and_nothing_is_published(shop):
    """Blank lines count, too: people look them up in an editor."""
    text = b"\xef\xbb\xbf" + LINE.encode() + b"\r\n\r\n  \n"
    text += b"".join((bad if isinstance(bad, bytes) else bad.encode()) + b"\n" for bad, _ in WRONG) + LINE.encode()
    name = write(shop, text)
    ran = shop.run("publish", "--from", name, "--json", code=2)
    assert [one["line"] for one in ran.json["errors"]] == list(range(4, 4 + len(WRONG)))
    for (bad, why), one in zip(WRONG, ran.json["errors"]):
        assert why in one["error"], (bad, one)
    assert (ran.json["messages"], ran.json["invalid"], ran.json["published"]) == (2, len(WRONG), 0)
    assert "orders.jsonl, line 4: there is no field" in ran.err and "and 5 more" in ran.err
    assert f"{len(WRONG)} of {len(WRONG) + 2} lines are wrong: nothing was published" in " ".join(ran.err.split())
    assert count(shop) == 0
    ran = shop.run("publish", "--from", name, "--dry-run", code=2)
    ran = shop.run("publish", "--from", name, "--skip-invalid", code=1)
    assert ran.out == "published 2 messages\n" and f"left out {len(WRONG)} lines" in ran.err and count(shop) == 2
    assert "2 were there already" in shop.run("publish", "--from", name, "--skip-invalid", code=1).out


@pytest.mark.parametrize("text, told", [
    (b"", "nothing to publish"),
    (b"\n \r\n", "nothing to publish"),
    (LINE.encode(), "published 1 message"),
    (b"\xef\xbb\xbf" + LINE.encode() + b"\r\n", "published 1 message"),
])
def test_files_that_are_right_in_their_way(shop, text, told):
    assert told in shop.run("publish", "--from", write(shop, text)).out
    assert told in shop.run("publish", "--from", "-", "--run", "once more", data=text).out


def test_files_that_are_none(shop):
    assert "is a folder; name a file in it" in shop.run("publish", "--from", ".", code=2).err
    assert "no such file" in shop.run("publish", "--from", "nothing.jsonl", code=3).err
    ran = shop.run("publish", "--from", write(shop, lines(3) + '{"type":"t","pay'), code=2)
    assert "line 4: not JSON" in ran.err and "was it cut off?" in ran.err
    subprocess.run(["zstd", "-q", "orders.jsonl"], cwd=shop.folder, check=True)
    packed = (shop.folder / "orders.jsonl.zst").read_bytes()
    assert "cut off" in shop.run("publish", "--from", write(shop, packed[:-5], "cut.zst"), "--skip-invalid", code=14).err
    subprocess.run(["gzip", "-k", "orders.jsonl"], cwd=shop.folder, check=True)
    assert "is compressed with gzip" in shop.run("publish", "--from", "orders.jsonl.gz", code=2).err
    # longer than any message: not read to its end
    with open("/dev/zero", "rb") as endless:
        ran = subprocess.run(shop.command("publish", "--from", "-"), cwd=shop.folder, env=shop.env, stdin=endless,
                             capture_output=True, check=False)
    assert ran.returncode == 14 and b"line 1 is longer than 64 MiB" in ran.stderr
    assert count(shop) == 0


def test_a_line_of_20_megabytes(shop):
    """15 MB of bytes are a message, 20 MB of text are none."""
    good = '{"id":"large","type":"t","payload_base64":"' + "AAAA" * 5_000_000 + '"}\n'
    shop.run("publish", "--from", write(shop, good))
    assert shop.run("show", "large", "--json").json["message"]["size"] == 15_000_000
    bad = '{"type":"t","content_type":"text/plain","payload":"' + "x" * 20_000_000 + '"}\n'
    ran = shop.run("publish", "--from", write(shop, LINE + "\n" + bad), code=2)
    assert "line 2: payload: has 20000000 bytes, at most 16777216" in " ".join(ran.err.split())


def test_options_of_one_and_of_many(shop):
    name = write(shop, LINE)
    assert "--key is for one message" in shop.run("publish", "--from", name, "--key", "k", code=2).err
    assert "--batch is for many messages" in shop.run("publish", "--type", "t", "--data", "1", "--batch", "5", code=2).err
    assert "--type is missing" in shop.run("publish", "--data", "1", code=2).err
    assert "--data is missing" in shop.run("publish", "--type", "t", code=2).err
    assert "would publish 1 message" in shop.run("publish", "--from", name, "--dry-run").out and count(shop) == 0


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no-ids"])
@pytest.mark.parametrize("killed", [signal.SIGKILL, signal.SIGINT], ids=["kill", "ctrl-c"])
def test_the_same_command_publishes_what_is_missing(shop, ids, killed):
    total = 20_000
    args = ["publish", "--from", write(shop, lines(total, ids)), "--batch", "50"]
    running = shop.start(*args)
    until(lambda: len(numbers(shop)) > 100, "the first batches")
    code, _, err = end(running, killed)
    done = len(numbers(shop))
    assert 100 < done < total and done % 50 == 0, "killed in the middle, between two transactions"
    if killed == signal.SIGINT:
        assert code == 130 and f"interrupted: {done:,} of 20,000 messages are published" in err
    args[-1] = "1000"
    ran = shop.run(*args, "--json").json
    assert (ran["published"], ran["repeated"]) == (total - done, done)
    assert numbers(shop) == list(range(total)), "each once, in order"


def test_a_line_without_an_id_is_published_once(shop):
    name = write(shop, (LINE + "\n") * 3)
    assert shop.run("publish", "--from", name).out == "published 3 messages\n", "the same text, three messages"
    again = shop.run("publish", "--from", name)
    assert again.out == "published 0 messages; 3 were there already\n" and "add --run NAME" in " ".join(again.err.split())
    # with other line ends, from another folder, corrected in place, and one more
    (shop.folder / "deep").mkdir()
    write(shop, (LINE + "\r\n") * 2 + LINE.replace("1", "2") + "\n" + LINE + "\n", "deep/orders.jsonl")
    assert shop.run("publish", "--from", "deep/orders.jsonl").out == "published 2 messages; 2 were there already\n"
    assert shop.run("publish", "--from", name, "--run", "tuesday").out == "published 3 messages\n"
    write(shop, LINE, "other.jsonl")
    assert shop.run("publish", "--from", "other.jsonl").out == "published 1 message\n"


def test_what_a_pipe_brings_is_checked_before_anything_is_published(shop):
    reader, writer = os.pipe()
    running = shop.start("publish", "--from", "-", stdin=reader)
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(lines(5000).encode() + b"{broken\n")
    code, _, err = end_of(running)
    assert code == 2 and "stdin, line 5001: not JSON" in err and count(shop) == 0


def end_of(running):
    out, err = running.communicate()
    return running.returncode, out.decode(), err.decode()


def test_ctrl_c_while_a_pipe_brings_nothing(shop):
    reader, writer = os.pipe()
    running = shop.start("publish", "--from", "-", stdin=reader)
    os.close(reader)
    os.write(writer, LINE.encode())
    until(lambda: waits_for_input(running.pid), "it reads")
    assert end(running, signal.SIGINT)[0] == -signal.SIGINT
    os.close(writer)
    assert count(shop) == 0


def waits_for_input(pid):
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().startswith("0 ")


def test_it_changed_while_it_was_published(shop):
    """A pipe cannot; a file can: its lines are looked at again when they go."""
    name = write(shop, lines(20_000))
    running = shop.start("publish", "--from", name, "--batch", "100")
    until(lambda: numbers(shop), "the first batch")
    running.send_signal(signal.SIGSTOP)
    size = (shop.folder / name).stat().st_size
    with open(shop.folder / name, "r+b") as file:
        file.seek(size - 30)
        file.write(b"?" * 20)
    running.send_signal(signal.SIGCONT)
    code, _, err = end_of(running)
    assert code == 2 and "it changed since it was checked; line 20000" in err and "run the same command again" in err
