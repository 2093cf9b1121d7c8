# SPDX-License-Identifier: Apache-2.0
"""What was committed, and whether it arrived: once, in order, and nothing else."""
import collections
import threading

SHOWN = 5


class Ledger:
    """Written by writers: what they meant, and how their transactions ended."""

    def __init__(self):
        self.lock = threading.Lock()
        self.committed = {}       # id: (key, n, type)
        self.rolled_back = set()  # ids
        self.transactions = collections.Counter()

    def ended(self, kind, kept, gone, committed):
        with self.lock:
            self.transactions[kind, "committed" if committed else "rolled back"] += 1
            if committed:
                self.committed.update(kept)
                self.rolled_back.update(gone)
            else:
                self.rolled_back.update(kept, gone)

    def expected(self, pattern=None):
        with self.lock:
            return {id for id, (_, _, kind) in self.committed.items()
                    if not pattern or kind.startswith(pattern)}


class Arrivals:
    """The reader's log: 'D target lane seq id key' for sent, 'A target seq' for sent and not settled."""

    def __init__(self):
        self.order = collections.defaultdict(list)         # target: ids in order of arrival
        self.seqs = {}                                     # id: seq
        self.lanes = collections.defaultdict(set)          # (target, id): lanes
        self.abandoned = collections.Counter()             # (target, seq)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                word = line.split()
                if not line.endswith("\n"):
                    break  # is being written
                if word[0] == "A":
                    self.abandoned[word[1], int(word[2])] += 1
                else:
                    _, target, lane, seq, id, _ = word
                    self.order[target].append(id)
                    self.seqs[id] = int(seq)
                    self.lanes[target, id].add(int(lane))
        return self


def out_of_order(ledger, ids):
    last, seen = {}, set()
    for id in ids:
        if id in seen or id not in ledger.committed:
            continue
        seen.add(id)
        key, n, _ = ledger.committed[id]
        if key is not None and n < last.get(key, 0):
            yield f"{id}: {key}/{n} after {key}/{last[key]}"
        elif key is not None:
            last[key] = n


def judge(ledger, arrivals, target, pattern=None):
    """A list of what is wrong with what arrived at one target."""
    problems = []

    def tell(what, examples):
        examples = sorted(examples)
        if examples:
            problems.append(f"{target}: {what}: {len(examples)} ({', '.join(map(str, examples[:SHOWN]))})")

    ids = arrivals.order[target]
    times = collections.Counter(ids)
    expected = ledger.expected(pattern)
    tell("lost", expected - set(times))
    tell("phantom, rolled back", set(times) & ledger.rolled_back)
    tell("phantom, never published or not routed", set(times) - expected - ledger.rolled_back)
    tell("twice without a crash", (f"{id} x{count}" for id, count in times.items()
                                   if count > 1 + arrivals.abandoned[target, arrivals.seqs[id]]))
    tell("in two lanes", (id for id in times if len(arrivals.lanes[target, id]) > 1))
    tell("out of order", out_of_order(ledger, ids))
    return problems
