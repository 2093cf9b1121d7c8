# SPDX-License-Identifier: Apache-2.0
"""A producer that lives through the loss of its connection, as a careful application does.

When a COMMIT is not answered, nobody knows what became of it: it connects again and looks.
"""
import time

from kit import PATIENCE
from producer import Producer


class SturdyProducer(Producer):
    def __init__(self, shop, rng, pause=0.002):
        super().__init__(shop, rng, pause)
        self.lost = 0  # connections

    def again(self):
        """A new connection; waits while there is no server."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.db:
                    self.db.close()
                self.db = self.shop.connect()
                return self.db
            except self.shop.error:
                assert time.monotonic() < deadline, "no server to connect to"
                time.sleep(.05)

    def stored(self, ids):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return {row[0] for row in self.again().execute(
                    "SELECT id FROM outbox_message WHERE id = ANY (?)", (ids,)).fetchall()}
            except self.shop.error:
                assert time.monotonic() < deadline, "cannot read what was stored"
                time.sleep(.05)

    def transaction(self):
        kept, gone = [], []
        rolled_back = False
        try:
            self.db.execute(self.shop.begin)
            self.body(kept, gone)
            rolled_back = self.rng.random() < .2
            self.db.execute("ROLLBACK" if rolled_back else "COMMIT")
        except self.shop.error as error:
            if getattr(error, "pgcode", None) == "53100":  # disk full: the server is there and says no
                self.refused += 1
                self.again()
                rolled_back = True
            else:
                self.lost += 1
                there = self.stored([message.id for message in kept])
                assert there in (set(), {message.id for message in kept}), "a transaction was torn"
                rolled_back = not there
        self.ledger.committed += [] if rolled_back else kept
        self.ledger.rolled_back += gone + (kept if rolled_back else [])
