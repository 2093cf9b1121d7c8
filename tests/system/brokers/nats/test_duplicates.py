# SPDX-License-Identifier: Apache-2.0
"""Repeats that the stream recognises count as delivered, are stored once, and are counted by the relay."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess

import pytest

import natsd

BINARY = os.environ.get("OUTBOX_BIN", "outbox")
COUNT = 50


@pytest.fixture
def server(servers):
    started = servers()
    natsd.Witness(started.port).create("S")
    return started


@pytest.fixture
def relay(server, tmp_path):
    """Run a relay over a log of COUNT messages, each of a key of its own: what it ended with, and its counts."""
    path = tmp_path / "app.db"
    env = {**os.environ, "OUTBOX_STORE": f"sqlite:{path}"}
    subprocess.run([BINARY, "init"], env=env, check=True, capture_output=True)
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.executemany("INSERT INTO outbox_message (id, type, key, payload) VALUES (?, 'order', ?, '{}')",
                       [(f"m-{n}", f"key-{n}") for n in range(COUNT)])

    def run(*targets, failpoint="", path="S.{type}?stream=S"):
        words = [word for name in targets
                 for word in ("--to", f"{name}={server.url}/{path.replace('NAME', name)}", "--start",
                              f"{name}=oldest")]
        done = subprocess.run([BINARY, "relay", *words, "--lease", "2s", "--until-idle", "--json"],
                              env={**env, "OUTBOX_FAILPOINT": failpoint}, capture_output=True, text=True, timeout=60,
                              check=False)
        return done, json.loads(done.stdout)["counts"] if done.stdout else None
    return run


def assert_stored_once(server):
    stored = [headers["Nats-Msg-Id"] for headers, _ in natsd.Witness(server.port).messages("S")]
    assert sorted(stored) == sorted(f"m-{n}" for n in range(COUNT))


def test_two_targets_with_one_subject(server, relay):
    done, counts = relay("a", "b")
    assert done.returncode == 0, done.stderr
    assert (counts["delivered"], counts["duplicates"], counts["failed"]) == (2 * COUNT, COUNT, 0)
    assert f", recognised by the broker {COUNT}, in " in done.stderr
    assert_stored_once(server)


def stored_subjects(server):
    """How many messages there are under each subject of the stream."""
    answer = natsd.Witness(server.port).request("$JS.API.STREAM.INFO.S", {"subjects_filter": ">"})
    return answer["state"]["subjects"]


def test_two_targets_with_a_stream_in_common_lose_nothing(server, relay):
    """The stream knows the ids of one target's messages, and would not store the other's."""
    natsd.Witness(server.port).update("S", duplicate_window=2_000_000_000)
    done, counts = relay("a", "b", path="S.NAME.{type}")
    assert done.returncode == 0, done.stderr
    assert (counts["delivered"], counts["failed"]) == (2 * COUNT, 0)
    assert counts["retried"] > 0, "no target met the other's messages"
    assert stored_subjects(server) == {"S.a.order": COUNT, "S.b.order": COUNT}


def test_msg_id_target_keeps_targets_apart(server, relay):
    done, counts = relay("a", "b", path="S.NAME.{type}?msg_id=target")
    assert done.returncode == 0, done.stderr
    assert (counts["delivered"], counts["retried"], counts["duplicates"]) == (2 * COUNT, 0, 0)
    assert stored_subjects(server) == {"S.a.order": COUNT, "S.b.order": COUNT}
    ids = [headers["Nats-Msg-Id"] for headers, _ in natsd.Witness(server.port).messages("S")]
    assert sorted(ids) == sorted(f"m-{n}@{name}" for n in range(COUNT) for name in "ab")


def test_msg_id_target_recognises_repeats(server, relay):
    done, _ = relay("a", failpoint="after_publish:kill", path="S.{type}?msg_id=target")
    if done.returncode == 0:
        pytest.skip("built without -Dfailpoints=true")
    done, counts = relay("a", path="S.{type}?msg_id=target")
    assert done.returncode == 0, done.stderr
    assert (counts["delivered"], counts["duplicates"]) == (COUNT, COUNT)
    assert natsd.Witness(server.port).count("S") == COUNT


# ---- when the stream cannot be asked ----------------------------------------------------------------

RELAY = "nats://relay:relay@127.0.0.1:{}/S.{{type}}"
ADMIN = {"user": "admin", "pass": "admin"}


def users(publish):
    return f"""authorization {{ users: [ {{ user: admin, password: admin }},
        {{ user: relay, password: relay, permissions: {{ publish: [{publish}], subscribe: "_INBOX.>" }} }} ] }}"""


def test_an_account_that_may_only_publish(servers, probe):
    server = servers(users('"S.>"'))
    natsd.Witness(server.port, ADMIN).create("S")
    url = RELAY.format(server.port)
    assert "publish ok acked 40 " in probe(url, 40)
    out = probe(url, 40)
    assert "publish ok acked 0 rejected 0 retry 40 unknown 0 unset 0 " in out, out
    assert 'Permissions Violation for Publish to "$JS.API.STREAM.MSG.GET.S"' in out and "msg_id=target" in out, out
    # that needs no permission
    assert "acked 40 " in probe(f"{url}?msg_id=target", 40)
    assert "acked 40 " in probe(f"{url}?msg_id=target", 40)


def test_an_account_that_imports_the_subject(servers, probe):
    server = servers("""accounts {
        A: { jetstream: enabled, users: [{user: admin, password: admin}], exports: [{service: "S.>"}] },
        B: { users: [{user: relay, password: relay}], imports: [{service: {account: A, subject: "S.>"}}] } }""")
    natsd.Witness(server.port, ADMIN).create("S")
    url = RELAY.format(server.port)
    assert "publish ok acked 5 " in probe(url, 5)
    out = probe(url, 5)
    assert "publish ok acked 0 rejected 0 retry 5 " in out and "cannot tell under which subject" in out, out


def test_a_message_that_is_gone(server, probe):
    """As from a work queue: whether it was ours, nobody knows."""
    url = f"{server.url}/S.{{type}}"
    assert "acked 3 " in probe(url, 3)
    assert natsd.Witness(server.port).request("$JS.API.STREAM.MSG.DELETE.S", {"seq": 2})["success"]
    out = probe(url, 3)
    assert "publish ok acked 2 rejected 0 retry 1 " in out and "no message found" in out, out


def test_doctor_says_when_it_may_not_be_asked(servers, tmp_path):
    names = '"S.>", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.INFO.*"'
    for more, told in (("", True), (', "$JS.API.STREAM.MSG.GET.*"', False)):
        server = servers(users(names + more))
        natsd.Witness(server.port, ADMIN).create("S")
        store = f"sqlite:{tmp_path}/doctor.db"
        subprocess.run([BINARY, "init", "--store", store], check=False, capture_output=True)
        for option, warned in (("", told), ("?msg_id=target", False)):
            url = RELAY.format(server.port) + option
            done = subprocess.run([BINARY, "doctor", "--store", store, "--to", f"events={url}"], capture_output=True,
                                  text=True, timeout=60, check=False)
            assert "written to a file" in done.stdout, done
            assert ("may not be asked for its messages" in done.stdout) == warned, done.stdout


def test_a_relay_that_died_before_it_settled(server, relay):
    done, _ = relay("a", failpoint="after_publish:kill")
    if done.returncode == 0:
        pytest.skip("built without -Dfailpoints=true")
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert_stored_once(server)
    done, counts = relay("a")
    assert done.returncode == 0, done.stderr
    assert (counts["delivered"], counts["duplicates"], counts["takeovers"]) == (COUNT, COUNT, 1)
    assert_stored_once(server)
