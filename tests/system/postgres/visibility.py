#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost, nothing comes twice, nothing is out of order, whatever commits when.

usage: visibility.py --reader PROGRAM [--seconds N] [--seed N] [--slow] [--sql FOLDER]

16 writers publish in every way there is while owners read the log in chunks of 1 to 1,000, die in the middle of
windows and rob each other of their lanes. Hundreds of prepared transactions are in progress from the start, and one
transaction is open from the first second to the last. At the end the ledger is compared with what arrived.

--sql FOLDER: the schema from these files instead of the program's own (for planted bugs).
--slow: with a pause between what the reader reads in an order that matters, so that every race is a wide one, and with
short looks along the log, so that many a window takes more than one.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
# pylint: disable=wrong-import-position
import psycopg2
from ledger import Arrivals, Ledger, judge
from postgres import PATIENCE, MISSING, Server, bin_folder, end_on_signals
from writers import Closer, Old, Writer, prepare

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
WRITERS = 16
IN_PROGRESS = 300
LANES = 4
TARGETS = {"all": None, "some": "rare."}


# After each of these the reader naps when it is --slow.
RACES = ["fresh.snapshot := pg_current_snapshot();", "fresh.log_end := outbox_log_end();", "fresh.xid := pg_current_xact_id();",
         "last := outbox_last_receipt(q.target, q.lane, q.n);", "last := outbox_last_receipt(p_target, p_lane);"]
NAP = " PERFORM pg_sleep(random() * 0.004);"
# outbox_scan_max and outbox_ahead_max: a look is always longer than what an idle lane may be behind.
LOOKS = [("SELECT 20000::bigint", "SELECT 60::bigint"), ("SELECT 1000::bigint", "SELECT 40::bigint")]


def load_schema(db, folder, slow):
    """What `outbox init` does, with the files of a folder."""
    with open(os.path.join(SOURCE, "src/store/postgres/meson.build"), encoding="utf-8") as file:
        lists = re.findall(r"^  '(\w+)': \[([^]]*)\]", file.read(), re.M)
    script = ""
    for part in re.findall(r"'(\w+)'", " ".join(parts for name, parts in lists if name != "upgrade")):
        with open(os.path.join(folder, part + ".sql"), encoding="utf-8") as file:
            script += file.read()
    version = max(int(name[1:]) for name, _ in lists if re.fullmatch(r"v\d+", name))
    for race in RACES if slow else []:
        assert race in script, f"no longer in the schema: {race}"
        script = script.replace(race, race + NAP)
    for long, short in LOOKS if slow else []:
        assert script.count(long) == 1, f"no longer in the schema: {long}"
        script = script.replace(long, short)
    with db.cursor() as cursor:
        cursor.execute(script)
        cursor.execute(f"INSERT INTO outbox_meta (name, value) VALUES ('schema', '{version}'), ('min_reader', '1'),"
                       f" ('lanes', '{LANES}') ON CONFLICT (name) DO UPDATE SET value = excluded.value")
    db.commit()


