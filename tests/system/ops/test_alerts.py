# SPDX-License-Identifier: Apache-2.0
"""Alerts as a team gets them: a relay with webhooks, things that go wrong, and receivers that go wrong themselves."""
import json
import re
import shutil
import signal
import subprocess
import urllib.request

import pytest

from console import Console, free_port
from receiver import Receiver
from shell import PATIENCE, until

PAYLOAD = "payload-secret-0815"
TOKEN = "token-secret-1234567890"


@pytest.fixture
def receivers():
    made = []

    def make(**how):
        made.append(Receiver(**how))
        return made[-1]

    yield make
    for receiver in made:
        receiver.close()


@pytest.fixture
def console(tmp_path):
    made = []

    def make(hooks, before=None, health="", **how):
        alerts = health + "alerts:\n" + "".join(f"  - {{ {hook} }}\n" for hook in hooks)
        made.append(Console(tmp_path, more=alerts, **how))
        if before:
            before(made[-1])
        return made[-1].up(whole=not before)

    yield make
    for c in made:
        c.down()
        check_log(c)


def check_log(c):
    log = (c.folder / "relay.log").read_text()
    for secret in (PAYLOAD, TOKEN, "url-secret"):
        assert secret not in log, log


def log_of(c):
    return (c.folder / "relay.log").read_text()


def publish(c, payload='{"ok":1}', key="k", source="shop"):
    c.path = c.folder / f"{source}.db"
    with c.db() as db:
        db.execute("INSERT INTO outbox_message (type, key, payload) VALUES ('order.placed', ?, ?)", (key, payload))


def fail_one(c, **how):
    """Text that claims to be JSON and is not fails at once."""
    publish(c, payload=f"not json: {PAYLOAD}", **how)


def discard_failed(c):
    c.run("discard", "--state", "failed", "--reason", "test data", "--yes", "--config", "outbox.yaml")


def test_fire_and_resolve(console, receivers):
    hook = receivers()
    c = console([f'name: on-call, url: "{hook.url}", token: {TOKEN}'])
    fail_one(c)
    hook.await_told("outbox_failed", "firing")
    first = next(p for p in hook.posts if p["alerts"][0]["labels"]["alertname"] == "outbox_failed")
    alert = first["alerts"][0]
    assert alert["labels"] == {"alertname": "outbox_failed", "severity": "critical", "source": "shop", "target": "events"}
    link = alert["annotations"].pop("runbook_url")
    assert re.fullmatch(r"file:///.*/share/doc/outbox/runbook\.md#failed", link), "the page that is installed"
    assert alert["annotations"] == {"summary": "shop/events: failed", "description": "1 failed delivery, the limit is 0"}
    assert (first["version"], first["status"], first["receiver"]) == ("4", "firing", "on-call")
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"
    assert hook.headers[0]["Authorization"] == f"Bearer {TOKEN}"
    # the server, the command and the log say the same
    assert [(f["rule"], f["runbook"]) for f in c.get("/api/alerts").json["findings"]] == [("failed", link)]
    assert [(f["rule"], f["runbook"]) for f in c.cli("alerts", code=1)["findings"]] == [("failed", link)]
    assert log_of(c).count("alert.fired") == 1
    assert re.search(r"details: outbox list --target events --state failed --config \S*outbox.yaml --source shop", log_of(c))
    discard_failed(c)
    hook.await_told("outbox_failed", "resolved")
    last = hook.posts[-1]["alerts"][0]
    assert last["fingerprint"] == alert["fingerprint"] and last["startsAt"] == alert["startsAt"] < last["endsAt"]
    assert hook.told().count(("outbox_failed", "firing", "events")) == 1
    assert "alert.resolved" in log_of(c)
    assert PAYLOAD not in json.dumps(hook.posts)
    now = c.cli("alerts")
    assert (now["level"], now["findings"]) == ("healthy", [])


def test_down_then_up(console, receivers):
    gone = receivers()
    gone.close()
    c = console([f'name: on-call, url: "{gone.url}"'])
    fail_one(c)
    until(lambda: "alert.untold" in log_of(c), "the log to say that nobody was told")
    back = receivers(port=gone.port)
    back.await_told("outbox_failed", "firing")
    until(lambda: "alert.told" in log_of(c), "the log to say that it is told again")
    # one line for the outage, however often it was tried
    assert log_of(c).count("alert.untold") == 1 and log_of(c).count("alert.told") == 1


def test_what_came_and_went_meanwhile_is_told_as_it_is_then(console, receivers):
    hook = receivers()
    hook.status = 500
    c = console([f'name: on-call, url: "{hook.url}"'])
    fail_one(c)
    until(lambda: "alert.untold" in log_of(c), "the first failure")
    discard_failed(c)
    until(lambda: "alert.resolved" in log_of(c), "the end of the alert")
    hook.status = 200
    hook.await_told("outbox_failed", "resolved")
    assert ("outbox_failed", "firing", "events") not in hook.told()


def test_a_slow_one_delays_nobody(console, receivers):
    slow, quick = receivers(), receivers()
    slow.gate.clear()
    c = console([f'name: slow, url: "{slow.url}", timeout: 1h', f'name: quick, url: "{quick.url}"'])
    fail_one(c)
    until(lambda: slow.arrived, "the slow one to be asked")
    quick.await_told("outbox_failed", "firing")
    # looks go on, messages are delivered, the other is told of what comes and goes
    at = c.get("/api/alerts").json["at"]
    publish(c, key="other")
    until(lambda: (c.folder / "events.jsonl").exists() and "order.placed" in (c.folder / "events.jsonl").read_text(),
          "a delivery")
    until(lambda: c.get("/api/alerts").json["at"] > at, "a newer look")
    discard_failed(c)
    quick.await_told("outbox_failed", "resolved")
    assert slow.arrived == 1 and slow.posts == []
    # and the end does not wait for it
    c.down()


