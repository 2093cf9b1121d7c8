# SPDX-License-Identifier: Apache-2.0
"""What the commands advise: it must work as it stands, and never be known to fail."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from shell import BINARY


def elsewhere(shop, *args, code=0):
    """The same store, named by --store alone."""
    env = {k: v for k, v in shop.env.items() if k not in ("OUTBOX_STORE", "COLUMNS")}
    done = subprocess.run([BINARY, *args, "--store", shop.url], cwd="/", env=env, text=True,
                          capture_output=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("columns, why", [
    ({"payload": "{broken"}, "its payload is not JSON"),
    ({"expires_at": 1000}, "it has expired"),
])
def test_a_requeue_that_cannot_help_is_not_advised(shop, columns, why):
    message = shop.insert(**columns)
    shop.relay(code=1)
    text = shop.run("show", message).out
    assert f"a requeue will not help: {why}" in text
    assert "outbox requeue" not in text and f"outbox discard {message}" in text
    assert ("publish it again; then" if "expired" in why else "publish a corrected message") in text
    assert (f"outbox amend {message}" in text) == ("expired" not in why)


@pytest.mark.sqlite
def test_a_row_that_is_malformed_is_not_requeued_either(shop):
    with shop.db() as db:
        db.execute("INSERT INTO outbox_message (type, payload, id) VALUES (CAST(x'74ff' AS TEXT), '{}', 'raw')")
    shop.relay(code=1)
    text = shop.run("show", "raw").out
    assert "a requeue will not help: its row is malformed" in text and "outbox requeue" not in text


def test_what_may_succeed_is_requeued(shop):
    """Failed, then the reason went away: the row is as if a broker had refused it."""
    message = shop.fail()[0]
    with shop.db() as db:
        changed = db.execute("UPDATE outbox_detour SET last_error = 'refused: 403' WHERE last_error LIKE '%not JSON%'")
        assert changed.rowcount == 1
    text = shop.run("show", message).out
    assert f"outbox requeue {message}" in text and f"outbox amend {message}" in text
    shop.run("relay", "--to", "all=null:", "--start", "all=oldest", "--until-idle")
    text = shop.run("show", message).out
    assert f"outbox requeue {message}" in text and "outbox amend" not in text


def test_suggested_commands_name_the_store_where_it_was_named(shop):
    message = shop.fail()[0]
    option = f"--store {shop.url}"
    for args in (["show", message], ["status"]):
        assert option not in shop.run(*args).out
        assert option in elsewhere(shop, *args)
    assert option in elsewhere(shop, "doctor", code=1)
    # as it stands, from any folder and without OUTBOX_STORE
    command = re.search(r"^    (outbox discard .*)$", elsewhere(shop, "show", message), re.M)
    line = command[1].replace("outbox", BINARY, 1).replace("WHY", "why")
    env = {k: v for k, v in shop.env.items() if k != "OUTBOX_STORE"}
    assert subprocess.run(["bash", "-c", line], cwd="/", env=env, check=False).returncode == 0


def test_the_suggested_store_is_quoted(shop):
    message = shop.fail()[0]
    env = {k: v for k, v in shop.env.items() if k != "OUTBOX_STORE"}
    done = subprocess.run([BINARY, "show", message, "--store", shop.env["OUTBOX_STORE"] + "?name=shop"], cwd=shop.folder, env=env,
                          text=True, capture_output=True, check=True)
    assert f"--store '{shop.env['OUTBOX_STORE']}?name=shop'" in done.stdout


def test_a_parked_delivery_names_its_key(shop):
    shop.relay()
    shop.insert(key="it's 42", payload="{broken")
    behind = shop.insert(key="it's 42")
    shop.run("relay", "--to", "events=file:out.jsonl", "--hold", "events", "--once", code=1)
    text = shop.run("show", behind).out
    assert "to events: parked" in text
    assert "outbox list --key 'it'\\''s 42'" in text


def test_no_estimate_when_nothing_moves(shop):
    shop.insert()
    shop.relay()
    shop.insert()
    told = shop.run("status", "--json").json["targets"][0]
    assert told["delivered_last_minute"] and told["lag"] == 1 and told["drain_time"] is None
    assert "at this rate" not in shop.run("status").out
    shop.run("pause", "events", "--reason", "r")
    assert shop.run("status", "--json").json["targets"][0]["drain_time"] is None


def test_target_list_has_the_words_of_status(shop):
    shop.insert()
    shop.relay()
    shop.insert()
    told = shop.run("target", "list", "--json").json["targets"][0]
    assert (told["state"], told["unfinished"]) == ("no relay", 1)
    text = shop.run("target", "list").out
    assert "no relay" in text and "UNFINISHED" in text and "running" not in text


def test_list_before_the_first_relay(shop):
    shop.insert()
    shop.insert()
    text = " ".join(shop.run("list").out.split())
    assert "no target is registered yet, and 2 messages wait; outbox relay --to NAME=URL registers one" in text
    assert shop.run("list", "--json").json == {"deliveries": [], "next": None}


def test_names_that_do_not_exist(shop):
    assert 'no target "nope"' in shop.run("list", "--target", "nope", code=3).err
    message = shop.insert()
    shop.relay()
    assert 'no target "nope"; there are: events' in shop.run("list", "--target", "nope", code=3).err
    assert "did you mean events?" in shop.run("list", "--target", "event", code=3).err
    assert 'no message with the id "nope"' in shop.run("audit", "nope", code=3).err
    assert "no operator has acted on it yet" in shop.run("audit", message).out


def test_purge_says_when_there_is_no_target(shop):
    shop.insert()
    for args in ([], ["--dry-run"]):
        out = shop.run("purge", "--delivered-before", "0", *args).out
        assert "nothing is purged while no target is registered" in out
    shop.relay()
    assert "purged 1 message (0 with" in shop.run("purge", "--delivered-before", "0").out


@pytest.mark.sqlite
def test_doctor_has_advice_for_a_broken_file(bare):
    bare.path.write_bytes(b"this is not a database " * 100)
    ran = bare.run("doctor", code=14)
    assert "restore a backup" in ran.err and ".recover" in ran.err
    assert ".recover" in bare.run("doctor", "--json", code=14).json["error"]["message"]


def test_doctor_says_a_thing_once(shop):
    told = shop.run("doctor", "--json").json["findings"]
    assert sum("registered" in row["text"] for row in told) == 1
    assert "1 lane" in json.dumps(told) and "1 lanes" not in json.dumps(told)
    shop.relay()
    assert "1 target, none ahead" in shop.run("doctor").out


def test_what_stdout_means_is_not_promised_for_pipes(shop):
    with open(shop.folder / "report", "wb") as report:
        subprocess.run(shop.command("doctor", "--to", "x=stdout:"), cwd=shop.folder, env=shop.env, stdout=report,
                       check=True)
    assert "a pipe is not synced" in " ".join((shop.folder / "report").read_text().split())
    assert "fdatasync" not in shop.run("doctor", "--to", "x=stdout:").out


@pytest.mark.sqlite
def test_readers_need_the_right_to_write(shop):
    """As the man page says: a WAL cannot be shared without it."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    for folder in [shop.folder, *list(shop.folder.parents)[:-2]]:
        folder.chmod(folder.stat().st_mode | 0o011)
    shop.path.chmod(0o644)
    for command in ("status", "list", "doctor"):
        done = subprocess.run(shop.command(command), cwd=shop.folder, env=shop.env, user=65534, group=65534,
                              extra_groups=[], capture_output=True, text=True, check=False)
        assert (done.returncode, "cannot be written" in done.stderr) == (6, True), done.stderr
    man = pathlib.Path(os.environ.get("OUTBOX_MAN") or pathlib.Path(__file__).parents[3] / "docs" / "man")
    assert "right to write" in (man / "outbox-status.1.scd").read_text()
