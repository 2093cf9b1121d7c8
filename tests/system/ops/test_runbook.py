# SPDX-License-Identifier: Apache-2.0
"""Each alert is staged, the runbook's commands are run as they stand, and the alert ends."""
import os
import re
import signal
import urllib.request

import subprocess

import pytest

from console import free_port
from places import pgshop
from recorder import Recorder
from runbook import Redis, Site, sections
from shell import until

SECTIONS = sections()
LOOK, OVER = SECTIONS["Before you begin"]["look"][0], SECTIONS["Before you begin"]["over"][0]
TRIED = set()


@pytest.fixture
def site(tmp_path):
    made = []

    def make(**how):
        made.append(Site(tmp_path, **how))
        return made[-1]

    yield make
    for s in made:
        s.systemctl("stop")


@pytest.fixture
def redis(tmp_path):
    if Redis.missing():
        pytest.skip("redis is not installed")
    made = Redis(tmp_path)
    made.start()
    yield made
    made.stop()


def find_cause(site, alert, says):
    """The page's looks run, and show the cause to somebody who knows nothing."""
    site.look(LOOK)
    shown = "".join(site.look(block) for block in SECTIONS[alert]["cause"])
    assert says in shown, f"{alert}: nothing says {says!r} in\n{shown}"


def recover(site, alert, tag="recover"):
    TRIED.add((alert, tag))
    for block in SECTIONS[alert][tag]:
        site.sh(block)


def see_all_well(site):
    until(lambda: not site.alerts(), f"all to be well: {site.alerts()}")
    assert "all is well" in site.sh(OVER)


def see_it_end(site, alert):
    until(lambda: alert not in site.alerts(), f"the end of {alert}")
    until(lambda: site.resolved(alert), f"the relay to say that {alert} is over; {site.log()}")
    see_all_well(site)


def start_and_deliver(site):
    site.systemctl("start")
    site.publish()
    until(lambda: site.status()["delivered"] == 1, "a delivery")


def test_failed(site):
    s = site()
    s.systemctl("start")
    s.publish(payload="not json")
    until(lambda: s.fired("failed"), "the alert")
    assert "failed" in s.alerts()
    s.env["ID"] = s.run("list", "--state", "failed", "--json").json["deliveries"][0]["id"]
    find_cause(s, "failed", "JSON")
    recover(s, "failed")
    # it can never succeed
    until(lambda: s.status()["failed"] == 1, "that it fails again")
    recover(s, "failed", "recover-discard")
    see_it_end(s, "failed")
    discarded = s.env["ID"]
    s.publish(payload="not json")
    until(lambda: s.status()["failed"] == 1, "another one that failed")
    s.env["ID"] = s.run("list", "--state", "failed", "--json").json["deliveries"][0]["id"]
    recover(s, "failed", "recover-amend")
    until(lambda: s.status()["delivered"] == 1, "the corrected one")
    s.env["ID"] = discarded
    s.env["KEY"] = "nobody"
    for block in SECTIONS["Personal data"]["redact"]:
        s.sh(block)
    assert "not json" not in s.run("show", s.env["ID"], "--full").out


def test_outage(site, redis):
    s = site(target=f"to: 'redis://127.0.0.1:{redis.port}/?stream=events'", relay="breaker_max: 1s")
    start_and_deliver(s)
    redis.stop()
    s.publish()
    until(lambda: s.fired("outage"), "the alert")
    assert "outage" in s.alerts()
    find_cause(s, "outage", "unreachable")
    redis.start()
    recover(s, "outage")
    until(lambda: s.status()["delivered"] == 2, "the delivery of what waited")
    see_it_end(s, "outage")


def test_no_relay(site):
    s = site()
    start_and_deliver(s)
    s.systemctl("stop")
    assert s.alerts() == {"no_relay"}
    find_cause(s, "no_relay", "inactive (dead)")
    recover(s, "no_relay")
    see_all_well(s)