def test_redirects_are_not_followed(console, receivers):
    other, hook = receivers(), receivers()
    hook.status, hook.location = 302, other.url
    c = console([f'name: moved, url: "{hook.url}", token: {TOKEN}'])
    fail_one(c)
    until(lambda: "redirects are not followed" in log_of(c), "the log to say so")
    assert other.arrived == 0


def test_only_what_one_asked_for(console, receivers):
    some, everything = receivers(), receivers()
    c = console([f'name: some, url: "{some.url}", rules: [paused, "out*"]', f'name: all, url: "{everything.url}"'])
    fail_one(c)
    everything.await_told("outbox_failed", "firing")
    c.run("pause", "events", "--reason", "maintenance", "--config", "outbox.yaml")
    everything.await_told("outbox_paused", "firing")
    some.await_told("outbox_paused", "firing")
    assert {alert for alert, _, _ in some.told()} == {"outbox_paused"}


def test_still_firing_is_said_again(console, receivers):
    hook = receivers()
    c = console([f'name: on-call, url: "{hook.url}", repeat: 500ms'])
    fail_one(c)
    until(lambda: hook.told().count(("outbox_failed", "firing", "events")) >= 3, "a repetition")


def test_a_reload_changes_who_is_told(console, receivers):
    old, new = receivers(), receivers()
    c = console([f'name: on-call, url: "{old.url}"'])
    fail_one(c)
    old.await_told("outbox_failed", "firing")
    c.config.write_text(c.config.read_text().replace(str(old.port), str(new.port)))
    c.process.send_signal(signal.SIGHUP)
    new.await_told("outbox_failed", "firing")
    discard_failed(c)
    new.await_told("outbox_failed", "resolved")
    assert ("outbox_failed", "resolved", "events") not in old.told()


def test_a_restart_says_it_again(console, receivers):
    hook = receivers()
    c = console([f'name: on-call, url: "{hook.url}"'])
    fail_one(c)
    hook.await_told("outbox_failed", "firing")
    c.down()
    before = len(hook.posts)
    c.up()
    until(lambda: len(hook.posts) > before, "the alert again")
    assert hook.posts[before]["alerts"][0]["fingerprint"] == hook.posts[before - 1]["alerts"][0]["fingerprint"]


def test_a_broken_source_is_told_and_stops_no_other(console, receivers):
    hook = receivers()
    c = console([f'name: on-call, url: "{hook.url}"'], sources=("shop", "bank"),
                before=lambda c: (c.folder / "bank.db").rename(c.folder / "elsewhere.db"))
    hook.await_told("outbox_source_down", "firing", target=None)
    fail_one(c)
    hook.await_told("outbox_failed", "firing")
    (c.folder / "elsewhere.db").rename(c.folder / "bank.db")
    hook.await_told("outbox_source_down", "resolved", target=None)


@pytest.fixture
def alertmanager(tmp_path, receivers):
    """A real one; it passes on to a receiver."""
    binary = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if not binary:
        pytest.skip("alertmanager is not installed")
    receiver, port = receivers(), free_port()
    (tmp_path / "am.yml").write_text(
        "route: { receiver: hook, group_by: ['...'], group_wait: 100ms, group_interval: 1s }\n"
        f"receivers: [{{ name: hook, webhook_configs: [{{ url: '{receiver.url}' }}] }}]\n")
    with open(tmp_path / "am.log", "wb") as log:
        process = subprocess.Popen([binary, f"--config.file={tmp_path}/am.yml", f"--storage.path={tmp_path}/am",
                                    f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
                                   stdout=log, stderr=log)
    receiver.api = f"http://127.0.0.1:{port}/api/v2/alerts"

    def answers():
        try:
            return urllib.request.urlopen(receiver.api).status == 200
        except OSError:
            return False

    until(answers, "alertmanager")
    yield receiver
    process.terminate()
    process.wait(timeout=PATIENCE)


def test_a_real_alertmanager(console, alertmanager):
    c = console([f'name: am, url: "{alertmanager.api}", format: alertmanager'])
    fail_one(c)
    alertmanager.await_told("outbox_failed", "firing")
    alerts = json.load(urllib.request.urlopen(alertmanager.api))
    assert [a["labels"] for a in alerts] == [{"alertname": "outbox_failed", "severity": "critical", "source": "shop",
                                             "target": "events"}]
    # what it sends has the form of what we send ourselves
    assert set(alertmanager.posts[0]) >= {"version", "status", "receiver", "groupLabels", "commonLabels",
                                          "commonAnnotations", "externalURL", "alerts", "truncatedAlerts", "groupKey"}
    discard_failed(c)
    alertmanager.await_told("outbox_failed", "resolved")


def test_a_runbook_of_ones_own(console, receivers):
    hook = receivers()
    c = console([f'name: on-call, url: "{hook.url}"'], health="  runbook: https://wiki.example/outbox\n")
    fail_one(c)
    hook.await_told("outbox_failed", "firing")
    link = "https://wiki.example/outbox#failed"
    told = [a for p in hook.posts for a in p["alerts"] if a["labels"]["alertname"] == "outbox_failed"]
    assert told[0]["annotations"]["runbook_url"] == link
    assert c.get("/api/alerts").json["findings"][0]["runbook"] == link
    assert c.cli("alerts", code=1)["findings"][0]["runbook"] == link
