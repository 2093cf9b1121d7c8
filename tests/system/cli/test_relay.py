# SPDX-License-Identifier: Apache-2.0
"""relay: targets, modes, exit codes, signals."""
import json
import re
import signal
import time

import pytest

from shell import end, until


def test_stdout_is_for_a_target(shop):
    message = shop.insert(payload='{"n":1}')
    ran = shop.run("relay", "--to", "screen=stdout:", "--until-idle", "--envelope", "screen=structured",
                   people=False)
    assert json.loads(ran.out)["id"] == message
    assert "delivered 1, failed 0" in ran.err


def test_the_exit_code_says_whether_something_failed(shop):
    shop.insert()
    assert shop.relay("--json").json["counts"]["delivered"] == 1
    shop.insert(payload="{broken")
    told = shop.relay("--json", code=1).json["counts"]
    assert (told["delivered"], told["failed"]) == (0, 1)
    assert shop.relay("--json").json["counts"]["failed"] == 0
    shop.insert(payload="{broken")
    shop.run("relay", "--to", "events=file:out.jsonl", "--once", code=1)
    shop.insert()
    shop.run("relay", "--to", "events=file:out.jsonl", "--once")


def test_once_says_when_a_target_is_out_of_reach(shop):
    message = shop.insert()
    ran = shop.run("relay", "--to", "events=file:/nowhere/at/all.jsonl", "--once", code=None)
    assert ran.code == 2 and "/nowhere" in ran.err and "create the directory first" in ran.err
    assert ran.err.count("/nowhere") == 2, ran.err  # where it goes, and what is wrong
    assert "next try" not in ran.err and "breaker" not in ran.err
    row = shop.run("show", message, "--json").json["deliveries"][0]
    assert (row["state"], row["attempts"]) == ("pending", 0)


def test_the_exit_code_of_a_wrong_file(shop):
    shop.insert()
    (shop.folder / "folder").mkdir()
    (shop.folder / "words").write_text("hello\n")
    for url in ("file:/nowhere/x.jsonl", "file:folder", "file:/dev/null", "file:words"):
        shop.run("relay", "--to", f"events={url}", "--once", code=2)


def test_once_tells_of_a_target_once_however_many_work_for_it(shop):
    shop.insert()
    ran = shop.run("relay", "--to", "one=redis://127.0.0.1:1/?stream=s", "--to", "two=redis://127.0.0.1:2/?stream=s",
                   "--workers", "3", "--once", code=5)
    assert ran.err.count("127.0.0.1:1: cannot connect") == 1, ran.err
    assert ran.err.count("127.0.0.1:2: cannot connect") == 1, ran.err


def test_once_tells_of_every_target_out_of_reach(shop):
    shop.insert()
    ran = shop.run("relay", "--to", "one=file:/nowhere/one.jsonl", "--to", "two=file:/nowhere/two.jsonl", "--once",
                   code=2)
    said = ran.err.splitlines()
    assert sum("one.jsonl" in line for line in said) == 2 and sum("two.jsonl" in line for line in said) == 2, ran.err


def test_routing(shop):
    placed = shop.insert(type="order.placed")
    shop.insert(type="mail.sent")
    public = shop.insert(type="order.paid", published=1)
    shop.run("relay", "--to", "all=file:all.jsonl", "--to", "orders=file:orders.jsonl", "--match", "orders=order.*",
             "--to", "out=file:out.jsonl", "--envelope", "out=external", "--start", "orders=oldest",
             "--start", "out=oldest", "--until-idle")
    assert len(shop.lines("all.jsonl")) == 3
    assert [e["id"] for e in shop.lines("orders.jsonl")] == [placed, public]
    assert [e["id"] for e in shop.lines("out.jsonl")] == [public]