def test_lanes_idle(site):
    s = site(lanes=2, relay="lease: 10m")
    s.up()
    with s.db() as db:
        db.execute("UPDATE outbox_lane SET lease_until = 0 WHERE lane = 1")
    until(lambda: s.fired("lanes_idle"), "the alert")
    find_cause(s, "lanes_idle", "events  none")
    recover(s, "lanes_idle")
    see_all_well(s)


def test_source_down(site):
    s = site()
    s.path.rename(s.folder / "elsewhere.db")
    s.systemctl("start")
    until(lambda: s.fired("source_down"), "the alert")
    assert s.alerts() == {"source_down"}
    find_cause(s, "source_down", "shop.db")
    (s.folder / "elsewhere.db").rename(s.path)
    recover(s, "source_down")
    see_it_end(s, "source_down")


def test_relay_down(site):
    s = site()
    start_and_deliver(s)
    # a new target that starts in a time to come
    s.edit("targets:\n", "targets:\n  - { name: audit, start: '2999-01-01T00:00:00Z', to: 'file:audit.jsonl' }\n")
    s.systemctl("restart")
    until(lambda: s.fired("relay_down"), "the alert")
    find_cause(s, "relay_down", "is in the future")
    s.edit("'2999-01-01T00:00:00Z'", "now")
    recover(s, "relay_down")
    see_it_end(s, "relay_down")


def test_no_target(site):
    s = site()
    s.publish()
    assert s.alerts() == {"no_target"}
    find_cause(s, "no_target", "no targets")
    recover(s, "no_target")
    until(lambda: not s.alerts(), "all to be well")
    until(lambda: s.status()["delivered"] == 1, "the message to be delivered")


def test_cleanup(site):
    s = site(relay="archive: old, purge_interval: 100ms, retain_delivered: 100ms")
    start_and_deliver(s)
    until(lambda: s.fired("cleanup"), "the alert")
    find_cause(s, "cleanup", "; nothing is removed")
    (s.folder / "old").mkdir()
    recover(s, "cleanup")
    until(lambda: s.resolved("cleanup"), "the relay to say that it is over")
    see_all_well(s)


def test_refused(site, tmp_path):
    """A database that was restored from a dump, with a sequence that begins anew."""
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    pg = pgshop.PgShop(tmp_path)
    s = site(store=pg.url, lanes=2)
    try:
        s.up()
        pg.insert()
        until(lambda: s.status()["delivered"] == 1, "a delivery")
        s.systemctl("stop")
        pg.sql("ALTER SEQUENCE outbox_message_seq_seq RESTART")
        s.systemctl("start")
        until(lambda: s.fired("refused"), "the alert")
        assert "refused" in s.alerts()
        find_cause(s, "refused", "outbox realign")
        recover(s, "refused", "recover-postgres")
        see_all_well(s)
    finally:
        s.systemctl("stop")
        pg.drop()


def test_unserved(site):
    """Another relay was here before and sends the target elsewhere."""
    s = site()
    other = s.start("relay", "--set", "targets.events.to=file:other.jsonl", stderr=subprocess.DEVNULL)
    try:
        until(lambda: s.status().get("state") == "running", "the other relay")
        s.systemctl("start")
        until(lambda: s.fired("unserved"), f"the alert: {s.log()}")
        find_cause(s, "unserved", "other.jsonl; give both the same")
        s.edit("to: file:events.jsonl", "to: file:other.jsonl")
        recover(s, "unserved")
        see_it_end(s, "unserved")
    finally:
        other.terminate()
        other.wait()


