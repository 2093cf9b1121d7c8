# SPDX-License-Identifier: Apache-2.0
"""A business database in PostgreSQL, with the same face as kit.Shop: a database of its own in the server that
OUTBOX_TEST_POSTGRES names (tests/support/with-postgres)."""
import itertools
import os
import re

import psycopg2

from kit import Shop, outbox

SERVER = os.environ.get("OUTBOX_TEST_POSTGRES")
NUMBERS = itertools.count(1)
LAST = "(SELECT DISTINCT ON (target, lane) * FROM outbox_receipt ORDER BY target, lane, n DESC) last"


class Connection:
    """psycopg2 as sqlite3 has it: execute() on the connection, ? for values, BEGIN by hand."""

    def __init__(self, url, patience=10):
        self.db = psycopg2.connect(url, connect_timeout=patience)
        self.db.autocommit = True

    @property
    def in_transaction(self):
        return self.db.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE

    def execute(self, sql, values=()):
        cursor = self.db.cursor()
        cursor.execute(re.sub(r"\?", "%s", sql.replace("%", "%%") if values else sql), values or None)
        return cursor

    def close(self):
        self.db.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class PostgresShop(Shop):
    begin = "BEGIN"
    error = psycopg2.Error
    long_ago = "'2000-01-01'"

    def __init__(self, folder, lanes=1, options="", server=None, tablespace="pg_default"):
        del folder
        server = server or SERVER
        assert server, "OUTBOX_TEST_POSTGRES is not set (tests/support/with-postgres sets it)"
        name = f"shop_{os.getpid()}_{next(NUMBERS)}"
        with Connection(server) as db:
            db.execute(f"CREATE DATABASE {name} TABLESPACE {tablespace}")
        self.url = server.rsplit("/", 1)[0] + "/" + name  # for ourselves; relays may go another way
        self.store = self.url + options
        self.lanes = lanes
        outbox("init", "--store", self.url, "--lanes", lanes)
        self.execute("CREATE TABLE orders (number bigserial PRIMARY KEY, key text, n bigint, message text)")
        self.execute("CREATE TABLE counter (key text PRIMARY KEY, n bigint NOT NULL)")

    def locked(self):
        return False  # nobody locks a whole database here

    def connect(self, busy=30):
        del busy
        return Connection(self.url)

    def execute(self, sql, *values):
        with self.connect() as db:
            db.execute(sql, values)

    def in_flight(self, relay=None):
        return self.value(f"SELECT coalesce(sum(claim_count), 0) FROM {LAST} WHERE coalesce(owner, '') LIKE ?",
                          f"%:{relay.process.pid}:%" if relay else "%")

    def check(self):
        """The receipts of each lane follow each other, positions never go back, nothing is in flight."""
        rows = self.rows("SELECT target, lane, n, prev_seq, cur_seq, pos, claim_end, prev::text, cur::text, claim_count"
                         " FROM outbox_receipt ORDER BY target, lane, n")
        last = {}
        for target, lane, n, prev_seq, cur_seq, pos, claim_end, prev, cur, claim_count in rows:
            where = f"receipt {target}/{lane}/{n}"
            assert prev_seq <= cur_seq and 0 <= pos <= claim_end, f"{where}: {prev_seq} {cur_seq} {pos} {claim_end}"
            before = last.get((target, lane))
            if before:
                assert n == before[0] + 1, f"{where} follows {before[0]}: a gap"
                assert prev_seq >= before[1], f"{where}: {prev_seq} is below {before[1]} before it"
                assert prev != before[3] or pos >= before[2], f"{where}: position {pos} is below {before[2]}"
                assert prev in (before[3], before[4], cur), f"{where}: from where comes {prev}?"
            last[(target, lane)] = (n, prev_seq, pos, prev, cur, claim_count)
        assert len(last) == self.lanes, f"lanes with receipts: {sorted(last)}"
        in_flight = {lane: row[5] for lane, row in last.items() if row[5]}
        assert not in_flight, f"still in flight: {in_flight}"
