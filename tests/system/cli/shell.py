# SPDX-License-Identifier: Apache-2.0
"""Running `outbox` as a person or a script would, and an application's side in plain sqlite3."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

BINARY = os.environ.get("OUTBOX_BIN", "outbox")
PATIENCE = int(os.environ.get("OUTBOX_TEST_PATIENCE") or 120)
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("OUTBOX_STORE", "OUTBOX_CONFIG", "NO_COLOR", "COLUMNS")}
# what a person would see as anything but text: control characters, changes of direction
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
WHOLE_OPTION = re.compile(r" *--store '[^']*'")


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, args, done):
        self.args, self.code = args, done.returncode
        self.raw = done.stdout
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")

    def __str__(self):
        return f"outbox {' '.join(self.args)}: exit {self.code}\n{self.out}\n{self.err}"

    @property
    def json(self):
        return json.loads(self.out)


class Shop:
    """A folder with a business database, its outbox, and commands run in it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "app.db"
        self.name = "app"
        self.url = f"sqlite:{self.path}"
        self.env = {**ENVIRONMENT, "OUTBOX_STORE": "sqlite:app.db", "USER": "alice", "COLUMNS": "80"}

    def command(self, *args):
        return [BINARY, *map(str, args)]

    def run(self, *args, code=0, env=None, data=b"", people=True):
        """Run to the end; the exit code must be the one expected (None: any)."""
        args = [str(a) for a in args]
        done = subprocess.run(self.command(*args), cwd=self.folder, env={**self.env, **(env or {})},
                              input=data, capture_output=True, timeout=PATIENCE, check=False)
        ran = Ran(args, done)
        assert code is None or ran.code == code, str(ran)
        if "--json" in args and ran.out and ran.code < 128:
            for line in ran.out.splitlines() if "tail" in args else [ran.out]:
                json.loads(line)
        elif people and "--raw-payload" not in args:
            check_screen(ran)
        return ran

    def start(self, *args, **how):
        """A command that goes on; the caller ends it."""
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return subprocess.Popen(self.command(*args), cwd=self.folder, env=self.env, **how)

    @contextlib.contextmanager
    def db(self):
        connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def moment(self, seconds):
        """A time as a column of this store has it."""
        return int(seconds * 1000000)

    def refuse_deletes(self, table):
        with self.db() as db:
            db.execute(f"CREATE TRIGGER stuck BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'stuck'); END")

    @contextlib.contextmanager
    def consumer(self):
        """Plain SQL of a consumer with an inbox: once(consumer, id) writes a row to the table effect, the first time."""
        with self.db() as db:
            db.execute("PRAGMA synchronous = OFF")

            def once(consumer, message):
                db.execute("BEGIN IMMEDIATE")
                if db.execute("INSERT INTO outbox_inbox (consumer, id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                              (consumer, message)).rowcount == 1:
                    db.execute("INSERT INTO effect (id) VALUES (?)", (message,))
                db.execute("COMMIT")

            yield once

    def tables(self):
        with self.db() as db:
            return {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE name LIKE 'outbox%'")}

    def insert(self, **columns):
        """Publish as any application does: one INSERT."""
        columns = {"type": "order.placed", "payload": "{}", **columns}
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        with self.db() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute(f"INSERT INTO outbox_message ({names}) VALUES ({marks}) RETURNING seq",
                             list(columns.values())).fetchone()
            message = db.execute("SELECT id FROM outbox_message WHERE seq = ?", row).fetchone()[0]
            db.execute("COMMIT")
        return message

    def relay(self, *args, code=0):
        """Deliver everything to `events`, a file."""
        return self.run("relay", "--to", "events=file:out.jsonl", "--until-idle", *args, code=code)

    def fail(self, count=1, **columns):
        """Messages whose delivery fails at once: text that claims to be JSON and is not."""
        ids = [self.insert(**{"payload": "{broken", "key": f"k{i}", **columns}) for i in range(count)]
        self.relay(code=1)
        return ids

    def lines(self, name="out.jsonl"):
        """The whole lines of a file; one that its writer is still writing, or was killed at, does not count yet."""
        path = self.folder / name
        data = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in data[:data.rfind(b"\n") + 1].splitlines()]


def check_screen(ran):
    """What people read: no control characters, nothing wider than 80 columns but what a command cannot be pasted without."""
    for line in ran.out.splitlines():
        assert len(line) <= 80 or WHOLE_OPTION.fullmatch(line), f"{len(line)} columns: {line}\n{ran}"
    assert not UNSAFE.search(ran.out + ran.err), repr(ran.out + ran.err)


def until(condition, what):
    """Wait until condition() is true; what takes long to look at (a command) is looked at less often."""
    deadline = time.monotonic() + PATIENCE
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        assert now < deadline, f"waited in vain for: {what}"
        time.sleep(min(max(0.02, 2 * (now - began)), 0.2))


def end(process, number=signal.SIGTERM):
    """End a started command and return its exit code and what it said."""
    if process.poll() is None:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()