def test_overdue_and_paused(site):
    s = site(health="overdue: 500ms")
    s.up()
    s.run("pause", "events", "--reason", "maintenance until 18:00")
    s.publish()
    until(lambda: s.fired("overdue") and s.fired("paused"), "the alerts")
    assert s.alerts() == {"overdue", "paused"}
    find_cause(s, "overdue", "maintenance until 18:00")
    find_cause(s, "paused", "maintenance until 18:00")
    recover(s, "overdue")
    see_it_end(s, "overdue")
    s.run("pause", "events", "--reason", "again")
    until(lambda: s.alerts() == {"paused"}, "the pause")
    recover(s, "paused")
    see_it_end(s, "paused")


def test_closed(site):
    """A receiver says that it is gone, and comes back."""
    gone = [True]
    with Recorder(lambda request: (410, [], b"we moved") if gone[0] else None) as receiver:
        s = site(target=f"to: 'http://127.0.0.1:{receiver.port}/'\n    allow_private: [127.0.0.1]")
        s.systemctl("start")
        s.publish()
        until(lambda: s.fired("closed"), "the alert")
        assert s.alerts() == {"closed"}
        find_cause(s, "closed", "410: we moved")
        assert "target.closed" in s.log() and len(receiver.requests) == 1
        # a relay that starts again does not ask again
        s.systemctl("restart")
        s.publish()
        until(lambda: s.status()["pending"] == 2, "both to wait")
        assert s.alerts() == {"closed"} and len(receiver.requests) == 1
        gone[0] = False
        recover(s, "closed")
        until(lambda: s.status()["delivered"] == 2, "what waited")
        see_it_end(s, "closed")
        assert s.run("list", "--json").json["deliveries"][0]["attempts"] == 0


@pytest.mark.parametrize("alert", ["backlog", "pending"])
def test_backlog(site, alert):
    s = site(health="backlog: 5, pending: 3, pending_for: 300ms",
             target="to: file:events.jsonl\n    batch: 1\n    order: none\n    poll: 1h")
    s.edit("poll: 50ms", "poll: 1h")
    s.up()
    s.run("pause", "events", "--reason", "to let it pile up")
    s.publish(count=50)
    until(lambda: s.fired(alert), "the alert")
    assert alert in s.alerts()
    find_cause(s, alert, "50")
    s.run("resume", "events")
    s.edit("batch: 1\n", "batch: 500\n")
    s.edit("    poll: 1h", "    poll: 50ms")
    recover(s, alert)
    see_it_end(s, alert)


def test_sending(site, redis):
    s = site(health="sending: 1s", target=f"to: 'redis://127.0.0.1:{redis.port}/?stream=events'",
             relay="lease: 10m, publish_timeout: 2m, shutdown_timeout: 1s")
    start_and_deliver(s)
    redis.process.send_signal(signal.SIGSTOP)
    s.publish()
    until(lambda: s.fired("sending"), "the alert")
    find_cause(s, "sending", "order.placed")
    redis.process.send_signal(signal.SIGCONT)
    recover(s, "sending")
    until(lambda: s.status()["delivered"] == 2, "the delivery")
    see_all_well(s)


def test_latency(site, redis):
    s = site(health="latency: 1s", target=f"to: 'redis://127.0.0.1:{redis.port}/?stream={{type}}'")
    for stream in ("order.slow", "order.stuck"):
        redis.cli("SET", stream, "no stream")
    s.up()
    s.publish(type_="order.slow")
    s.publish(type_="order.stuck")
    until(lambda: s.status()["oldest_age"] > 2, "a message to be two seconds old")
    redis.cli("DEL", "order.slow")
    until(lambda: s.fired("latency"), "the alert")
    find_cause(s, "latency", "retrying")
    redis.cli("DEL", "order.stuck")
    until(lambda: s.resolved("latency"), "the end")


