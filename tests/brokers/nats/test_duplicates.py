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

    def run(*targets, failpoint=""):
        words = [word for name in targets
                 for word in ("--to", f"{name}={server.url}/S.{{type}}?stream=S", "--start", f"{name}=oldest")]
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