def test_routing_by_headers(shop):
    shop.insert(headers='{"region": "eu-1"}')
    first = shop.insert(headers='{"tenant": "acme", "region": "eu-1"}')
    second = shop.insert(headers='{"REGION": "us", "Tenant": "acme"}')
    shop.insert(headers='{"tenant": "acme", "region": "ap"}')
    options = ["--to", "some=file:out.jsonl", "--match-header", "some=tenant=acme", "--match-header", "some=region=eu-*",
               "--match-header", "some=region=us"]
    shop.run("relay", *options, "--until-idle")
    assert [e["id"] for e in shop.lines()] == [first, second]
    assert [d["id"] for d in shop.run("list", "--target", "some", "--json").json["deliveries"]] == [first, second]
    (shop.folder / "outbox.yaml").write_text(f"""
sources: [{{ name: s, store: "{shop.url}" }}]
targets:
  - {{ name: some, to: "file:out.jsonl", match: {{ headers: [region=us, "region=eu-*", tenant=acme] }} }}
""")
    before = shop.run("target", "list", "--json").json
    shop.run("relay", "--config", "outbox.yaml", "--until-idle")
    assert shop.run("target", "list", "--json").json == before and len(shop.lines()) == 2
    shop.run("relay", "--config", "outbox.yaml", "--set", "targets.some.match.headers=tenant=*", "--until-idle")
    fresh = shop.insert(headers='{"tenant": "x"}')
    shop.run("relay", "--config", "outbox.yaml", "--set", "targets.some.match.headers=tenant=*", "--until-idle")
    assert [e["id"] for e in shop.lines()] == [first, second, fresh]
    told = shop.run("relay", "--to", "some=null:", "--match-header", "some=acme", "--once", code=2).err
    assert '--match-header some: header "acme" is not NAME=GLOB; write tenant=acme, or tenant=* for any value' in told


def test_a_later_target_must_say_where_it_starts(shop):
    shop.insert()
    shop.relay()
    ran = shop.run("relay", "--to", "late=file:late.jsonl", "--until-idle", code=None)
    assert ran.code == 2 and "--start late=oldest or --start late=now" in ran.err
    assert ran.err.count('"late"') == 1 and ran.err.count("target.unserved") == 1, ran.err
    shop.run("relay", "--to", "late=file:late.jsonl", "--start", "late=now", "--until-idle")
    shop.insert()
    shop.run("relay", "--to", "late=file:late.jsonl", "--until-idle")
    assert len(shop.lines("late.jsonl")) == 1


def test_a_daemon_delivers_and_ends_politely(shop):
    relay = shop.start("relay", "--to", "events=file:out.jsonl")
    ids = [shop.insert(key="k") for _ in range(5)]
    until(lambda: len(shop.lines()) == 5, "five deliveries")
    code, out, err = end(relay, signal.SIGTERM)
    assert (code, out) == (0, "")
    assert [e["id"] for e in shop.lines()] == ids
    first, last = err.splitlines()[0], err.splitlines()[-1]
    assert "relay.start" in first and f"{shop.env['OUTBOX_STORE']} -> events (file:out.jsonl)" in first
    assert "delivered 5, failed 0, retried 0" in last
    lanes = shop.run("status", "--json").json["targets"][0]["lanes"]
    assert not lanes[0]["live"]


def test_ctrl_c_finishes_what_is_in_flight_and_a_second_one_leaves(shop):
    for i in range(40):
        shop.insert(key="k", payload=json.dumps("x" * 60000))
    relay = shop.start("relay", "--to", "events=stdout:", "--batch-bytes", "16MiB", "--lease", "60s")

    def sending():
        targets = shop.run("status", "--json").json["targets"]
        return targets and targets[0]["sending"] == 40
    until(sending, "a batch in flight")  # nobody reads the relay's stdout
    relay.send_signal(signal.SIGINT)
    said = []

    def finishing():
        said.append(relay.stderr.readline().decode())
        return "a second signal exits at once" in said[-1]
    until(finishing, "the announcement")
    assert said[-1] == "finishing 1 batch (40 messages); a second signal exits at once\n"
    relay.send_signal(signal.SIGINT)  # at once: timeout(1) signals the process and its group, which is one wish
    time.sleep(0.3)
    assert relay.poll() is None
    relay.send_signal(signal.SIGINT)
    assert relay.wait(timeout=120) == 128 + signal.SIGINT
    relay.communicate()
    assert shop.run("status", "--json").json["targets"][0]["delivered"] == 0


