# SPDX-License-Identifier: Apache-2.0
"""Large transactions are read once and not again; quiet lanes do not read what is not theirs again and again.

Rows that the server's indexes handed out are counted, not seconds.
"""
import os
import re
import subprocess
import time

from kit import PATIENCE, until
from ledger import Arrivals

READER = os.environ.get("OUTBOX_PG_READER")
ROWS = int(os.environ.get("OUTBOX_TEST_ROWS") or 100_000)
LANES = 4
AHEAD = 1000  # rows that an idle lane may look at again


class Count:
    """Rows of a table that were fetched since it was made."""

    def __init__(self, shop, table="outbox_message"):
        self.shop = shop
        self.table = table
        self.before = self.now()

    def now(self):
        with self.shop.connect() as db:
            return db.execute("SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) FROM pg_stat_user_tables"
                              " WHERE relname = ?", (self.table,)).fetchone()[0]

    def fetched(self):
        """Sessions report when they end, or after a second of rest."""
        seen = -1
        while seen != (seen := self.now()):
            time.sleep(1.2)
        return int(seen - self.before)


def read(shop, folder, *targets, chunk=500, size=1 << 20, ready=None):
    """Drain with a well-behaved reader; it checks itself that no claim is larger than asked for."""
    log = os.path.join(folder, "reader.log")
    command = [READER, "--url", shop.store, "--log", log, "--calm", str(chunk), "--bytes", str(size)]
    for target in targets:
        command += ["--target", target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        try:
            if ready:
                ready(log)
            said, _ = reader.communicate(timeout=5 * PATIENCE)
        finally:
            reader.kill()
    assert reader.returncode == 0, said
    return Arrivals().read(log), said


def bulk(shop, rows, payload=200):
    with shop.connect() as db:
        db.execute("INSERT INTO outbox_message (type, key, payload) SELECT 'order.placed', 'k' || i % 1000,"
                   " repeat('x', ?) FROM generate_series(1, ?) i", (payload, rows))
        db.execute("ANALYZE outbox_message")


def test_one_large_transaction(make, server, tmp_path):
    shop, _, _ = make(server, LANES)
    held = shop.connect()  # began before it and is still open: its window has to be remembered
    held.execute("BEGIN")
    held.execute("INSERT INTO outbox_message (type, payload) VALUES ('late', '{}')")
    bulk(shop, ROWS)
    count = Count(shop)
    began = time.monotonic()
    arrivals, _ = read(shop, tmp_path, "all")
    took = time.monotonic() - began
    assert len(arrivals.order["all"]) == len(set(arrivals.order["all"])) == ROWS
    fetched = count.fetched()
    print(f"{ROWS} rows of one transaction: {ROWS / took:.0f}/s, {fetched / ROWS:.1f} rows fetched for each")
    # Every lane looks at every row, and that is all: read anew with each chunk, it would be hundreds.
    assert fetched < ROWS * LANES * 4, f"{fetched} rows fetched for {ROWS} messages"
    held.execute("COMMIT")
    arrivals, _ = read(shop, tmp_path, "all")
    assert len(arrivals.order["all"]) == 1


def test_large_transaction_that_commits_late(make, server, tmp_path):
    """It was running when the others were read: its rows lie below the position, found by its xid."""
    shop, _, _ = make(server, LANES)
    with shop.connect() as late:
        late.execute("BEGIN")
        late.execute("INSERT INTO outbox_message (type, key, payload) SELECT 'order.placed', 'k' || i % 1000, 'x'"
                     " FROM generate_series(1, ?) i", (ROWS // 2,))
        bulk(shop, ROWS // 10)
        arrivals, _ = read(shop, tmp_path, "all")
        assert len(arrivals.order["all"]) == ROWS // 10
        late.execute("COMMIT")
    shop.execute("ANALYZE outbox_message")
    count = Count(shop)
    arrivals, _ = read(shop, tmp_path, "all")
    assert len(set(arrivals.order["all"])) == len(arrivals.order["all"]) == ROWS // 2
    fetched = count.fetched()
    print(f"{fetched / (ROWS // 2):.1f} rows fetched for each")
    assert fetched < (ROWS // 2) * LANES * 4, f"{fetched} rows fetched for {ROWS // 2} messages"


def test_large_payloads_stay_within_the_budget(make, server, tmp_path):
    shop, _, _ = make(server, LANES)
    bulk(shop, 400, payload=50_000)
    arrivals, _ = read(shop, tmp_path, "all", size=300_000)
    assert len(arrivals.order["all"]) == 400


def test_quiet_lanes_move_and_do_not_read_again(make, server, tmp_path):
    """A target that wants nothing of what comes: its receipts follow the log, and its polls are cheap."""
    shop, _, _ = make(server, LANES)
    read(shop, tmp_path, "quiet=rare.*")
    count = Count(shop)

    def work(_):
        for _ in range(20):
            bulk(shop, ROWS // 100)
            time.sleep(.05)
        until(lambda: follows() > ROWS // 5 - 2 * AHEAD, "the quiet lanes to follow the log")
        time.sleep(1)  # some hundred polls of each lane, each 1 to 4 ms after the last

    def follows():
        return shop.value("SELECT min(cur_seq) FROM (SELECT DISTINCT ON (target, lane) cur_seq FROM outbox_receipt"
                          " WHERE target = 'quiet' ORDER BY target, lane, n DESC) p")

    _, said = read(shop, tmp_path, "quiet=rare.*", ready=work)
    fetched = count.fetched()
    polls = int(re.search(r"idle polls (\d+)", said)[1])
    receipts = shop.value("SELECT count(*) FROM outbox_receipt WHERE target = 'quiet'")
    print(f"{ROWS // 5} rows of others: {fetched} fetched by {LANES} quiet lanes in {polls} idle polls,"
          f" {receipts} receipts")
    assert receipts <= LANES * (ROWS // 5 // AHEAD + 5), "more receipts than moves"
    # Without receipts that move, each poll would read all that came so far.
    assert fetched < LANES * (ROWS // 5) * 4 + polls * (AHEAD + ROWS // 100), f"{fetched} rows fetched"



ADVANCE = """SELECT count(*) - 1 FROM outbox_advance('all', 0, 'me', ?, ?, 77, ?,
    ROW(0, 0, 0, 0, '{}', '{}', '{}', '{}', '{}', '{}', '{}')::outbox_outcomes, 500, 1000000, NULL)"""


def test_late_messages_cost_what_they_are(make, server, tmp_path):
    """In a long log, those of a transaction that commits late are found by its number; also when the answer to their
    claim was lost and it is asked for again."""
    shop, _, _ = make(server, 1)
    with shop.connect() as late:
        late.execute("BEGIN")
        late.execute("INSERT INTO outbox_message (type, key, payload) VALUES ('late', 'k', '{}')")
        bulk(shop, ROWS // 2)
        read(shop, tmp_path, "all")
        late.execute("COMMIT")
    with shop.connect() as db:
        n, token, version = db.execute("SELECT n, token, route_version FROM outbox_receipt WHERE target = 'all'"
                                       " ORDER BY n DESC LIMIT 1").fetchone()
    for what in "claimed", "claimed again":
        count = Count(shop)
        with shop.connect() as db:
            assert db.execute(ADVANCE, (n, token, version)).fetchone()[0] == 1, what
        fetched = count.fetched()
        print(f"one late message {what}: {fetched} rows fetched in a log of {ROWS // 2}")
        assert fetched < 100, f"{what}: {fetched} rows fetched for one late message"


def test_late_messages_of_others_are_looked_at_once(make, server, tmp_path):
    """Quiet lanes went past them while their transaction ran; once it is committed, not every poll looks at them."""
    shop, _, _ = make(server, LANES)
    read(shop, tmp_path, "quiet=rare.*")
    rows = ROWS // 10
    counts = []

    def work(_):
        with shop.connect() as late:
            late.execute("BEGIN")
            late.execute("INSERT INTO outbox_message (type, payload) SELECT 'order.placed', 'x'"
                         " FROM generate_series(1, ?)", (rows,))
            until(lambda: shop.value("SELECT min(cur_seq) FROM (SELECT DISTINCT ON (lane) cur_seq FROM outbox_receipt"
                                     " ORDER BY lane, n DESC) p") >= rows - AHEAD, "the quiet lanes to follow the log")
            counts.append(Count(shop))
            late.execute("COMMIT")
        time.sleep(1)

    _, said = read(shop, tmp_path, "quiet=rare.*", ready=work)
    fetched = counts[0].fetched()
    polls = int(re.search(r"idle polls (\d+)", said)[1])
    print(f"{rows} late rows of others: {fetched} fetched by {LANES} quiet lanes in {polls} idle polls")
    assert fetched < LANES * rows * 4 + polls * AHEAD, f"{fetched} rows fetched"


def test_what_waits_costs_the_others_nothing(make, server, tmp_path):
    """Claims beside thousands of deliveries that wait for a retry read those which they take, not all of them."""
    shop, _, _ = make(server, LANES)
    bulk(shop, 3000)
    read(shop, tmp_path, "all")
    with shop.connect() as db:
        db.execute("INSERT INTO outbox_detour (target, seq, id, key, lane, state, why, attempts, next_attempt_at, last_status_at)"
                   " SELECT 'all', m.seq, m.id, m.key, m.slot % ?, 'pending', 'retry', 1,"
                   " now() + CASE WHEN m.seq <= 200 THEN interval '0' ELSE interval '1 day' END, now() FROM outbox_message m", (LANES,))
        db.execute("INSERT INTO outbox_message (type, key, payload) SELECT 'order.placed', 'n' || i, 'x' FROM generate_series(1, 2000) i")
    (tmp_path / "reader.log").unlink()

    def wait_and_end(log):
        until(lambda: os.path.exists(log) and len(Arrivals().read(log).order["all"]) == 2200, "all that can be sent")
        with shop.connect() as db:  # what waits for tomorrow would keep the reader
            db.execute("DELETE FROM outbox_detour WHERE next_attempt_at > now()")

    count = Count(shop, "outbox_detour")
    read(shop, tmp_path, "all", chunk=50, ready=wait_and_end)
    # A few for each that was due, and 3,000 to delete the others; with any other plan some 50 claims read 3,000 each.
    fetched = count.fetched()
    print(f"{fetched} detours fetched")
    assert fetched < 20000, f"{fetched} detours fetched"
