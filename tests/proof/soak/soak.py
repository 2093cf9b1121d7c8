#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One daemon for a long time, and everything around it goes wrong: soak.py [--seconds N] [--seed N]

Started by tests/proof/soak/run beside real servers. A daemon with two sources (PostgreSQL, SQLite) and three targets (Redis, a file
that is rotated, NATS) delivers what two producers commit, while faults happen at random: see faults.py. In the last
third the daemon is not killed any more, so that it lives through many faults. Then all is left in peace: nothing may be lost, nothing
sent that was rolled back, each key in order, payloads byte for byte, and the daemon has no more memory and descriptors than a new one.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
# pylint: disable=wrong-import-position
from places import File, Redis, Source, brokers, judge_target
from faults import Faults
from kit import BINARY, Relay, until

PATIENCE = 180
# What an old daemon may have more than a new one: allocators keep some of what once was used.
MORE_MEMORY_KIB = 24 * 1024
MORE_DESCRIPTORS = 8


class Daemon:
    def __init__(self, folder, sources, targets):
        self.folder, self.sources, self.targets = folder, sources, targets
        self.config = os.path.join(folder, "outbox.yaml")
        self.settings = {"batch": 50, "rate": "none"}
        self.relay = None
        self.started = 0
        self.configure()

    def configure(self, **changes):
        self.settings.update(changes)
        lines = ["sources:"]
        for source in self.sources:
            lines += [f"  - name: {source.name}", f'    store: "{source.shop.store}"']
        lines += ["targets:"]
        for name, place in self.targets.items():
            lines += [f"  - name: {name}", f'    to: "{place.target}"', "    envelope: structured", "    start: oldest",
                      f"    batch: {self.settings['batch']}",
                      f"    rate: {self.settings['rate']}", "    retry: { max_attempts: 2, base: 100ms, cap: 200ms }"]
        lines += ["relay: { lease: 2s }", "health: { interval: 1s }"]
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.rename(self.config + ".new", self.config)

    def start(self):
        self.started += 1
        log = os.path.join(self.folder, f"daemon-{self.started:04d}.log")
        self.relay = Relay(log, ["--config", self.config], dict(os.environ))
        until(lambda: "relay.start" in self.relay.log() or self.relay.dead, "the daemon to begin")

    def signal(self, number):
        self.relay.signal(number)

    def kill(self):
        self.relay.kill()

    def end(self):
        self.relay.end()

    def check(self):
        """None that has begun may end by itself."""
        assert not self.relay.dead, f"the daemon ended by itself with {self.relay.code}:\n{self.relay.log()[-3000:]}"

    def size(self):
        """(resident memory in KiB, open descriptors)"""
        pid = self.relay.process.pid
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            memory = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        return memory, len(os.listdir(f"/proc/{pid}/fd"))


class Soak:
    def __init__(self, options, folder):
        self.options = options
        self.sources = [Source(kind, folder, options.seed) for kind in ("postgres", "sqlite")]
        self.targets = {"events": Redis(), "copy": File(folder), "audit": brokers.Nats()}
        self.daemon = Daemon(folder, self.sources, self.targets)
        self.rng = random.Random(options.seed)
        self.faults = Faults(self.rng, self.daemon, self.sources, *(self.targets[n] for n in ("events", "audit", "copy")))
        self.counts = collections.Counter()
        self.problems = []

    def work(self):
        self.targets["audit"].prepare()
        self.daemon.start()
        for source in self.sources:
            source.producer.reconnect()
            source.producer.start(10**9)
        begun = time.monotonic()
        deeds, pending = self.faults.all(), []
        while (gone := time.monotonic() - begun) < self.options.seconds:
            pending = pending or self.rng.sample(deeds, len(deeds))  # each of them in turn, in any order
            deed = pending.pop()
            if deed in (self.faults.daemon_killed, self.faults.daemon_ended) and gone > self.options.seconds * 2 / 3:
                continue
            deed()
            self.counts[deed.__name__] += 1
            self.daemon.check()
            time.sleep(self.rng.uniform(0, .5))
        for source in self.sources:
            source.producer.finish(stop=True)

    # ---- peace -----------------------------------------------------------------------------------

    def unfinished(self):
        done = subprocess.run([BINARY, "status", "--config", self.daemon.config, "--json"], capture_output=True, check=False)
        self.daemon.check()
        try:
            found = json.loads(done.stdout)
        except ValueError:
            return f"status: {done.stderr.decode()}"
        left = collections.Counter()
        for source in found["sources"]:
            if len(source.get("targets", ())) != len(self.targets):
                return f"{source}"
            for target in source["targets"]:
                for name in ("pending", "sending", "waiting", "parked", "deferred", "failed"):
                    left[name] += target[name]
        if left["failed"]:
            self.faults.requeue()
        return +left

    def settle(self):
        self.faults.make_peace()
        try:
            until(lambda: not self.unfinished(), "everything to be delivered", PATIENCE)
        except AssertionError:
            print(f"left: {self.unfinished()}\n{self.daemon.relay.log()[-5000:]}")
            raise

    def compare_sizes(self):
        """The daemon that lived through it all, and a new one that has nothing to do."""
        memory, descriptors = self.daemon.size()
        self.daemon.end()
        self.daemon.start()
        until(lambda: not self.unfinished(), "the new daemon", PATIENCE)
        time.sleep(2)  # its connections are made
        new_memory, new_descriptors = self.daemon.size()
        self.daemon.end()
        if memory > new_memory + MORE_MEMORY_KIB:
            self.problems.append(f"memory: {memory} KiB, a new daemon has {new_memory} KiB")
        if descriptors > new_descriptors + MORE_DESCRIPTORS:
            self.problems.append(f"descriptors: {descriptors}, a new daemon has {new_descriptors}")
        return f"memory {memory} KiB (new {new_memory}), descriptors {descriptors} (new {new_descriptors})"

    def report(self, sizes, duplicates):
        ledgers = [source.producer.ledger for source in self.sources]
        deeds = ", ".join(f"{what} {count}" for what, count in sorted(self.counts.items()))
        print(f"soak seed {self.options.seed}: {sum(len(l.committed) for l in ledgers)} committed, "
              f"{sum(len(l.rolled_back) for l in ledgers)} rolled back, {len(self.targets)} targets, "
              f"{sum(self.counts.values())} faults, {duplicates} duplicates, {sizes}, {len(self.problems)} problems; {deeds}")
        for problem in self.problems:
            print("PROBLEM", problem)

    def run(self):
        try:
            self.work()
            self.settle()
            sizes = self.compare_sizes()
            duplicates = 0
            for name, place in self.targets.items():
                problems, twice = judge_target(name, place.read(), self.sources)
                self.problems += problems
                duplicates += twice
            self.report(sizes, duplicates)
            return 1 if self.problems else 0
        finally:
            for source in self.sources:
                source.producer.stopping.set()
            if self.daemon.relay and not self.daemon.relay.dead:
                self.daemon.signal(signal.SIGCONT)
                self.daemon.kill()
            self.targets["audit"].close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("OUTBOX_TEST_SEED") or random.randrange(2**31)))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outbox-soak-") as folder:
        try:
            return Soak(options, folder).run()
        except BaseException:
            print(f"soak seed {options.seed} broke off", flush=True)
            raise


sys.exit(main())
