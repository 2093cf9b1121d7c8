# SPDX-License-Identifier: Apache-2.0
"""A relay that serves nothing of a target says so, stops nobody else, and goes on when it can."""
import subprocess

import pytest

from places import place
from shell import until

QUICK = ("--poll", "50ms", "--lease", "900ms")


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    return place(request.param, tmp_path, request)


def insert(shop, count):
    with shop.db() as db:
        for _ in range(count):
            db.execute("INSERT INTO outbox_message (type, payload) VALUES ('a', '{}')")


def lines(shop, name):
    path = shop.folder / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def target(shop, name="events"):
    return next((t for t in shop.run("status", "--json", code=None).json["targets"] if t["name"] == name), None)


def served(shop):
    now = target(shop)
    return now and all(lane["live"] for lane in now["lanes"])


def log(process):
    process.terminate()
    return process.communicate()[1].decode()


def test_one_target_one_place(shop):
    first = shop.start("relay", "--to", "events=file:one.jsonl", *QUICK, stdout=subprocess.DEVNULL)
    until(lambda: served(shop), "the first relay")
    second = shop.start("relay", "--to", "events=file:two.jsonl", *QUICK, stdout=subprocess.DEVNULL)
    try:
        until(lambda: target(shop)["unserved"], "the second relay to say so")
        insert(shop, 40)
        until(lambda: lines(shop, "one.jsonl") == 40, "all of them at one place")
        assert lines(shop, "two.jsonl") == 0
        said = target(shop)["unserved"]
        assert f"would send to file:{shop.folder}/two.jsonl" in said and f"sends to file:{shop.folder}/one.jsonl" in said
        assert "events is not served" in shop.run("status", code=None).out
        doctor = shop.run("doctor", "--json", code=None)
        assert doctor.code and any(f["level"] == "error" and "not served" in f["text"]
                                   for f in doctor.json["findings"]), doctor
        assert "unserved" in {f["rule"] for f in shop.run("alerts", "--json", code=None).json["findings"]}
        ran = shop.run("relay", "--to", "events=file:three.jsonl", "--until-idle", *QUICK, code=2)
        assert 'target "events"' in ran.err and "three.jsonl" in ran.err
        assert "three.jsonl" in shop.run("relay", "--to", "events=file:three.jsonl", "--once", *QUICK, code=2).err
        assert "target.unserved" not in log(first)
        insert(shop, 10)
        until(lambda: lines(shop, "two.jsonl") == 10, "the second relay to go on")
        until(lambda: not target(shop)["unserved"], "nobody to say so")
    finally:
        said = log(second)
        first.kill()
        first.wait()
    assert "target.unserved" in said and "target.served" in said
    assert lines(shop, "one.jsonl") == 40 and lines(shop, "three.jsonl") == 0
