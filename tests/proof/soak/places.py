# SPDX-License-Identifier: Apache-2.0
"""Two sources and three targets: what the daemon of a soak works on, and what arrived."""
import glob
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "integration"))
sys.path.insert(0, os.path.join(HERE, "..", "chaos"))
# pylint: disable=wrong-import-position
import brokers
from oracle import judge
from stores import StubbornProducer, make_store

LANES = 4
PAUSE = .02  # between two transactions of a producer: the faults are the point, not the load


class Redis(brokers.Redis):
    """Its stream's name is a template, so that a stream in the way is one message's fault and not the target's."""
    stream = f"{brokers.NAME}.event"

    def __init__(self):
        super().__init__()
        self.target = f"redis://127.0.0.1:{self.port}/?stream={brokers.NAME}.{{kind}}"

    def client(self):
        import redis  # pylint: disable=import-outside-toplevel
        return redis.Redis(port=self.port, socket_timeout=brokers.PATIENCE)

    def read(self):
        return [fields[b"event"] for _, fields in self.client().xrange(self.stream)]


class File:
    """A file that is rotated now and then."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "copy.jsonl")
        self.target = f"file:{self.path}"
        self.rotated = 0

    def rotate(self):
        self.rotated += 1
        if os.path.exists(self.path):
            os.rename(self.path, f"{self.path}.{self.rotated:05d}")

    def read(self):
        bodies = []
        for path in [*sorted(glob.glob(self.path + ".*[0-9]")), self.path]:
            with open(path, "rb") as file:
                bodies += file.read().splitlines()
        return bodies


class Source:
    """A database with a producer of its own."""

    def __init__(self, kind, folder, seed):
        self.name = kind
        self.shop = make_store(kind, folder, LANES)
        self.producer = StubbornProducer(self.shop, random.Random(f"{seed}/{kind}"), pause=PAUSE)

    @property
    def ids(self):
        return {m.id for m in self.producer.ledger.committed + self.producer.ledger.rolled_back}

    def in_flight(self):
        try:
            return self.shop.in_flight()
        except self.shop.error:  # it is away
            return 0

    def taken_out(self):
        """Whose place in its key's order an operator has changed."""
        return {row[0] for row in self.shop.rows("SELECT id FROM outbox_audit WHERE action IN ('requeue', 'defer')")}


def judge_target(name, bodies, sources):
    """(problems, duplicates) of what arrived at one target from all the sources."""
    split = {source.name: [] for source in sources}
    owner = {ident: source.name for source in sources for ident in source.ids}
    problems, duplicates = [], 0
    for body in bodies:
        ident = json.loads(body)["id"]
        if ident in owner:
            split[owner[ident]].append(body + b"\n")
        else:
            problems.append(f"{name}: phantom, never published: {ident}")
    for source in sources:
        verdict = judge(source.producer.ledger, split[source.name], 10**9, source.taken_out())
        problems += [f"{source.name} -> {name}: {problem}" for problem in verdict.problems]
        duplicates += verdict.duplicates
    return problems, duplicates
