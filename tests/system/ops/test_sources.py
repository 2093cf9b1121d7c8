# SPDX-License-Identifier: Apache-2.0
"""Every command takes the store from outbox.yaml: no URL, no password on a command line."""
import os
import pathlib
import re
import sqlite3
import time

import pytest

from shell import Shop

FILE = """
sources:
  - name: shop
    store: "sqlite:shop.db"
  - name: billing
    store: "sqlite:billing.db"
targets:
  - name: events
    to: "file:out.jsonl"
"""


@pytest.fixture
def two(tmp_path):
    place = Shop(tmp_path)
    place.env.pop("OUTBOX_STORE")
    (tmp_path / "two.yaml").write_text(FILE)
    (tmp_path / "one.yaml").write_text(FILE.replace('  - name: billing\n    store: "sqlite:billing.db"\n', ""))
    for name in ("shop", "billing"):
        place.run("init", "--config", "two.yaml", "--source", name)
    return place


def commands(place):
    return [c["name"] for c in place.run("help", "--json").json["commands"]]


def options(place, command):
    return {o["name"] for o in place.run("help", *command.split(), "--json").json["options"]}


def test_every_command_with_a_store_takes_a_file(two):
    for command in commands(two):
        known = options(two, command)
        assert ("store" in known) <= ({"config", "source"} <= known), command


def test_one_source_is_taken_and_several_want_a_name(two):
    assert two.run("list", "--config", "one.yaml").out
    ran = two.run("tail", "--config", "two.yaml", code=2)
    assert "give --source with one of: shop, billing" in ran.err
    ran = two.run("list", "--config", "two.yaml", "--source", "shp", code=3)
    assert 'no source "shp" in the file; there are: shop, billing' in ran.err
    two.run("publish", "--config", "two.yaml", "--source", "billing", "--type", "a", "--data", "{}")
    for name, count in (("shop", 0), ("billing", 1)):
        assert sqlite3.connect(two.folder / f"{name}.db").execute("SELECT count(*) FROM outbox_message").fetchone() == (count,)


def test_the_environment_names_the_file(two):
    env = {"OUTBOX_CONFIG": "two.yaml"}
    assert two.run("status", "--json", "--source", "shop", env=env).json["source"] == "shop"
    # --store goes before it, and so does OUTBOX_STORE, which names one database
    assert two.run("status", "--json", "--store", "sqlite:billing.db", env=env).json["store"] == "billing"
    env["OUTBOX_STORE"] = "sqlite:billing.db"
    assert two.run("status", "--json", env=env).json["store"] == "billing"
    assert two.run("status", "--json", "--source", "shop", env=env).json["store"] == "shop"
    two.run("relay", "--until-idle", env={"OUTBOX_CONFIG": "two.yaml"})


def test_what_does_not_go_together_is_refused(two):
    assert "--store cannot be combined with --config" in two.run("list", "--store", "sqlite:shop.db", "--config", "two.yaml", code=2).err
    assert "--store cannot be combined with --source" in two.run("list", "--store", "sqlite:shop.db", "--source", "shop", code=2).err
    assert "needs a file" in two.run("list", "--source", "shop", code=2).err
    assert "two.yaml:" not in two.run("list", "--config", "none.yaml", "--source", "shop", code=3).err
    (two.folder / "bad.yaml").write_text(FILE + "    rats: 3\n")
    assert "bad.yaml:" in two.run("list", "--config", "bad.yaml", "--source", "shop", code=2).err


def test_status_shows_all_sources_and_hides_none_that_is_away(two):
    for name in ("shop", "billing"):
        two.run("publish", "--config", "two.yaml", "--source", name, "--type", "a", "--data", "{}")
    two.run("relay", "--config", "two.yaml", "--until-idle")
    out = two.run("status", "--config", "two.yaml").out
    assert out.index("shop  idle: no relay runs now;") < out.index("billing  idle: no relay runs now;")
    (two.folder / "shop.db").rename(two.folder / "gone.db")
    ran = two.run("status", "--config", "two.yaml", code=3)
    assert "shop  " in ran.out and "no database at" in ran.out and "billing  idle" in ran.out
    told = two.run("status", "--config", "two.yaml", "--json", code=3).json["sources"]
    assert [(s["source"], s["health"]) for s in told] == [("shop", "unreachable"), ("billing", "healthy")]


