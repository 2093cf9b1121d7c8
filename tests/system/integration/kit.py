# SPDX-License-Identifier: Apache-2.0
"""What every scenario needs: a business database with an outbox, relay processes, patience.

Nothing here asserts how long something takes. Waiting is bounded, so that a relay which hangs
fails its test, and every process is ended by its own id.
"""
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import time

BINARY = os.environ.get("OUTBOX_BIN", "outbox")
SEED = int(os.environ.get("OUTBOX_TEST_SEED") or random.SystemRandom().randrange(2**32))
# Sanitizers make everything slower; patience costs nothing when all is well.
PATIENCE = float(os.environ.get("OUTBOX_TEST_PATIENCE") or 60)
LEASE = "1s"
BATCH = 20


def until(condition, what, patience=PATIENCE):
    """
    Wait until condition() is true and return its value; fail with `what` when it never is. What takes long to look at
    (a command, a whole file) is looked at less often: others need the machine, too.
    """
    deadline = time.monotonic() + patience
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        assert now < deadline, f"waited {patience:.0f} s for: {what}"
        time.sleep(min(max(0.01, 2 * (now - began)), 0.2))


def outbox(*args, env=None, fails=False):
    """Run one command to its end; its standard output, parsed when it was asked for --json."""
    done = subprocess.run([BINARY, *map(str, args)], capture_output=True, timeout=PATIENCE,
                          env={**os.environ, **(env or {})}, check=False)
    said = f"outbox {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr.decode()}"
    assert fails or done.returncode == 0, said
    return json.loads(done.stdout) if "--json" in args else done.stdout.decode()


