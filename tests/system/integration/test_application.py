# SPDX-License-Identifier: Apache-2.0
"""The application on the same database file: it holds the write lock, reads for long, has a time zone."""
import json
import time

import pytest

from kit import outbox, until
from oracle import expect_good


@pytest.mark.parametrize("options,lease", [("", "15s"), ("?busy=50ms", "1s")])
def test_long_transactions_cost_time_only(make, options, lease):
    """BEGIN IMMEDIATE held for 2 s, three times, beside a reader: no attempt is charged."""
    shop, crew, producer = make(options=options)
    producer.publish(200)
    reader, writer = shop.connect(), shop.connect()
    reader.execute("BEGIN")
    seen = reader.execute("SELECT count(*) FROM outbox_message").fetchone()
    relay = crew.start(lease=lease)
    for turn in range(3):
        until(lambda: len(crew.lines()) > 20 * turn, "the relay to go on")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE counter SET n = n")
        time.sleep(2)
        writer.execute("COMMIT")
        producer.publish(40)
    ledger = producer.finish()
    until(lambda: shop.value("SELECT pending + sending + waiting + parked FROM outbox_backlog") == 0,
          "the relay to deliver the rest")
    assert reader.execute("SELECT count(*) FROM outbox_message").fetchone() == seen
    reader.execute("COMMIT")
    reader.close()
    writer.close()
    relay.end()
    expect_good(ledger, crew, 0)


def test_time_zone_changes_nothing(make, tmp_path):
    shop, crew, _ = make()
    outbox("publish", "--store", shop.store, "--type", "t", "--key", "given", "--data", "{}",
           env={"TZ": "Pacific/Apia"})
    with shop.connect() as db:
        db.execute("INSERT INTO outbox_message (type, payload, event_time)"
                   " VALUES ('t', '{}', 1712345678901234)")
    zones = ["Pacific/Apia", "Europe/Berlin", "<-11>11", "UTC"]
    times, lists = [], []
    for number, zone in enumerate(zones):
        # Two targets for each zone: the second registers while others have delivered already.
        file = tmp_path / f"zone-{number}.jsonl"
        relay = crew.start("--to", f"zone{number}=file:{file}", "--start", f"zone{number}=oldest",
                           "--until-idle", env={"TZ": zone})
        relay.finish()
        times.append([json.loads(line)["time"] for line in file.read_text().splitlines()])
        page = outbox("list", "--store", shop.store, "--json", env={"TZ": zone})
        lists.append({(row["id"], row["event_time"]) for row in page["deliveries"]})
    assert times[0][1] == "2024-04-05T19:34:38.901234Z"
    assert all(each == times[0] for each in times), dict(zip(zones, times))
    assert all(each == lists[0] for each in lists), dict(zip(zones, lists))
    published = shop.value("SELECT abs(event_time / 1000000 - strftime('%s', 'now'))"
                           " FROM outbox_message ORDER BY seq LIMIT 1")
    assert published < 600, "published under a time zone, the event time is off by hours"
