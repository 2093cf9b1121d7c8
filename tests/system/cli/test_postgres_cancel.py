# SPDX-License-Identifier: Apache-2.0
"""A scheduled message is cancelled in the application's transaction, or sent; never both."""
import random
import threading

import pytest

import pgshop
from shell import end, until
from test_cancel import RELAY, schedule, states


class Race:
    """Messages that become due one after the other, and cancellers that come about when each is due."""

    COUNT, GAP = 120, 0.012

    def __init__(self, pg):
        self.pg, self.cancelled, self.refused, self.other = pg, set(), [], []
        pg.sql("INSERT INTO outbox_message (id, type, key, payload, due_at) SELECT 'm' || i, 'reminder', (i % 7)::text, '{}', "
               f"clock_timestamp() + interval '1.5 s' + i * interval '{self.GAP} s' FROM generate_series(0, {self.COUNT - 1}) i")

    def cancel(self, numbers, seed):
        """In the transaction of the order that makes the message needless."""
        chance = random.Random(seed)
        connection = pgshop.psycopg2.connect(self.pg.url)
        for i in numbers:
            with connection.cursor() as cursor:
                try:
                    cursor.execute("SELECT pg_sleep(greatest(0, extract(epoch FROM due_at - clock_timestamp()) - %s)) "
                                   "FROM outbox_message WHERE id = %s", (chance.uniform(-0.005, 0.04), f"m{i}"))
                    cursor.execute("INSERT INTO orders (id, total) VALUES (%s, 1)", (i,))
                    cursor.execute("SELECT outbox_cancel(%s, 'paid')", (f"m{i}",))
                    cursor.execute("SELECT pg_sleep(%s)", (chance.choice((0, 0, 0.01, 0.03)),))
                    connection.commit()
                    self.cancelled.add(f"m{i}")
                except pgshop.psycopg2.Error as error:
                    connection.rollback()
                    (self.refused if error.pgcode == "OB002" else self.other).append(str(error))
        connection.close()


def test_a_relay_and_applications_race(pg):
    race = Race(pg)
    relay = pg.start("relay", "--to", "events=file:out.jsonl", "--poll", "2ms")
    try:
        until(lambda: pg.sql("SELECT count(*) FROM outbox_detour WHERE why = 'deferred'") != [(0,)], "the relay to read them")
        threads = [threading.Thread(target=race.cancel, args=(range(k, race.COUNT, 4), k)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not race.other
        gone = f"SELECT count(*) FROM outbox_delivery WHERE state IN ('delivered', 'discarded') HAVING count(*) = {race.COUNT}"
        until(lambda: pg.sql(gone), "all of them")
    finally:
        end(relay)
    sent = {m["id"] for m in pg.lines()}
    assert len(sent) == len(pg.lines()) and not sent & race.cancelled, "sent and cancelled"
    assert sent | race.cancelled == {f"m{i}" for i in range(race.COUNT)}, "neither"
    assert {f"m{i}" for i, in pg.sql("SELECT id FROM orders")} == race.cancelled, "atomic with the order"
    assert sent and race.cancelled and race.refused, "there was a race"
    assert {i for i, in pg.sql("SELECT id FROM outbox_audit WHERE action = 'cancel'")} == race.cancelled


def test_an_open_transaction_stops_no_lane(pg):
    """Cancelled and not committed: other messages of the lane go on, and the commit comes too late."""
    pg.run(*RELAY)
    schedule(pg, "m1", "+3s")
    connection = pgshop.psycopg2.connect(pg.url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT outbox_cancel('m1')")
        for i in range(8):
            pg.insert(key=f"k{i}")
        pg.run(*RELAY)
        until(lambda: pg.run(*RELAY) and len(pg.lines()) == 9, "all of them, with the scheduled one")
        with pytest.raises(pgshop.psycopg2.Error) as caught:
            connection.commit()
    assert caught.value.pgcode == "OB002"
    connection.close()
    assert states(pg, "m1") == {"events": "delivered"}
    assert pg.sql("SELECT count(*) FROM outbox_cancelled") == [(0,)]


def test_other_isolation_is_refused(pg):
    schedule(pg, "m1")
    connection = pgshop.psycopg2.connect(pg.url)
    connection.set_session(isolation_level="REPEATABLE READ")
    with connection.cursor() as cursor, pytest.raises(pgshop.psycopg2.Error) as caught:
        cursor.execute("SELECT outbox_cancel('m1')")
    connection.close()
    assert "needs a transaction that is READ COMMITTED, and this one is REPEATABLE READ" in str(caught.value)


def test_a_target_registered_meanwhile_does_not_send_it(pg):
    """Whoever registers it waits for those who are cancelling."""
    schedule(pg, "m1", "+4s")
    connection = pgshop.psycopg2.connect(pg.url)
    with connection.cursor() as cursor:
        cursor.execute("SELECT outbox_cancel('m1')")
        relay = pg.start("relay", "--to", "events=file:out.jsonl")
        try:
            until(lambda: pg.sql("SELECT count(*) FROM pg_locks WHERE relation = 'outbox_cancelled'::regclass AND NOT granted")
                  == [(1,)], "the relay to wait")
            connection.commit()
            until(lambda: pg.sql("SELECT state FROM outbox_delivery") == [("discarded",)], "it to register")
            pg.sql("SELECT pg_sleep(greatest(0, extract(epoch FROM due_at - clock_timestamp()))) FROM outbox_message")
            pg.insert(id="m2")
            until(lambda: pg.lines(), "the next one")
        finally:
            end(relay)
    connection.close()
    assert [m["id"] for m in pg.lines()] == ["m2"]


def by_lane(pg, count=40):
    """Scheduled messages, those of each lane together."""
    for i in range(count):
        schedule(pg, f"m{i}", "+1h")
    lanes = {}
    for name, lane in pg.sql("SELECT id, slot % (SELECT value::integer FROM outbox_meta WHERE name = 'lanes') FROM outbox_message"):
        lanes.setdefault(lane, []).append(name)
    return lanes


def test_two_that_cancel_several_lock_in_one_order(pg):
    """One cancels in the lanes high and low, the other one in low and high: they commit one after the other."""
    pg.run(*RELAY)
    lanes = by_lane(pg)
    low, high = min(lanes), max(lanes)
    assert low < high
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() HAVING count(*) = {}"
    in_the_way, *both = [pgshop.psycopg2.connect(pg.url) for _ in range(3)]
    in_the_way.cursor().execute("SELECT outbox_lock_lane('events', %s)", (high,))
    said = []

    def commit(connection):
        try:
            connection.commit()
        except pgshop.psycopg2.Error as error:
            said.append(error.pgcode)

    threads = []
    for connection, order, i in zip(both, ([high, low], [low, high]), range(2)):
        for lane in order:
            connection.cursor().execute("SELECT outbox_cancel(%s)", (lanes[lane][i],))
        threads.append(threading.Thread(target=commit, args=(connection,)))
        threads[-1].start()
        until(lambda n=i + 1: pg.sql(waiting.format(n)), "it to wait")
    in_the_way.rollback()
    for thread in threads:
        thread.join()
    for connection in (in_the_way, *both):
        connection.close()
    assert said == []
    assert pg.sql("SELECT count(*) FROM outbox_delivery WHERE state = 'discarded'") == [(4,)]