@pytest.mark.parametrize("mode", ["--once", "--until-idle"])
def test_a_run_that_ends_wants_all_its_sources(two, mode):
    """Half a run that looks like a whole one is worse than none: nothing is delivered."""
    two.run("publish", "--config", "two.yaml", "--source", "shop", "--type", "a", "--data", "{}")
    (two.folder / "billing.db").rename(two.folder / "gone.db")
    ran = two.run("relay", "--config", "two.yaml", mode, code=3)
    assert 'source "billing": no database at' in ran.err and "relay.start" not in ran.err
    (two.folder / "gone.db").rename(two.folder / "billing.db")
    said = two.run("relay", "--config", "two.yaml", mode).err
    assert "delivered 1, failed 0" in said.splitlines()[-1] and said.count("relay.start") == 2


def main_thread_ticks(process):
    """What it has used of the processor so far."""
    words = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


@pytest.mark.parametrize("mode", ["--once", "--until-idle"])
def test_a_source_that_fails_stops_no_other(two, mode):
    """What only its registration finds out is the command's error in the end; nobody is stopped, and nothing spins meanwhile."""
    (two.folder / "half.yaml").write_text(FILE.replace('billing.db"\n', 'billing.db"\n    targets: [events]\n') + """
    dead_letter: dead
    rate: 10/s
  - name: dead
    to: "null:"
""")
    for _ in range(30):
        two.run("publish", "--config", "two.yaml", "--source", "shop", "--type", "a", "--data", "{}")
    process, ticks = two.start("relay", "--config", "half.yaml", mode), []
    while process.poll() is None:
        if two.lines():
            ticks.append(main_thread_ticks(process))
        time.sleep(0.1)
    said = process.communicate()[1].decode()
    assert process.returncode == 2 and 'source "billing": ' in said and '"dead"' in said, said
    assert len(two.lines()) == 30 and "in flight" not in said, said
    assert ticks[-1] - ticks[0] < os.sysconf("SC_CLK_TCK") // 10, "the main thread only waits"


def test_list_shows_all_sources(two):
    for name in ("shop", "billing"):
        two.run("publish", "--config", "two.yaml", "--source", name, "--type", f"a.{name}", "--data", "{}")
    two.run("relay", "--config", "two.yaml", "--until-idle")
    out = two.run("list", "--config", "two.yaml").out
    assert out.index("shop\n") < out.index("a.shop") < out.index("billing\n") < out.index("a.billing")
    told = two.run("list", "--config", "two.yaml", "--json").json["sources"]
    assert [(s["source"], [d["type"] for d in s["deliveries"]], s["next"]) for s in told] == [
        ("shop", ["a.shop"], None), ("billing", ["a.billing"], None)]
    assert "--after needs --source" in two.run("list", "--config", "two.yaml", "--after", "x", code=2).err
    (two.folder / "shop.db").rename(two.folder / "gone.db")
    ran = two.run("list", "--config", "two.yaml", code=3)
    assert "no database at" in ran.out and "a.billing" in ran.out
    told = two.run("list", "--config", "two.yaml", "--json", code=3).json["sources"]
    assert "no database at" in told[0]["error"] and len(told[1]["deliveries"]) == 1


def test_doctor_examines_all_sources(two):
    two.run("relay", "--config", "two.yaml", "--until-idle")
    out = two.run("doctor", "--config", "two.yaml", "--brokers", code=None).out
    assert out.startswith("shop\n") and "\nbilling\n" in out and out.count("broker   events") == 2
    told = two.run("doctor", "--config", "two.yaml", "--json", code=None).json["sources"]
    assert [(s["source"], {f["area"] for f in s["findings"]}) for s in told] == [
        (name, {"store", "target"}) for name in ("shop", "billing")]
    assert "findings" in two.run("doctor", "--config", "one.yaml", "--json", code=None).json
    (two.folder / "shop.db").rename(two.folder / "gone.db")
    ran = two.run("doctor", "--config", "two.yaml", code=3)
    assert "no database at" in ran.out and "nothing waits" in ran.out


def test_upgrade_takes_all_sources(two):
    out = two.run("upgrade", "--config", "two.yaml").out
    assert re.findall(r"^(\w+): schema \d+ is up to date", out, re.M) == ["shop", "billing"]
    told = two.run("upgrade", "--config", "two.yaml", "--json").json["sources"]
    assert [(s["source"], s["changed"]) for s in told] == [("shop", False), ("billing", False)]
    (two.folder / "shop.db").unlink()
    ran = two.run("upgrade", "--config", "two.yaml", code=3)
    assert "no database at" in ran.out and "billing: schema" in ran.out


