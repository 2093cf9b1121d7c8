# SPDX-License-Identifier: Apache-2.0
"""A relay that serves nothing of a target says so, stops nobody else, and goes on when it can."""
import os
import re
import subprocess

import pytest

from places import bare_place, place
from shell import until

SOURCE = os.environ.get("OUTBOX_SOURCE", os.path.join(os.path.dirname(__file__), "..", "..", ".."))

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
        assert "events: not served: " in shop.run("status", code=None).out
        assert target(shop)["state"] == "running", "its lanes are"
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


def deliver_some(shop, count=3):
    insert(shop, count)
    shop.run("relay", "--to", "events=file:one.jsonl", "--until-idle", *QUICK)
    assert lines(shop, "one.jsonl") == count


LATE = ("--to", "events=file:one.jsonl", "--to", "late=file:late.jsonl", "--bands", "late")


def alerted(shop):
    """The targets that an alert says nobody serves."""
    findings = shop.run("alerts", "--json", code=None).json["findings"]
    return {finding["target"] for finding in findings if finding["rule"] == "unserved"}


def test_a_target_without_a_start_waits_alone(shop):
    deliver_some(shop)
    insert(shop, 5)
    for mode in ("--until-idle", "--once"):
        ran = shop.run("relay", *LATE, mode, *QUICK, code=2)
        assert 'target "late' in ran.err and "say where it starts" in ran.err
        assert lines(shop, "one.jsonl") == 8, "the other one goes on"
    assert target(shop, "late") is None, "it signed off"
    relay = shop.start("relay", *LATE, *QUICK, stdout=subprocess.DEVNULL)
    try:
        until(lambda: target(shop, "late"), "the relay to tell of it")
        said = " ".join(shop.run("status", code=None).out.split())
        assert "late is not served" in said or "late: not served" in said
        for name in ("late", "late-high", "late-low"):
            assert said.count(f"{name} is not served") + said.count(f"{name}: not served") == 1
        assert target(shop, "late")["state"] == "not served"
        assert "late" in shop.run("doctor", code=None).out
        until(lambda: alerted(shop) >= {"late", "late-high", "late-low"}, "each of its bands to tell of it")
        insert(shop, 2)
        until(lambda: lines(shop, "one.jsonl") == 10, "the other one to go on")
    finally:
        assert "target.unserved" in log(relay)
    shop.run("relay", *LATE, "--start", "late=now", "--until-idle", *QUICK)
    insert(shop, 1)
    shop.run("relay", *LATE, "--until-idle", *QUICK)
    assert lines(shop, "one.jsonl") == 11 and lines(shop, "late.jsonl") == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "partitioned"])
def test_what_is_published_while_a_target_waits_stays(kind, tmp_path, request):
    shop = bare_place("sqlite" if kind == "sqlite" else "postgres", tmp_path, request)
    shop.run("init", *(("--partition", "auto") if kind == "partitioned" else ()))
    deliver_some(shop)
    relay = shop.start("relay", *LATE, "--retain-delivered", "1ms", *QUICK, stdout=subprocess.DEVNULL)
    try:
        until(lambda: target(shop, "late"), "the relay to tell of it")
        insert(shop, 2)
        until(lambda: lines(shop, "one.jsonl") == 5, "the other one to go on")
        for more in ((), ("--dry-run",)):
            ran = shop.run("purge", "--delivered-before", "0s", *more, code=None)
            assert ran.code and 'target "late" waits' in ran.err and "--start late=now" in ran.err, ran
        if kind == "partitioned":
            with shop.db() as db:
                dropped = db.execute("SELECT messages FROM outbox_drop_partition(now() + interval '1 day', 1000000, 1000)")
                assert dropped.fetchone()[0] == 0
    finally:
        log(relay)
    shop.run("relay", *LATE, "--start", "late=oldest", "--until-idle", *QUICK)
    assert lines(shop, "late.jsonl") >= 2
    shop.run("purge", "--delivered-before", "0s")


def test_a_target_that_matches_nothing_needs_no_start(shop):
    deliver_some(shop)
    insert(shop, 2)
    shop.run("relay", "--to", "events=file:one.jsonl", "--to", "dead=file:dead.jsonl", "--match", "dead=-",
             "--dead-letter", "events=dead", "--until-idle", *QUICK)
    assert lines(shop, "one.jsonl") == 5 and lines(shop, "dead.jsonl") == 0
    assert target(shop, "dead")["pending"] == 0


def test_a_dead_letter_without_a_start_stops_nobody(shop):
    deliver_some(shop)
    insert(shop, 2)
    ran = shop.run("relay", "--to", "events=file:one.jsonl", "--to", "dead=file:dead.jsonl",
                   "--dead-letter", "events=dead", "--until-idle", *QUICK, code=2)
    assert 'target "dead"' in ran.err
    assert lines(shop, "one.jsonl") == 5


def test_config_check_finds_it_before(shop):
    (shop.folder / "outbox.yaml").write_text(
        f"sources: [{{ name: shop, store: '{shop.url}' }}]\n"
        "targets:\n  - { name: events, to: 'file:one.jsonl' }\n  - name: late\n    to: file:late.jsonl\n")
    shop.run("config", "check", "--connect")
    deliver_some(shop)
    shop.run("config", "check")
    ran = shop.run("config", "check", "--connect", code=2)
    assert 'outbox.yaml:4:5: targets[1] "late"' in ran.err and "source shop: it is new" in ran.err
    problem = shop.run("config", "check", "--connect", "--json", code=2).json["problems"][0]
    assert problem["line"] == 4 and "start" in problem["message"]
    shop.run("config", "check", "--connect", "--set", "targets.late.start=now")


def test_readmes_file_runs_on_readmes_database(tmp_path, request):
    """With its history. Only the addresses are others."""
    shop = place("sqlite", tmp_path, request)
    deliver_some(shop)
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        text = re.search(r"^# outbox\.yaml$.*?(?=^```$)", file.read(), re.M | re.S).group(0)
    for old, new in ((r'"postgres://[^"]*"', f'"{shop.url}"'), (r"\n    password:[^\n]*", ""), (r'"amqp:[^"]*"', '"file:one.jsonl"'),
                     (r'"redis:[^"]*"', '"file:partner.jsonl"'), (r"(?s)\nadmin:.*", "\n")):
        text, n = re.subn(old, lambda _, new=new: new, text)
        assert n, old
    (tmp_path / "outbox.yaml").write_text(text)
    shop.run("config", "check", "--connect")
    insert(shop, 2)
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    assert lines(shop, "one.jsonl") == 5
