# SPDX-License-Identifier: Apache-2.0
"""Two versions at once on one store, while messages flow: the database first, then the programs one by one."""
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

from shell import BINARY, Shop, until

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BEFORE = "b741d83"  # the last one with schema 1: the oldest that may run beside this one
BUILD = pathlib.Path(os.environ.get("OUTBOX_BEFORE_BUILD", pathlib.Path(BINARY).resolve().parents[2] / f"before-{BEFORE}"))


def build():
    """The program of the version before, from the history; kept beside the build for the next run."""
    program = BUILD / "build" / "src" / "cli" / "outbox"
    if program.exists():
        return program
    there = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", f"{BEFORE}^{{commit}}"], capture_output=True, check=False)
    if there.returncode != 0:
        pytest.skip("the version before is not in this checkout's history")
    BUILD.mkdir(parents=True, exist_ok=True)
    archive = subprocess.run(["git", "-C", ROOT, "archive", BEFORE], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x", "-C", BUILD], input=archive.stdout, check=True)
    subprocess.run(["meson", "setup", "build", ".", "-Dtests=false", "-Dman=disabled"], cwd=BUILD, check=True, capture_output=True)
    subprocess.run(["ninja", "-C", "build", "src/cli/outbox"], cwd=BUILD, check=True, capture_output=True)
    return program


class Old(Shop):
    program = None

    def command(self, *args):
        return [str(self.program), *map(str, args)]


def deliveries(shop):
    return [line["data"] for line in shop.lines()]


def test_two_versions_at_once(tmp_path):
    old = Old(tmp_path)
    old.program = build()
    new = Shop(tmp_path)
    old.run("init", "--lanes", "2")
    published, stop = [], threading.Event()
    sink = open(tmp_path / "said", "wb")

    def relay(shop, name):
        return shop.start("relay", "--to", "events=file:out.jsonl", "--lease", "2s", "--instance", name, stdout=sink, stderr=sink)

    def publish():
        while not stop.is_set():
            n = len(published)
            new.insert(key=f"k{n % 5}", payload=str(n))
            published.append(n)
            time.sleep(0.005)

    def flows(what):
        """Everything that is published now arrives."""
        count = len(published) + 5
        until(lambda: len(published) >= count and len(set(deliveries(new))) >= count, what)

    def works(name):
        """This relay holds a lane and delivers."""
        def holds():
            lanes = new.run("status", "--json").json["targets"][0]["lanes"]
            return any((lane["owner"] or "").startswith(name) and lane["live"] for lane in lanes)
        until(holds, f"{name} to hold a lane")

    publisher = threading.Thread(target=publish)
    publisher.start()
    relays = [relay(old, "old-a"), relay(old, "old-b")]
    try:
        flows("two of the version before")
        new.run("upgrade", "--check", code=2)
        new.run("upgrade")
        flows("the version before on the new schema")
        relays[0].send_signal(signal.SIGTERM)
        assert relays[0].wait(60) == 0
        relays[0] = relay(new, "new-a")
        works("new-a")
        works("old-b")
        flows("both versions side by side")
        relays[1].send_signal(signal.SIGTERM)
        assert relays[1].wait(60) == 0
        relays[1] = relay(new, "new-b")
        works("new-b")
        flows("two of the new version")
        # and back: a rollback of the program alone
        relays[0].send_signal(signal.SIGTERM)
        assert relays[0].wait(60) == 0
        relays[0] = relay(old, "old-c")
        works("old-c")
        flows("the version before once more")
    finally:
        stop.set()
        publisher.join()
        until(lambda: len(set(deliveries(new))) >= len(published), "the last delivery")
        for process in relays:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    arrived = deliveries(new)
    assert sorted(arrived) == published, "nothing is lost, and nothing twice: everybody was drained"
    for key in range(5):
        mine = [n for n in arrived if n % 5 == key]
        assert mine == sorted(mine)