def test_until_idle_interrupted(shop):
    shop.insert()
    relay = shop.start("relay", "--to", "events=file:/nowhere/at/all.jsonl", "--until-idle")
    while "relay.start " not in relay.stderr.readline().decode():
        pass
    code, _, _ = end(relay, signal.SIGTERM)
    assert code == 128 + signal.SIGTERM


def test_outage_is_one_line_and_charges_nothing(shop):
    message = shop.insert()
    folder = shop.folder / "later"
    relay = shop.start("relay", "--to", "events=file:later/out.jsonl")
    try:
        lines = []

        def outage():
            lines.append(relay.stderr.readline().decode())
            return "breaker open" in lines[-1]
        until(outage, "the outage to be told")
        folder.mkdir()
        until(lambda: (folder / "out.jsonl").exists() and shop.lines("later/out.jsonl"), "a delivery")
    finally:
        code, _, err = end(relay)
    assert code == 0 and err.count("breaker open") == 0
    assert shop.run("show", message, "--json").json["deliveries"][0]["attempts"] == 0


def test_every_log_line_has_its_time(shop):
    shop.insert()
    for line in shop.relay().err.splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info  ", line), line


def test_policies_per_target(shop):
    shop.insert()
    shop.relay("--policy", "events=protean")
    ran = shop.run("relay", "--to", "events=file:out.jsonl", "--policy", "protaen", "--once", code=3)
    assert "did you mean protean?" in ran.err


@pytest.mark.sqlite
def test_a_database_that_is_not_there_is_a_mistake(shop):
    for url, words in (("sqlite:/nope/x.db", "folder /nope does not exist"), ("sqlite:none.db", "no database at none.db")):
        ran = shop.run("relay", "--store", url, "--to", "events=null:", code=3)
        assert words in ran.err.splitlines()[-1]


@pytest.mark.sqlite
def test_a_database_that_goes_later_is_waited_for(shop):
    relay = shop.start("relay", "--store", "sqlite:app.db", "--to", "events=file:out.jsonl")
    shop.insert()
    until(lambda: len(shop.lines()) == 1, "the first message")
    (shop.folder / "app.db").rename(shop.folder / "kept.db")
    (shop.folder / "kept.db").rename(shop.folder / "app.db")
    shop.insert()
    until(lambda: len(shop.lines()) == 2, "the second one")
    end(relay)


@pytest.mark.sqlite
def test_a_locked_database_delays_the_start(shop):
    """Somebody holds the write lock for longer than the busy timeout: the relay waits and says so once."""
    shop.insert()
    with shop.db() as locked:
        locked.execute("BEGIN IMMEDIATE")
        relay = shop.start("relay", "--store", "sqlite:app.db?busy=50ms", "--to", "events=file:out.jsonl",
                           "--until-idle")
        assert "locked by another connection" in relay.stderr.readline().decode()
        locked.execute("ROLLBACK")
        _, err = relay.communicate(timeout=60)
    assert relay.returncode == 0, err
    assert b"locked" not in err
    assert len(shop.lines()) == 1


def test_what_is_too_large_is_not_sent(shop):
    fits, large = shop.insert(payload='"' + 98 * "x" + '"'), shop.insert(payload='"' + 1023 * "x" + '"')
    ran = shop.run("relay", "--to", "events=file:out.jsonl", "--max-size", "events=1KiB", "--until-idle", code=1)
    assert f"the last one of message {large}: its payload is larger than max_size; details:" in ran.err
    assert [m["id"] for m in shop.lines()] == [fits]
    told = shop.run("show", large, "--json").json
    assert told["deliveries"][0]["error"] == "the payload has 1,025 bytes, and max_size is 1,024: it was not sent"
    assert [t["verdict"] for t in told["failed_attempts"]] == ["rejected"]
    assert "--max-size events: \"huge\" is not a size" in shop.run(
        "relay", "--to", "events=file:out.jsonl", "--max-size", "events=huge", "--once", code=2).err
