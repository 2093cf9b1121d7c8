# SPDX-License-Identifier: Apache-2.0
"""status, list, show, tail, audit."""
import json
import re
import signal
import time

from shell import end, until


def test_status_without_targets(shop):
    assert "idle: no target is registered" in shop.run("status").out
    shop.insert()
    assert "no targets" in shop.run("status").out
    told = shop.run("status", "--json").json
    assert (told["messages"], told["targets"]) == (1, [])


def test_status_counts(two):
    for i in range(3):
        two.insert(key=str(i))
    two.insert(payload="{broken")
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)
    told = {t["name"]: t for t in two.run("status", "--json").json["targets"]}
    assert (told["events"]["delivered"], told["events"]["failed"], told["events"]["lag"]) == (3, 1, 0)
    assert (told["partner"]["pending"], told["partner"]["state"]) == (4, "no relay")
    assert told["partner"]["oldest"].endswith("Z") and told["partner"]["oldest_age"] >= 0
    assert told["events"]["delivered_last_minute"] == 3
    assert [lane["lane"] for lane in told["events"]["lanes"]] == [0]
    text = two.run("status").out
    for word in ("TARGET", "PENDING", "SENDING", "WAITING", "PARKED", "FAILED", "OLDEST", "OWNER", "LEASE"):
        assert word in text
    assert "events has failed deliveries: outbox list --state failed" in text


def test_status_shows_who_works(shop):
    relay = shop.start("relay", "--to", "events=file:out.jsonl", "--instance", "relay-a")
    try:
        def owner():
            targets = shop.run("status", "--json").json["targets"]
            return targets and targets[0]["lanes"][0]["live"] and targets[0]["lanes"][0]["owner"]
        assert until(owner, "a lane with an owner").startswith("relay-a")
        assert "relay-a" in shop.run("status").out
    finally:
        code, _, _ = end(relay)
    assert code == 0


def test_status_watch_ends_with_a_signal(shop):
    watch = shop.start("status", "--watch", "--every", "50ms", "--json")
    first = [json.loads(watch.stdout.readline()) for _ in range(2)]
    assert all("targets" in line for line in first)
    assert end(watch, signal.SIGINT)[0] == 0


def test_list_filters(two):
    two.insert(type="order.placed", key="a", id="m1")
    two.insert(type="order.paid", key="b", id="m2", payload="{broken")
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)

    def ids(*args):
        rows = two.run("list", "--json", *args).json["deliveries"]
        return [(r["id"], r["target"]) for r in rows]
    assert ids() == [("m1", "events"), ("m1", "partner"), ("m2", "events"), ("m2", "partner")]
    assert ids("--state", "failed") == [("m2", "events")]
    assert ids("--state", "delivered") == [("m1", "events")]
    assert ids("--target", "partner") == [("m1", "partner"), ("m2", "partner")]
    assert ids("--why", "new", "--key", "b") == [("m2", "partner")]
    assert ids("--state", "new", "--type", "*.placed") == [("m1", "partner")]
    assert ids("--type", "nothing.*") == []
    text = two.run("list", "--state", "failed").out
    assert "m2" in text and "order.paid" in text and "STATE" not in text
    assert "no deliveries match" in two.run("list", "--type", "nothing.*").out


def test_list_pages(shop):
    ids = [shop.insert(key=str(i)) for i in range(25)]
    shop.relay()
    seen, cursor = [], None
    while True:
        page = shop.run("list", "--json", "--limit", "10", *(["--after", cursor] if cursor else [])).json
        seen += [row["id"] for row in page["deliveries"]]
        cursor = page["next"]
        if not cursor:
            break
        assert len(page["deliveries"]) == 10
    assert seen == ids
    assert [r["id"] for r in shop.run("list", "--all", "--limit", "7", "--json").json["deliveries"]] == ids
    assert "--after" in shop.run("list", "--limit", "10").out
    text = shop.run("list", "--all", "--limit", "10").out
    assert text.count("SINCE") == 1 and all(i in text for i in ids)
    assert shop.run("list", "--after", "nonsense", "--json", code=2).json["error"]


def test_show(shop):
    message = shop.fail(type="order.placed", key="131")[0]
    text = shop.run("show", message, "--payload").out
    for part in ("order.placed", "131", "{broken", "to events: failed", "error", "outbox discard"):
        assert part in text, text
    told = shop.run("show", message, "--json").json
    assert told["deliveries"][0]["state"] == "failed" and told["deliveries"][0]["error"]
    assert told["history"] == []
    shop.run("requeue", message, "--reason", "repaired", "--actor", "bob")
    history = shop.run("show", message, "--json").json["history"]
    assert (history[0]["actor"], history[0]["action"], history[0]["reason"]) == ("bob", "requeue", "repaired")
    assert "by bob: repaired" in " ".join(shop.run("show", message).out.split())


