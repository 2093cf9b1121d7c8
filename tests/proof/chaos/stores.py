# SPDX-License-Identifier: Apache-2.0
"""The stores under chaos, and a producer that goes on when its database goes away in the middle of a transaction."""
import os
import subprocess
import time

from kit import Shop
from producer import Producer


class SqliteStore(Shop):
    """Has no server that could die."""

    def trouble(self, rng):
        del rng

    def go_on(self):
        pass


def postgres_store(folder, lanes):
    from pgshop import PostgresShop  # pylint: disable=import-outside-toplevel

    class PostgresStore(PostgresShop):
        def trouble(self, rng):
            """The server dies and recovers, or all its sessions do."""
            if rng.random() < .5:
                command = [os.environ["PG_BIN"] + "/pg_ctl", "-D", os.environ["PGDATA"], "-m", "immediate", "-w", "-t", "60",
                           "-l", os.path.join(os.environ["PGDATA"], "..", "log"), "restart"]
                if os.getuid() == 0:
                    command = ["runuser", "-u", "postgres", "--", *command]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                return "database restarted"
            try:
                self.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                             " WHERE pid <> pg_backend_pid() AND datname = current_database()")
            except self.error:
                pass
            return "sessions ended"

        def go_on(self):
            pass

    return PostgresStore(folder, lanes=lanes)


def make_store(kind, folder, lanes):
    return SqliteStore(folder, lanes=lanes) if kind == "sqlite" else postgres_store(folder, lanes)


class StubbornProducer(Producer):
    """An error may have come before or after the commit: what is in the business tables was committed."""

    def reconnect(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                self.db = self.shop.connect()
                self.db.execute("SELECT 1")
                return
            except self.shop.error:
                assert time.monotonic() < deadline, "the database does not come back"
                time.sleep(.1)

    def was_committed(self, message):
        while True:
            try:
                return bool(self.db.execute("SELECT count(*) FROM orders WHERE message = ?", (message.id,)).fetchone()[0])
            except self.shop.error:
                self.reconnect()

    def transaction(self):
        kept, gone, committed = [], [], False
        try:
            self.db.execute(self.shop.begin)
            self.body(kept, gone)
            committed = self.rng.random() >= .2
            self.db.execute("COMMIT" if committed else "ROLLBACK")
        except self.shop.error:
            self.refused += 1
            self.reconnect()
            committed = bool(kept) and self.was_committed(kept[0])
        if not committed:
            kept, gone = [], kept + gone
        self.ledger.committed += kept
        self.ledger.rolled_back += gone


