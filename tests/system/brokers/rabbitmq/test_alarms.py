# SPDX-License-Identifier: Apache-2.0
"""The broker's own alarms, memory and disk, while a relay works: nothing is charged, and all arrives when they are over."""
import contextlib
import sqlite3
import subprocess
import time

import pytest
from test_restarts import OUTBOX, await_delivered, delivered, judge, publish, run

ALARMS = {
    "memory": (["set_vm_memory_high_watermark", "0.0000001"], ["set_vm_memory_high_watermark", "absolute", "1GB"]),
    "disk": (["set_disk_free_limit", "900000GB"], ["set_disk_free_limit", "10MB"]),
}


def await_words(path, words):
    end = time.monotonic() + 60
    while words not in path.read_text():
        assert time.monotonic() < end, path.read_text()
        time.sleep(.05)


@pytest.mark.parametrize("alarm", ALARMS)
def test_an_alarm_costs_time_only(broker, name, tmp_path, alarm):
    path, log = tmp_path / "shop.db", tmp_path / "log"
    store = f"sqlite:{path}"
    raised, cleared = ALARMS[alarm]
    broker.make(name, name, x_queue_type="quorum")
    run("init", "--store", store)
    target = "events=" + broker.url(f"?exchange={name}")
    total = publish(path, 0, 500)
    with open(log, "wb") as out:
        relay = subprocess.Popen([OUTBOX, "relay", "--store", store, "--to", target], stdout=out, stderr=out)
    try:
        await_delivered(path, total)
        broker.ctl(*raised)
        try:
            before = delivered(path)
            total = publish(path, total, 1000)
            await_words(log, "breaker open")
            assert alarm in log.read_text()
            assert delivered(path) == before, "something was acknowledged while the broker was blocked"
            with contextlib.closing(sqlite3.connect(path)) as db:
                assert db.execute("SELECT count(*) FROM outbox_delivery WHERE attempts > 0 OR state = 'failed'"
                                  ).fetchone() == (0,)
        finally:
            broker.ctl(*cleared)
        relay.terminate()
        assert relay.wait(60) == 0
    finally:
        relay.kill()
        relay.wait()
    run("relay", "--store", store, "--to", target, "--until-idle")
    judge(broker.take(name), total)
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT coalesce(max(attempts), 0) FROM outbox_delivery").fetchone() == (0,)
