# SPDX-License-Identifier: Apache-2.0
"""Priority bands and rate limits, as people switch them on and off."""
import json

import pytest

from places import delivered, place, relay


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    return place(request.param, tmp_path, request)


def publish(shop, *priorities):
    with shop.db() as db:
        for priority in priorities:
            shown = "NULL" if priority is None else priority
            db.execute(f"INSERT INTO outbox_message (type, payload, priority) VALUES ('x', '{{}}', {shown})")


def ids(shop):
    with open(shop.folder / "out.jsonl", encoding="utf-8") as lines:
        return [json.loads(line)["id"] for line in lines]


def test_bands_are_three_targets(shop):
    publish(shop, 1, 100, 0, None, -1, -100, -5)
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events-high": 2, "events": 2, "events-low": 3}
    assert len(ids(shop)) == 7


def test_on_and_off_and_on_loses_nothing(shop):
    publish(shop, 1, 0, -1)
    relay(shop)
    publish(shop, 1, 0, -1)
    # on, with a backlog: it stays with events
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events": 6}
    publish(shop, 1, 0, -1)
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events-high": 1, "events": 7, "events-low": 1}
    # off, with a backlog: each keeps what it has, and the relay goes on for all of them
    publish(shop, 1, 0, -1)
    said = relay(shop)
    assert "outbox target drop events-low" in said.err
    assert delivered(shop) == {"events-high": 2, "events": 8, "events-low": 2}
    publish(shop, 1, 0, -1)
    relay(shop)
    assert delivered(shop) == {"events-high": 2, "events": 11, "events-low": 2}
    # on again
    publish(shop, 1)
    relay(shop, "--bands", "events")
    publish(shop, 1)
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events-high": 3, "events": 12, "events-low": 2}
    assert len(ids(shop)) == len(set(ids(shop))) == 17


def test_what_cannot_be_is_refused(shop):
    relay(shop)
    said = shop.run("relay", "--to", "a=null:", "--bands", "b", "--once", code=2)
    assert 'no target "b"' in said.err
    said = shop.run("relay", "--to", "a=null:", "--rate", "a=50/sec", "--once", code=2)
    assert '"50/sec" is not a rate; write 50/s, 3000/min or "none"' in said.err
    relay(shop, "--to", "events-high=null:", "--start", "events-high=now")
    said = shop.run("relay", "--to", "events=null:", "--bands", "events", "--once", code=None)
    assert said.code != 0 and "rename one of the two" in said.err


def test_a_rate_is_kept_to(shop):
    publish(shop, *[0] * 30)
    relay(shop, "--rate", "events=1000/s")
    assert delivered(shop) == {"events": 30}