class Run:
    def __init__(self, options, url):
        self.options, self.url = options, url
        self.rng = random.Random(f"{options.seed}/run")
        self.ledger = Ledger()
        self.problems = []
        self.log = tempfile.NamedTemporaryFile(prefix="outbox-visibility-", suffix=".log")
        self.reader = None
        self.said = ""

    def connect(self, autocommit=True):
        db = psycopg2.connect(self.url)
        db.autocommit = autocommit
        return db

    def start_reader(self):
        command = [self.options.reader, "--url", self.url, "--log", self.log.name, "--seed", str(self.options.seed),
                   "--init", str(LANES), "--owners", "2"]
        for target, pattern in TARGETS.items():
            command += ["--target", f"{target}={pattern}*" if pattern else target]
        self.reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.reader.stdout.readline()
        assert first == "ready\n", f"the reader says: {first}{self.reader.stdout.read()}"

    def arrived(self, ids):
        """Wait until all these arrived at every target that wants them; what is missing when nothing moves any more."""
        deadline, left = 0, None
        while True:
            arrivals = Arrivals().read(self.log.name)
            missing = (ids - set(arrivals.order["all"])) | (
                (ids & self.ledger.expected(TARGETS["some"])) - set(arrivals.order["some"]))
            if left is None or len(missing) < left:
                deadline, left = time.monotonic() + PATIENCE, len(missing)
            if not missing or self.reader.poll() is not None or time.monotonic() > deadline:
                return missing
            time.sleep(.2)

    def work(self):
        """The writers' time, with one transaction that is open all the while."""
        closer = Closer(self.connect, self.ledger, self.options.seed)
        held = Old("held", self.rng, self.connect())
        for i in range(IN_PROGRESS):
            old = Old(f"old{i}", self.rng, closer.db)
            old.tx.cursor.execute(f"PREPARE TRANSACTION 'old{i}'")
            closer.add(old.tx, self.rng.uniform(0, self.options.seconds * 1.2))
        closer.start()
        team = [Writer(self.connect, self.ledger, closer, f"w{i}", self.options.seed) for i in range(WRITERS)]
        for writer in team:
            writer.start()
        deadline = time.monotonic() + self.options.seconds
        while time.monotonic() < deadline and self.reader.poll() is None and not any(w.error for w in team):
            time.sleep(.1)
        for writer in team:
            writer.stopping.set()
        for writer in team:
            writer.finish()
        closer.finish()
        if self.reader.poll() is not None:
            raise AssertionError(f"the reader gave up: {self.reader.stdout.read()}")
        self.reader.stdin.write("quiet\n")
        self.reader.stdin.flush()
        missing = self.arrived(self.ledger.expected())
        if missing:
            self.problems.append(f"held back by an open transaction, or lost: {len(missing)}"
                                 f" ({', '.join(sorted(missing)[:5])})")
        early = set(held.tx.kept) & set(Arrivals().read(self.log.name).order["all"])
        if early:
            self.problems.append(f"arrived before its commit: {early}")
        held.tx.cursor.execute("COMMIT")
        self.ledger.ended("held", held.tx.kept, held.tx.gone, True)

    def drain(self):
        self.reader.stdin.close()
        try:
            self.reader.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.reader.kill()
            self.problems.append("the reader never comes to an end")
        self.said = self.reader.stdout.read()
        if self.reader.returncode:
            self.problems.append(f"the reader ends with {self.reader.returncode}: {self.said[:2000]}")

    def check_receipts(self):
        with self.connect() as db, db.cursor() as cursor:
            cursor.execute("SELECT target, lane, count(*), min(n), max(n) FROM outbox_receipt GROUP BY 1, 2")
            for target, lane, count, low, high in cursor.fetchall():
                if count != high - low + 1:
                    self.problems.append(f"{target} {lane}: {count} receipts from {low} to {high}")
            cursor.execute("SELECT DISTINCT ON (target, lane) target, lane, claim_count FROM outbox_receipt"
                           " ORDER BY target, lane, n DESC")
            left = [row for row in cursor.fetchall() if row[2]]
            cursor.execute("SELECT count(*) FROM outbox_message")
            stored = cursor.fetchone()[0]
            cursor.execute("SELECT xid::text::bigint, seq FROM outbox_message ORDER BY 1 DESC")
            log = cursor.fetchall()
            cursor.execute("SELECT target, lane, n, cur_seq, cur_xid::text::bigint FROM outbox_receipt ORDER BY 5 DESC")
            windows = cursor.fetchall()
        self.check_windows(log, windows)
        if left:
            self.problems.append(f"still in flight: {left}")
        if stored != len(self.ledger.committed):
            self.problems.append(f"{stored} messages stored, {len(self.ledger.committed)} committed")

    def check_windows(self, log, windows):
        """What a window relies on: nothing at or below its end has a transaction younger than its own. Both by falling xid."""
        low, at = None, 0
        for target, lane, n, end, xid in windows:
            while at < len(log) and log[at][0] >= xid:
                low, at = log[at][1] if low is None else min(low, log[at][1]), at + 1
            if low is not None and low <= end:
                self.problems.append(f"{target} {lane}: receipt {n} ends at {end}, but {low} is of a younger transaction")

    def setup(self):
        with self.connect() as db:
            if self.options.sql or self.options.slow:
                load_schema(db, self.options.sql or os.path.join(SOURCE, "sql/postgres"), self.options.slow)
            prepare(db)
        self.start_reader()

    def go(self):
        try:
            self.work()
            self.drain()
        finally:
            if self.reader.poll() is None:
                self.reader.kill()
        self.check_receipts()
        arrivals = Arrivals().read(self.log.name)
        for target, pattern in TARGETS.items():
            self.problems += judge(self.ledger, arrivals, target, pattern)


def run(options):
    with Server() as server:
        this = Run(options, server.url())
        this.setup()
        started = time.monotonic()
        try:
            this.go()
        except Exception as error:  # pylint: disable=broad-except
            this.problems.append(f"{type(error).__name__}: {error}")
    print(f"{len(this.ledger.committed)} committed, {len(this.ledger.rolled_back)} rolled back in"
          f" {time.monotonic() - started:.0f} s; {this.said.strip()}")
    print(", ".join(f"{kind} {end} {count}" for (kind, end), count in sorted(this.ledger.transactions.items())))
    for problem in this.problems:
        print("PROBLEM", problem)
    if not this.ledger.committed:
        print("PROBLEM nothing was tried")
    return 1 if this.problems or not this.ledger.committed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("OUTBOX_TEST_SEED") or
                                                        random.SystemRandom().randrange(2**31)))
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--sql")
    options = parser.parse_args()
    if not bin_folder():
        print("skipped:", MISSING)
        return 77
    end_on_signals()
    print(f"visibility: seed {options.seed}", flush=True)
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
