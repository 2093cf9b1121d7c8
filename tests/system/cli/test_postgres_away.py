# SPDX-License-Identifier: Apache-2.0
"""The database is away: a relay that is asked to leave, and has nothing in flight, leaves."""
import signal

import pytest

import pgshop
from shell import PATIENCE, until


@pytest.fixture(name="away")
def fixture_away(tmp_path):
    """A server of our own with an outbox."""
    reason = pgshop.reason_to_skip()
    if reason:
        pytest.skip(reason)
    with pgshop.Server() as own:
        shop = pgshop.PgShop(tmp_path, on=own)
        shop.run("init")
        yield shop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_relay_leaves_though_it_may_wait_for_days(away, number):
    said = away.folder / "said"
    with said.open("wb") as err:
        process = away.start("relay", "--to", "events=file:out.jsonl", "--shutdown-timeout", "9d", stderr=err)
    try:
        away.insert()
        until(lambda: len(away.lines()) == 1, "a delivery")
        until(lambda: away.run("status", "--json").json["targets"][0]["sending"] == 0, "its settlement")
        away.server.stop("immediate")
        until(lambda: "nothing is charged" in said.read_text(), "the relay to find out")
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0, said.read_text()
    finally:
        process.kill()
        process.wait()
    assert "nothing in flight; exiting" in said.read_text()
    assert "not settled" not in said.read_text()


def test_doctor_says_which_setting_is_unsafe(away):
    """That server has fsync off, and full_page_writes on."""
    told = {f["subject"]: f for f in away.run("doctor", "--json", code=1).json["findings"]}["durability"]
    assert told["level"] == "warning" and told["text"].startswith("fsync is off: ")
    assert "switch it on in postgresql.conf" in told["text"] and "full_page_writes" not in told["text"]