def test_show_indents_json_without_touching_numbers(shop):
    shop.insert(id="j", payload='{"total":99.50,"big":123456789012345678901234567890,"e":{},"l":[1,[]]}')
    text = shop.run("show", "j", "--payload").out
    assert '"total": 99.50,' in text and "123456789012345678901234567890" in text
    assert '"e": {},' in text and "[]" in text


def test_payloads_are_masked_unless_asked_for(shop):
    shop.run("publish", "--type", "order.placed", "--key", "42", "--id", "m", "--header", "tenant=hunter2",
             "--data", '{"card":"4111hunter2"}')
    shop.insert(id="bad", payload='{"card": hunter2}')
    shop.insert(id="bytes", payload="hunter2", content_type="text/plain")
    shop.relay(code=1)
    for message in ("m", "bad", "bytes"):
        for args in (["show", message], ["show", message, "--json"], ["list"], ["list", "--json"], ["audit"], ["status"]):
            ran = shop.run(*args)
            assert "hunter2" not in ran.out + ran.err and "aHVudGVyM" not in ran.out, str(ran)
        assert "hunter2" in shop.run("show", message, "--payload").out
        assert "hunter2" in shop.run("show", message, "--payload", "--json").out
        assert "hunter2" in shop.run("show", message, "--full").out
    text = shop.run("show", "m").out
    assert "--payload shows it" in text and "tenant: ***" in text and "22 bytes" in text
    told = shop.run("show", "m", "--json").json["message"]
    assert "payload" not in told and told["payload_left_out"] == "masked" and told["headers"] == {"tenant": "***"}
    assert (told["size"], told["key"]) == (22, "42")


def test_show_cuts_long_payloads(shop):
    shop.insert(id="long", payload=json.dumps(list(range(100))))
    assert "--full shows all" in shop.run("show", "long", "--payload").out
    assert "99" in shop.run("show", "long", "--full").out
    assert shop.run("show", "long", "--raw-payload", "--json", code=2)
    assert 'nobody' in shop.run("show", "nobody", code=3).err


def test_tail(two):
    tail = two.start("tail", "--json", "--limit", "2", "--target", "events")
    assert b"waiting for deliveries" in tail.stderr.readline()
    ids = [two.insert(), two.insert()]
    two.run("relay", "--to", "events=file:out.jsonl", "--to", "partner=null:", "--until-idle")
    out, _ = tail.communicate(timeout=120)
    rows = [json.loads(line) for line in out.splitlines()]
    assert tail.returncode == 0
    assert [(r["id"], r["target"], r["state"]) for r in rows] == [(i, "events", "delivered") for i in ids]
    people = two.start("tail")
    people.stderr.readline()
    message = two.insert(key="k")
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    line = people.stdout.readline().decode()
    assert message in line and "delivered" in line and "events" in line and len(line) <= 81
    assert end(people, signal.SIGINT)[0] == 0
    assert two.run("tail", "--target", "evnets", code=3).err.count("did you mean events?")


def test_audit(shop):
    assert "no operator has acted yet" in shop.run("audit").out
    one, two = shop.fail(2)
    shop.run("discard", one, "--reason", "test data")
    shop.run("requeue", two)
    rows = shop.run("audit", "--json").json["audit"]
    assert [(r["action"], r["id"]) for r in rows] == [("requeue", two), ("discard", one)]
    assert rows[0]["actor"].startswith("alice@")
    assert [r["id"] for r in shop.run("audit", one, "--json").json["audit"]] == [one]
    assert len(shop.run("audit", "--limit", "1", "--json").json["audit"]) == 1
    text = shop.run("audit").out
    assert "test data" in text and "before: state failed" in text


def test_numbers_in_json_are_plain(two):
    for _ in range(5):
        two.insert()
    two.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    text = two.run("status", "--json", env={"LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"}).out
    text += two.run("policy", "list", "--json").out
    # outside of strings: no exponent, three decimals at most
    numbers = re.findall(r"[:\[,](-?\d[^,\]}]*)", re.sub(r'"[^"]*"', '""', text))
    assert len(numbers) > 50
    for number in numbers:
        assert re.fullmatch(r"-?\d+(\.\d{1,3})?", number), number
    told = json.loads(text.splitlines()[0])
    assert told["targets"][0]["rate"] == 0.083
    assert all(isinstance(lane["receipts"], int) for lane in told["targets"][0]["lanes"])


def test_what_is_due_later_is_deferred_at_once(shop):
    """No relay has read it yet. The views say the same."""
    shop.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    late, now = shop.insert(due_at=int((time.time() + 3600) * 1e6)), shop.insert()
    rows = shop.run("list", "--json").json["deliveries"]
    assert [(row["id"], row["why"]) for row in rows] == [(late, "deferred"), (now, "new")]
    assert [row["id"] for row in shop.run("list", "--why", "deferred", "--json").json["deliveries"]] == [late]
    assert [row["id"] for row in shop.run("list", "--why", "new", "--json").json["deliveries"]] == [now]
    with shop.db() as db:
        assert db.execute("SELECT why FROM outbox_delivery ORDER BY seq").fetchall() == [("deferred",), ("new",)]
        assert db.execute("SELECT pending, deferred FROM outbox_backlog").fetchall() == [(2, 0)]
    told = shop.run("status", "--json").json["targets"][0]
    assert (told["pending"], told["deferred"]) == (2, 0)  # PENDING: what nobody has read
    assert "discarded 1" in shop.run("discard", "--why", "deferred", "--reason", "r", "--yes").out
    shop.run("relay", "--to", "events=file:out.jsonl", "--until-idle")
    assert [line["id"] for line in shop.lines()] == [now]