def test_what_people_put_off_is_not_late(site):
    """Due later, failed and requeued, paused: none of it is overdue or slow when it leaves at once in the end."""
    s = site(health="latency: 1s, overdue: 1s")
    s.up()
    with s.db() as db:
        now = "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000"
        db.execute("INSERT INTO outbox_message (type, payload, created_at, due_at)"
                   f" VALUES ('a', '{{}}', {now} - 3600000000, {now} + 300000),"
                   f" ('b', 'no json', {now} - 3600000000, NULL)")
    until(lambda: s.status()["delivered"] == 1 and s.status()["failed"] == 1, "one delivery, one failure")
    until(lambda: s.alerts() == {"failed"}, "nothing to be late")
    s.run("pause", "events", "--reason", "to let it grow old")
    s.run("requeue", "--state", "failed", "--target", "events", "--yes")
    assert s.status()["oldest_age"] < 60
    s.publish()
    s.run("resume", "events")
    until(lambda: s.status()["delivered"] == 2, "the last")
    assert not s.fired("latency") and not s.fired("overdue")


def test_retry_rate(site, redis):
    s = site(target=f"to: 'redis://127.0.0.1:{redis.port}/?stream={{type}}'")
    redis.cli("SET", "order.placed", "no stream")
    s.up()
    s.publish(count=30)
    until(lambda: s.fired("retry_rate"), "the alert")
    find_cause(s, "retry_rate", "WRONGTYPE")
    redis.cli("DEL", "order.placed")
    recover(s, "retry_rate")
    until(lambda: s.status()["delivered"] == 30, "the deliveries")
    see_it_end(s, "retry_rate")


def test_gone(site):
    s = site()
    s.up()
    with open(s.folder / "relay.pid", encoding="ascii") as f:
        os.kill(int(f.read()), signal.SIGKILL)
    find_cause(s, "gone", "inactive (dead)")
    recover(s, "gone")
    until(lambda: not s.alerts(), "all to be well")


def test_config_refused(site):
    s = site()
    port = free_port()
    s.config.write_text(s.config.read_text() + f"admin: {{ listen: '127.0.0.1:{port}', tokens: tokens, open_metrics: true }}\n")

    def taken():
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            return re.search(rb"^outbox_config_last_reload_successful (\d)$", answer.read(), re.M)[1] == b"1"

    s.up()
    until(taken, "the metric")
    s.edit("poll: 50ms", "pole: 50ms")
    s.systemctl("reload")
    until(lambda: "config.refused" in s.log(), "the reload to be refused")
    until(lambda: not taken(), "the metric to say so")
    # every command that reads the file ends with its mistakes, so that the usual looks are of no use
    shown = "".join(s.sh(block + "true", flags="-uc") for block in SECTIONS["config_refused"]["cause"])
    assert "outbox.yaml:5:10: relay.pole: there is no such key" in shown, shown
    s.publish()
    until(lambda: s.run("status", "--store", "sqlite:shop.db", "--json").json["targets"][0]["delivered"] == 1,
          "a delivery by what it had")
    s.edit("pole: 50ms", "poll: 50ms")
    recover(s, "config_refused")
    until(lambda: "config.reloaded" in s.log(), "the reload")
    until(taken, "the metric to say so")
    # a file that is good, and a database that does not know the time at which the new target begins
    s.edit("targets:\n", "targets:\n  - { name: late, to: 'null:', start: '2999-01-01T00:00:00Z' }\n")
    s.systemctl("reload")
    until(lambda: not taken(), "the metric to say so")
    shown = "".join(s.look(block) for block in SECTIONS["config_refused"]["cause"])
    assert "late" in shown.split("config.refused")[-1] and "start" in shown.split("config.refused")[-1], shown
    s.edit("'2999-01-01T00:00:00Z'", "now")
    recover(s, "config_refused")
    until(taken, "the metric to say so")


def test_every_recovery_was_tried():
    """Also when somebody adds one."""
    wanted = {(alert, tag) for alert, blocks in SECTIONS.items() for tag in blocks if tag.startswith("recover")}
    if Redis.missing() or pgshop.reason_to_skip() or len(TRIED) < 3:
        pytest.skip("not all of the tests before did run")
    assert wanted == TRIED
