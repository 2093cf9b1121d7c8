# SPDX-License-Identifier: Apache-2.0
"""A producer that behaves like an application, and the ledger of what it did.

Each transaction has a business row and one or more messages. Some are rolled back, some roll back
to a savepoint in the middle. The number of a message within its key comes from a row of the
business database, so that it is rolled back with everything else: committed messages of a key are
numbered 1, 2, 3 ... in the order of the log.
"""
import json
import threading
import time
import uuid
from dataclasses import dataclass, field

KEYS = ["k0", "k1", "key-2", "schlüssel-3", "k4", "a-rather-long-key-with-the-number-5"]
UNKEYED = ""  # the counter's row for messages without a key

# (content type, payload). JSON is written in ways that a parser and printer would not give back.
FORMS = [
    (None, '{"n":%d,"price":1.50,"text":"é \\u00e9 \\\\ \\" </&>","big":12345678901234567890}'),
    ("application/json", '[ %d, 1e2, {"a":1,  "b":"\\/"} ]'),
    ("text/plain", 'number %d: "quoted", tab\t, ünïcödé 🎉'),
    ("application/octet-stream", b"\x00\x01\xff number %d \xc3\x28"),
]


@dataclass(frozen=True)
class Message:
    id: str
    key: object  # None: no key
    n: int
    seq: int
    type: str
    content_type: str
    payload: object  # str or bytes
    headers: object  # dict or None


@dataclass
class Ledger:
    committed: list = field(default_factory=list)    # Message, in log order
    rolled_back: list = field(default_factory=list)  # Message


class Producer:
    def __init__(self, shop, rng, pause=0.002):
        self.shop = shop
        self.rng = rng
        self.pause = pause
        self.ledger = Ledger()
        self.refused = 0  # transactions that the database did not take: disk full
        self.placed = 0
        self.db = None
        self.stopping = threading.Event()
        self.thread = None
        self.error = None

    def place(self):
        """A business row and its message in the transaction that is open."""
        key = self.rng.choice([*KEYS, None])
        n = self.db.execute(
            "INSERT INTO counter (key, n) VALUES (?, 1)"
            " ON CONFLICT (key) DO UPDATE SET n = counter.n + 1 RETURNING n", (key or UNKEYED,)).fetchone()[0]
        self.placed += 1
        content_type, form = self.rng.choice(FORMS)
        payload = form % self.placed
        headers = {"tenant": f"t{n % 3}", "X-Note": "a \"quoted\" ü"} if self.rng.random() < .5 else None
        kind = self.rng.choice(["order.placed", "order.paid", "invoice.sent"])
        given = str(uuid.uuid4()) if self.rng.random() < .3 else None
        column = "payload" if isinstance(payload, str) else "payload_bin"
        names = ["type", "key", column, "content_type", "headers"] + (["id"] if given else [])
        values = [kind, key, payload, content_type, json.dumps(headers) if headers else None]
        row = self.db.execute(
            f"INSERT INTO outbox_message ({', '.join(names)})"
            f" VALUES ({', '.join('?' * len(names))}) RETURNING id, seq",
            values + ([given] if given else [])).fetchone()
        self.db.execute("INSERT INTO orders (key, n, message) VALUES (?, ?, ?)", (key, n, row[0]))
        return Message(row[0], key, n, row[1], kind, content_type or "application/json", payload,
                       headers)

    def body(self, kept, gone):
        for _ in range(self.rng.choice([1, 1, 1, 2, 5])):
            kept.append(self.place())
            if self.rng.random() < .15:
                self.db.execute("SAVEPOINT change_of_mind")
                gone.append(self.place())
                self.db.execute("ROLLBACK TO change_of_mind")
                self.db.execute("RELEASE change_of_mind")

    def transaction(self):
        kept, gone = [], []
        try:
            self.db.execute(self.shop.begin)
            self.body(kept, gone)
            if self.rng.random() < .2:
                self.db.execute("ROLLBACK")
                kept, gone = [], kept + gone
            else:
                self.db.execute("COMMIT")
        except self.shop.error as error:
            # A full disk refuses; the application rolls back and the order was never placed.
            if "full" not in str(error) and "disk I/O" not in str(error):
                raise
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            self.refused += 1
            kept, gone = [], kept + gone
        self.ledger.committed += kept
        self.ledger.rolled_back += gone

    def publish(self, messages):
        """Publish at least so many committed messages, here and now."""
        self.db = self.db or self.shop.connect()
        wanted = len(self.ledger.committed) + messages
        while len(self.ledger.committed) < wanted and not self.stopping.is_set():
            self.transaction()
            if self.thread:
                time.sleep(self.pause)

    def publish_refused(self, transactions):
        """Try until so many transactions were refused by a full disk."""
        wanted = self.refused + transactions
        for _ in range(200):
            if self.refused >= wanted:
                return
            self.transaction()
        raise AssertionError("the disk is not full")

    def start(self, messages):
        """Publish from a thread, while the test does something else."""
        def run():
            try:
                self.publish(messages)
            except Exception as error:  # pylint: disable=broad-except
                self.error = error

        self.stopping.clear()
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def busy(self):
        return self.thread is not None and self.thread.is_alive()

    def finish(self, stop=False):
        """Wait for the thread; stop=True ends it early. Returns the ledger."""
        if stop:
            self.stopping.set()
        if self.thread:
            self.thread.join(120)
            assert not self.thread.is_alive(), "the producer hangs: is the database locked?"
            self.thread = None
        if self.error:
            raise self.error
        assert self.ledger.committed and self.ledger.rolled_back, "nothing was tried"
        return self.ledger

    def close(self):
        self.stopping.set()
        if self.thread:
            self.thread.join(60)
        if self.db:
            self.db.close()