def test_a_relay_that_was_killed_runs_as_long_as_its_lease(shop):
    relay = shop.start("relay", "--to", "events=file:out.jsonl", "--lease", "1s")
    shop.insert()
    until(lambda: len(shop.lines()) == 1, "the first message")
    relay.kill()
    relay.wait()
    until(lambda: shop.run("status", "--json").json["targets"][0]["state"] == "no relay", "the end of its lease")
    said = " ".join(shop.run("status").out.split())
    assert "unhealthy" in said and "events: no relay works on it: no relay holds its lane; what to do: outbox help alert no_relay" in said


def test_a_target_that_nobody_needs_is_told(shop):
    """Named once by mistake, it stays registered, and what is published waits for it."""
    shop.run("relay", "--to", "events=null:", "--to", "evnts=null:", "--until-idle")
    drop = "outbox target drop evnts"
    relay = shop.start("relay", "--to", "events=file:out.jsonl")
    try:
        shop.insert()
        until(lambda: len(shop.lines()) == 1, "the message")
        assert "evnts has no relay; if nobody needs it: " + drop in shop.run("status").out
        assert any(f["text"].endswith(f"if nobody needs it: {drop} --reason WHY") for f in shop.run("doctor", "--json", code=None).json["findings"])
    finally:
        end(relay)
    assert drop not in shop.run("status").out, "nobody works now: that is another matter"
    shop.run("target", "drop", "evnts", "--reason", "a typing mistake", "--yes")
    assert "evnts" not in shop.run("status").out + shop.run("doctor", code=None).out


def test_show_tells_the_failed_attempts(shop):
    shop.insert(id="m1", payload="{broken")
    shop.insert(id="m2")
    for _ in range(2):
        shop.run("relay", "--to", "events=file:out.jsonl", "--until-idle", code=1)
        shop.run("requeue", "m1")
    tries = shop.run("show", "m1", "--json").json["failed_attempts"]
    assert [(t["target"], t["attempt"], t["verdict"], t["native"]) for t in tries] == [("events", 1, "rejected", 0)] * 2
    assert all("not JSON" in t["reason"] and "answer" not in t for t in tries) and tries[0]["at"] < tries[1]["at"]
    text = shop.run("show", "m1").out
    assert len(re.findall(r"20..-..-..T\S+Z attempt 1, rejected: ", " ".join(text.split()))) == 2
    assert shop.run("show", "m2", "--json").json["failed_attempts"] == []
    with shop.db() as db:  # as a broker that answers would have left it
        db.execute("UPDATE outbox_attempt SET native = 422, answer = 'no such\norder: \x1b[31m'")
    masked = shop.run("show", "m1").out
    assert "rejected 422:" in masked and "it answered 20 bytes: --payload shows them" in masked and "no such" not in masked
    assert "no such\n    order: \\x1b[31m" in shop.run("show", "m1", "--payload").out
    assert "answer" not in shop.run("show", "m1", "--json").json["failed_attempts"][0]
    assert shop.run("show", "m1", "--json", "--payload").json["failed_attempts"][0]["answer"] == "no such\norder: \x1b[31m"


def test_alerts_link_to_what_exists(shop):
    """The installed page is not there: the command prints its section."""
    shop.fail()
    (shop.folder / "book.md").write_text("# ours\n")
    (shop.folder / "outbox.yaml").write_text(
        f"sources: [{{ name: app, store: '{shop.url}' }}]\ntargets: [{{ name: events, to: 'file:out.jsonl' }}]\n"
        "health: { runbook: 'file:///nowhere/runbook.md' }\n")
    told = shop.run("alerts", "--config", "outbox.yaml", code=1, people=False).out
    assert "\n outbox help alert failed\n" in told and "nowhere" not in told
    shop.run("help", "alert", "failed")
    page = f"file://{shop.folder}/book.md"
    told = shop.run("alerts", "--config", "outbox.yaml", env={"OUTBOX_HEALTH_RUNBOOK": page}, code=1, people=False).out
    assert f"{page}#failed" in "".join(line.strip() for line in told.splitlines())


def test_a_former_option_is_taken_and_not_told(shop):
    assert shop.run("keys", "--blocked").out == shop.run("keys").out
    assert "--blocked" not in shop.run("keys", "--help").out
    assert "blocked" not in [o["name"] for o in shop.run("keys", "--help", "--json").json["options"]]
