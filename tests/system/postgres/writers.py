# SPDX-License-Identifier: Apache-2.0
"""Writers that use PostgreSQL in every way that an application may, and tell a ledger how it ended.

The number of a message within its key comes from a row that stays locked until the end of the transaction:
so transactions of one key do not overlap, and committed messages of a key are numbered in the order of the log.
"""
import io
import random
import threading
import time

import psycopg2
import psycopg2.errors

KEYS = [f"k{i}" for i in range(40)]
TRIED = (psycopg2.errors.SerializationFailure, psycopg2.errors.DeadlockDetected)
SCHEMA = "CREATE TABLE counter (key text PRIMARY KEY, n bigint NOT NULL)"


def prepare(db):
    with db.cursor() as cursor:
        cursor.execute(SCHEMA)
        cursor.executemany("INSERT INTO counter VALUES (%s, 0)", [(key,) for key in KEYS])
    db.commit()


class Transaction:
    """One transaction of a writer; kept and gone are what it published, by id."""

    def __init__(self, writer, number):
        self.rng = writer.rng
        self.cursor = writer.db.cursor()
        self.name = f"{writer.name}-{number}"
        self.made = 0
        self.kept, self.gone = {}, {}

    def message(self, key, n):
        self.made += 1
        id = f"{self.name}-{self.made}"
        kind = "rare.thing" if self.rng.random() < .03 else "order.placed"
        size = self.rng.choice([2, 20, 20, 300, 3000])
        self.kept[id] = (key, n, kind)
        return id, kind, key, "x" * size

    def lock(self, key, count):
        """The first of `count` numbers of a key."""
        if key is None:
            return 0
        self.cursor.execute("UPDATE counter SET n = n + %s WHERE key = %s RETURNING n", (count, key))
        return self.cursor.fetchone()[0] - count + 1

    def batch(self, key, count):
        first = self.lock(key, count)
        return [self.message(key, first + i) for i in range(count)]

    def values(self, key, count):
        rows = self.batch(key, count)
        marks = ", ".join(["(%s, %s, %s, %s)"] * count)
        self.cursor.execute(f"INSERT INTO outbox_message (id, type, key, payload) VALUES {marks}",
                            [value for row in rows for value in row])

    def copy(self, key, count):
        lines = "".join("\t".join("\\N" if value is None else value for value in row) + "\n"
                        for row in self.batch(key, count))
        self.cursor.copy_expert("COPY outbox_message (id, type, key, payload) FROM STDIN", io.StringIO(lines))

    def select(self, key, count):
        rows = self.batch(key, count)
        columns = [list(column) for column in zip(*rows)]
        self.cursor.execute("INSERT INTO outbox_message (id, type, key, payload)"
                            " SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[])", columns)

    def one_by_one(self, key, count):
        for row in self.batch(key, count):
            self.cursor.execute("INSERT INTO outbox_message (id, type, key, payload) VALUES (%s, %s, %s, %s)", row)
            self.hold(.2)

    def publish(self, key):
        rng = self.rng
        way = rng.choice([self.values, self.copy, self.select, self.one_by_one, self.one_by_one])
        way(key, rng.choice([1, 1, 1, 2, 3, 10]) if rng.random() < .99 else 100)

    def change_of_mind(self, key):
        """A savepoint that is rolled back, or not."""
        before = dict(self.kept)
        self.cursor.execute("SAVEPOINT mind")
        self.publish(key)
        if self.rng.random() < .6:
            self.cursor.execute("ROLLBACK TO mind")
            self.gone.update((id, what) for id, what in self.kept.items() if id not in before)
            self.kept = before
        if self.rng.random() < .5:
            self.cursor.execute("RELEASE mind")

    def hold(self, share=1.0):
        if self.rng.random() < .4 * share:
            time.sleep(self.rng.expovariate(1 / .015))

    def body(self):
        rng = self.rng
        if rng.random() < .3:
            self.cursor.execute("SELECT pg_current_xact_id()")  # early: others will have lower seqs and commit first
            self.hold(2)
        for key in sorted(rng.sample(KEYS, rng.choice([0, 1, 1, 2]))) or [None]:
            (self.change_of_mind if rng.random() < .15 else self.publish)(key)
            self.hold()


class Writer(threading.Thread):
    def __init__(self, connect, ledger, closer, name, seed):
        super().__init__(daemon=True)
        self.connect, self.ledger, self.closer = connect, ledger, closer
        self.name = name
        self.rng = random.Random(f"{seed}/{name}")
        self.db = None
        self.stopping = threading.Event()
        self.error = None

    def transaction(self, number):
        tx = Transaction(self, number)
        isolation = self.rng.choice(["READ COMMITTED"] * 4 + ["REPEATABLE READ", "SERIALIZABLE"])
        two_phases = self.rng.random() < .1 and self.closer.room()
        kind = "prepared" if two_phases else isolation.lower()
        try:
            tx.cursor.execute(f"BEGIN ISOLATION LEVEL {isolation}")
            tx.body()
            if two_phases:
                tx.cursor.execute(f"PREPARE TRANSACTION '{tx.name}'")
                self.closer.add(tx)
                return
            if self.rng.random() < .15:
                tx.cursor.execute("ROLLBACK")
                self.ledger.ended(kind, tx.kept, tx.gone, False)
                return
            tx.cursor.execute("COMMIT")
            self.ledger.ended(kind, tx.kept, tx.gone, True)
        except TRIED:
            tx.cursor.execute("ROLLBACK")
            self.ledger.ended(kind, tx.kept, tx.gone, False)

    def run(self):
        try:
            self.db = self.connect()
            number = 0
            while not self.stopping.is_set():
                number += 1
                self.transaction(number)
            self.db.close()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def finish(self):
        self.stopping.set()
        self.join(120)
        assert not self.is_alive(), f"{self.name} hangs"
        if self.error:
            raise self.error


class Closer(threading.Thread):
    """Ends prepared transactions, some of them much later and in another order."""

    def __init__(self, connect, ledger, seed, most=60):
        super().__init__(daemon=True)
        self.db, self.ledger, self.most = connect(), ledger, most
        self.rng = random.Random(f"{seed}/closer")
        self.lock = threading.Lock()
        self.open = []
        self.stopping = threading.Event()
        self.error = None

    def room(self):
        with self.lock:
            return len([t for _, t in self.open if not t.name.startswith("old")]) < self.most

    def add(self, tx, wait=None):
        with self.lock:
            self.open.append((time.monotonic() + (wait or self.rng.expovariate(1 / .05)), tx))

    def due(self):
        now = time.monotonic()
        with self.lock:
            due = [entry for entry in self.open if entry[0] <= now or self.stopping.is_set()]
            self.open = [entry for entry in self.open if entry not in due]
        return [tx for _, tx in due]

    def run(self):
        try:
            while True:
                last = self.stopping.is_set()
                for tx in self.due():
                    commit = self.rng.random() < .8
                    with self.db.cursor() as cursor:
                        cursor.execute(f"{'COMMIT' if commit else 'ROLLBACK'} PREPARED '{tx.name}'")
                    self.ledger.ended("prepared", tx.kept, tx.gone, commit)
                if last:
                    return
                time.sleep(.002)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def finish(self):
        self.stopping.set()
        self.join(60)
        if self.error:
            raise self.error
        self.db.close()


class Old:
    """Something for Closer.add() and for whoever publishes without a Writer."""

    def __init__(self, name, rng, db):
        self.name, self.rng, self.db = name, rng, db
        self.tx = Transaction(self, 0)
        self.tx.name = name
        self.tx.cursor.execute("BEGIN")
        self.tx.values(None, 1)
