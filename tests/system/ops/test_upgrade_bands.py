# SPDX-License-Identifier: Apache-2.0
"""Bands on a store that was made by the version before, and relays of the version before beside them."""
import collections

import pytest

from before import before
from places import bare_place, delivered, relay


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request, tmp_path):
    """As the version before leaves it: three delivered, three not."""
    made = bare_place(request.param, tmp_path, request)
    old = before(made)
    old.run("init")
    publish(made)
    relay(old)
    publish(made)
    return made


def publish(shop):
    """One for each band, all of one key."""
    for priority in (5, 0, -5):
        shop.insert(key="k", priority=priority)


def expect_all(shop, count):
    """Every message arrived; returns those that came more than once."""
    times = collections.Counter(line["id"] for line in shop.lines())
    with shop.db() as db:
        ids = [row[0] for row in db.execute("SELECT id FROM outbox_message ORDER BY seq").fetchall()]
    assert len(ids) == count
    lost = [(i, message) for i, message in enumerate(ids) if message not in times]
    assert not lost, f"lost: {lost}; delivered: {delivered(shop)}"
    return [message for message in ids if times[message] > 1]


def test_bands_after_an_upgrade(shop):
    """What was waiting stays with events, in its order; what follows goes by its band."""
    shop.run("upgrade")
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events": 6}
    publish(shop)
    relay(shop, "--bands", "events")
    assert delivered(shop) == {"events-high": 1, "events": 7, "events-low": 1}
    assert not expect_all(shop, 9)
    assert [line["sequence"] for line in shop.lines()][:6] == sorted((line["sequence"] for line in shop.lines()), key=int)[:6]


def test_the_version_before_beside_bands(shop):
    """It knows nothing of them and sends every band to events, where bands send it, too: twice, but never not at all."""
    old = before(shop)
    shop.run("upgrade")
    relay(shop, "--bands", "events")
    publish(shop)
    relay(old)
    relay(shop, "--bands", "events")
    expect_all(shop, 9)
    publish(shop)
    relay(shop, "--bands", "events")
    publish(shop)
    relay(old)
    publish(shop)
    relay(shop)
    relay(old)
    publish(shop)
    relay(shop, "--bands", "events")
    expect_all(shop, 21)
    # from here on all are of the new version
    known = len(shop.lines())
    publish(shop)
    relay(shop, "--bands", "events")
    relay(shop)
    assert len(shop.lines()) == known + 3
    expect_all(shop, 24)