class Shop:
    """A business database file with orders, a counter per key, and the outbox."""

    begin = "BEGIN IMMEDIATE"
    error = sqlite3.OperationalError
    long_ago = "1"  # a time

    def __init__(self, folder, lanes=1, options=""):
        self.path = os.path.join(folder, "shop.db")
        self.store = f"sqlite:{self.path}{options}"
        self.lanes = lanes
        outbox("init", "--store", self.store, "--lanes", lanes)
        with contextlib.closing(self.connect()) as db:
            db.executescript("""
                CREATE TABLE orders (number INTEGER PRIMARY KEY, key TEXT, n INTEGER, message TEXT);
                CREATE TABLE counter (key TEXT PRIMARY KEY, n INTEGER NOT NULL);
            """)

    def connect(self, busy=30):
        """A connection as an application would have it: transactions are opened by hand."""
        return sqlite3.connect(self.path, timeout=busy, isolation_level=None,
                               check_same_thread=False)

    def locked(self):
        """Does somebody hold the write lock?"""
        with contextlib.closing(self.connect(busy=0)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            db.execute("ROLLBACK")
            return False

    def rows(self, sql, *values):
        """Read with plain SQL, as a person would with the sqlite3 shell."""
        with contextlib.closing(self.connect()) as db:
            return db.execute(sql, values).fetchall()

    def value(self, sql, *values):
        return self.rows(sql, *values)[0][0]

    def in_flight(self, relay=None):
        """What the receipts say is claimed and not settled: all that a crash now can duplicate."""
        return self.value("SELECT coalesce(sum(claim_count), 0) FROM outbox_position"
                          " WHERE coalesce(owner, '') LIKE ?",
                          f"%:{relay.process.pid}:%" if relay else "%")

    def check(self):
        """The receipts of each lane follow each other, positions never go back, nothing is in flight."""
        assert self.value("PRAGMA integrity_check") == "ok"
        rows = self.rows("SELECT target, lane, n, from_seq, pos, claim_end, claim_count, number"
                         " FROM outbox_receipt ORDER BY target, lane, n")
        last = {}
        for target, lane, n, from_seq, pos, claim_end, claim_count, number in rows:
            where = f"receipt {target}/{lane}/{n}"
            assert 0 <= from_seq <= pos <= claim_end, f"{where}: {from_seq}, {pos}, {claim_end}"
            before = last.get((target, lane))
            if before:
                assert n == before[0] + 1, f"{where} follows {before[0]}: a gap"
                assert pos >= before[1], f"{where}: position {pos} is below {before[1]} before it"
                assert from_seq == before[1], f"{where}: begins at {from_seq}, not at {before[1]}"
                assert number > before[2], f"{where}: number {number} is not after {before[2]}"
            last[(target, lane)] = (n, pos, number, claim_count)
        assert len(last) == self.lanes, f"lanes with receipts: {sorted(last)}"
        in_flight = {lane: row[3] for lane, row in last.items() if row[3]}
        assert not in_flight, f"still in flight: {in_flight}"

    def status(self):
        return outbox("status", "--store", self.store, "--json")

    def lanes_shown(self):
        """The lanes as `outbox status` shows them; none before a relay has registered the target."""
        return [lane for target in self.status()["targets"] for lane in target["lanes"]]

    def held_by(self, relay):
        """Does this relay hold every lane?"""
        pid = f":{relay.process.pid}:"
        lanes = self.lanes_shown()
        return bool(lanes) and all(lane["live"] and pid in lane["owner"] for lane in lanes)


class Relay:
    """One relay process. Its log goes to a file of its own."""

    def __init__(self, log, args, env):
        self.log_path = log
        self.args = args
        with open(log, "wb") as sink:
            self.process = subprocess.Popen([BINARY, "relay", *args], stdout=sink, stderr=sink,
                                            stdin=subprocess.DEVNULL, env=env)

    @property
    def dead(self):
        return self.process.poll() is not None

    @property
    def code(self):
        return self.process.returncode

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as text:
            return text.read()

    def signal(self, number):
        if not self.dead:
            self.process.send_signal(number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def wait(self, patience=PATIENCE):
        """Wait for its end; returns the exit code, negative for a signal."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"relay {self.args} does not end; it says:\n{self.log()}") from None

    def finish(self):
        """Wait for its end and expect a good one."""
        code = self.wait()
        assert code == 0, f"relay {self.args}: exit {code}; it says:\n{self.log()}"

    def end(self):
        """Ask it to end, once it has begun (a signal before that just ends it), and see it end well."""
        until(lambda: "relay.start" in self.log() or self.dead, "the relay to begin")
        self.signal(signal.SIGTERM)
        self.finish()

    def stopped(self):
        """
        Is it stopped by SIGSTOP, with all its threads? On a busy machine one may still be on its way: it stops
        when it leaves the kernel, perhaps with a lock that it has just got.
        """
        def state(thread):
            return (thread / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]

        try:
            return all(state(thread) == "T" for thread in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir())
        except (FileNotFoundError, ProcessLookupError):
            return False


class Crew:
    """Starts relays for one shop and one consumer's file; ends those that are left."""

    def __init__(self, shop, folder, consumer=None):
        self.shop = shop
        self.folder = str(folder)
        self.consumer = consumer or os.path.join(self.folder, "consumer.jsonl")
        self.relays = []

    def start(self, *extra, failpoint=None, lease=LEASE, batch=BATCH, env=None):
        args = ["--store", self.shop.store, "--to", f"events=file:{self.consumer}",
                "--lease", lease, "--batch", str(batch), *map(str, extra)]
        environment = {**os.environ, **(env or {})}
        environment.pop("OUTBOX_FAILPOINT", None)
        if failpoint:
            environment["OUTBOX_FAILPOINT"] = failpoint
        log = os.path.join(self.folder, f"relay-{len(self.relays)}.log")
        relay = Relay(log, args, environment)
        self.relays.append(relay)
        return relay

    def drain(self, *extra, **options):
        """A relay that works until nothing is left; the ordinary end of a scenario."""
        self.start("--until-idle", *extra, **options).finish()

    def lines(self):
        """The consumer's file, line by line, as bytes."""
        try:
            with open(self.consumer, "rb") as file:
                return file.read().splitlines(keepends=True)
        except FileNotFoundError:
            return []

    def fenced(self):
        """What relays that lost a lane had sent and could not settle, as they say themselves."""
        found = [re.findall(r"taken by another relay; (\d+) acknowledged", relay.log())
                 for relay in self.relays]
        return sum(map(int, sum(found, [])))

    def close(self):
        for relay in self.relays:
            if not relay.dead:
                relay.signal(signal.SIGCONT)
                relay.kill()