def test_health_of_a_source_is_what_alerts_say(two):
    """By the same rules and the same limits, those of the file."""
    def both(name):
        args = ("--config", name, "--source", "shop", "--json")
        told = two.run("alerts", *args, code=None).json
        health, rules = two.run("status", *args).json["health"], [f["rule"] for f in told["findings"]]
        assert health == ("healthy" if rules == ["no_relay"] else told["level"])  # idle
        return told["level"], rules

    args = ("--config", "two.yaml", "--source", "shop")
    (two.folder / "calm.yaml").write_text(FILE + "health: { off: [no_relay] }\n")
    assert both("two.yaml") == ("healthy", [])
    two.run("publish", *args, "--type", "a", "--data", "{}")
    assert both("two.yaml") == ("degraded", ["no_target"])
    two.run("relay", *args, "--until-idle")
    assert both("two.yaml") == ("unhealthy", ["no_relay"])
    assert both("calm.yaml") == ("healthy", [])
    two.run("publish", *args, "--type", "a", "--data", "{}")
    assert "shop  unhealthy" in two.run("status", *args).out
    two.run("relay", *args, "--once")
    assert "shop  idle: no relay runs now; " in two.run("status", *args).out
    # one that died instead of ending holds its lane still
    sqlite3.connect(two.folder / "shop.db", isolation_level=None).execute("UPDATE outbox_lane SET owner = 'x', lease_until = 1")
    assert "shop  unhealthy" in two.run("status", *args).out
    sqlite3.connect(two.folder / "shop.db", isolation_level=None).execute(
        "INSERT INTO outbox_message (type, payload) VALUES ('a', '{broken')")
    two.run("relay", *args, "--until-idle", code=1)
    assert both("calm.yaml") == ("unhealthy", ["failed"])


def test_since_is_not_told_where_one_look_cannot_know(two):
    args = ("--config", "two.yaml", "--source", "shop")
    two.run("relay", *args, "--until-idle")
    assert [f["since"] for f in two.run("alerts", *args, "--json", code=1).json["findings"]] == [None]
    row = next(line for line in two.run("alerts", *args, code=1).out.splitlines() if "no_relay" in line)
    assert row.split()[-1] == "-"
    # the audit knows since when it is paused
    two.run("pause", "events", *args, "--reason", "test")
    told = {f["rule"]: f["since"] for f in two.run("alerts", *args, "--json", code=1).json["findings"]}
    assert told["no_relay"] is None and told["paused"] is not None


def test_the_command_in_the_log_runs_with_several_sources(two):
    args = ("--config", "two.yaml", "--source", "shop")
    sqlite3.connect(two.folder / "shop.db", isolation_level=None).execute(
        "INSERT INTO outbox_message (type, payload) VALUES ('a', '{broken')")
    said = two.run("relay", "--config", "two.yaml", "--until-idle", code=1).err
    command = re.search(r"details: outbox (list .*)", said)[1].split()
    assert command[-4:] == list(args)
    assert len(two.run(*command, "--json").json["deliveries"]) == 1


def test_suggested_commands_name_the_file(two):
    args = ("--config", "two.yaml", "--source", "shop")
    assert "outbox relay --config two.yaml" in " ".join(two.run("list", *args).out.split())
    sqlite3.connect(two.folder / "shop.db", isolation_level=None).execute(
        "INSERT INTO outbox_message (type, payload) VALUES ('a', '{broken')")
    two.run("relay", *args, "--until-idle", code=1)
    assert "--target events --config two.yaml --source shop" in " ".join(two.run("status", *args).out.split())


def test_a_password_is_in_the_file_only(two):
    """What people see has no URL with a secret in it, neither in errors nor in suggestions."""
    (two.folder / "secret").write_text("hunter2\n")
    (two.folder / "secret").chmod(0o600)
    (two.folder / "pg.yaml").write_text(FILE.replace('"sqlite:shop.db"\n', '"postgres://app@127.0.0.1:1/shop"\n    password: file:secret\n'))
    for args in (("list",), ("status",), ("status", "--json"), ("requeue", "--state", "failed", "--dry-run")):
        ran = two.run(*args, "--config", "pg.yaml", "--source", "shop", code=None)
        assert ran.code in (2, 5) and "hunter2" not in ran.out + ran.err, str(ran)
