#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Everything dies at random, and nothing is lost: chaos.py --store sqlite|postgres --broker NAME [--seconds N] [--seed N]

Started by tests/proof/chaos/run beside real servers. Three relays deliver what a producer commits, while relays and the broker
are killed and stopped, and the database is restarted. Then everything is left in peace, and the ledger is compared with
what arrived: nothing lost, nothing that was rolled back, the payloads byte for byte, each key in order.
"""
import argparse
import collections
import os
import random
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "system", "integration"))
sys.path.insert(0, HERE)
# pylint: disable=wrong-import-position
from brokers import BROKERS
from kit import Relay, until
from oracle import judge
from stores import StubbornProducer, make_store

RELAYS = 3
LANES = 4
PATIENCE = 120


class Chaos:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.rng = random.Random(options.seed)
        self.shop = make_store(options.store, folder, LANES)
        self.broker = BROKERS[options.broker]()
        self.producer = StubbornProducer(self.shop, random.Random(options.seed + 1), pause=.003)
        self.relays = []
        self.logs = 0
        self.counts = collections.Counter()

    def start_relay(self):
        self.logs += 1
        args = ["--store", self.shop.store, "--to", f"events={self.broker.target}", "--envelope", "events=structured",
                "--lease", "1s", "--batch", "50"]
        return Relay(os.path.join(self.folder, f"relay-{self.logs}.log"), args, dict(os.environ))

    # ---- what may happen ----------------------------------------------------------------------------

    def kill_relay(self):
        i = self.rng.randrange(RELAYS)
        self.relays[i].kill()
        self.relays[i] = self.start_relay()
        return "relay killed"

    def stop_relay(self):
        relay = self.rng.choice(self.relays)
        relay.signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(.2, 2.5))  # also longer than its lease
        relay.signal(signal.SIGCONT)
        return "relay stopped"

    def end_relay(self):
        i = self.rng.randrange(RELAYS)
        self.relays[i].signal(signal.SIGTERM)
        self.relays[i].wait()
        self.relays[i] = self.start_relay()
        return "relay ended"

    def kill_broker(self):
        self.broker.kill()
        time.sleep(self.rng.uniform(0, 1.5))
        self.broker.restart()
        return "broker killed"

    def stop_broker(self):
        self.broker.stop()
        time.sleep(self.rng.uniform(.1, 2))
        self.broker.go_on()
        return "broker stopped"

    def trouble_store(self):
        return self.shop.trouble(self.rng)

    def look_after_relays(self):
        """As a supervisor does: one that could not begin is started again. None that has begun may end by itself."""
        for i, relay in enumerate(self.relays):
            if relay.dead and "relay.start" in relay.log():
                raise AssertionError(f"a relay ended by itself with {relay.code}:\n{relay.log()[-3000:]}")
            if relay.dead:
                self.counts["relay could not begin"] += 1
                self.relays[i] = self.start_relay()

    def work(self):
        deeds = [self.kill_relay, self.stop_relay, self.end_relay, self.kill_broker, self.stop_broker]
        if self.options.store == "postgres":
            deeds.append(self.trouble_store)
        self.broker.prepare()
        self.relays = [self.start_relay() for _ in range(RELAYS)]
        self.producer.reconnect()  # here, where nothing has died yet
        self.producer.start(10**9)
        deadline = time.monotonic() + self.options.seconds
        pending = []
        while time.monotonic() < deadline:
            pending = pending or self.rng.sample(deeds, len(deeds))  # each of them in turn, in any order
            self.counts[pending.pop()()] += 1
            time.sleep(self.rng.uniform(.1, .8))
            self.look_after_relays()
        return self.producer.finish(stop=True)

    # ---- peace -----------------------------------------------------------------------------------

    def unfinished(self):
        target, = self.shop.status()["targets"]
        return sum(target[name] for name in ("pending", "sending", "waiting", "parked"))

    def settle(self):
        try:
            until(lambda: self.look_after_relays() or self.unfinished() == 0, "everything to be delivered", PATIENCE)
        except AssertionError:
            print(self.shop.status())
            for relay in self.relays:
                print(f"-- {relay.log_path}\n{relay.log()[-2000:]}")
            raise
        for relay in self.relays:
            relay.end()

    def report(self, verdict):
        deeds = ", ".join(f"{what} {count}" for what, count in sorted(self.counts.items()))
        print(f"chaos {self.options.store:<8} {self.options.broker:<8} seed {self.options.seed}: "
              f"{len(self.producer.ledger.committed)} committed, {len(self.producer.ledger.rolled_back)} rolled back, "
              f"{verdict.duplicates} duplicates, {len(verdict.problems)} problems; {deeds}")
        for problem in verdict.problems:
            print("PROBLEM", problem)

    def run(self):
        try:
            ledger = self.work()
            self.settle()
            lines = [body + b"\n" for body in self.broker.read()]
            verdict = judge(ledger, lines, 10**9)
            target, = self.shop.status()["targets"]
            if target["failed"]:
                verdict.problems.append(f"failed deliveries: {target['failed']}")
            self.report(verdict)
            return 1 if verdict.problems else 0
        finally:
            self.producer.stopping.set()
            for relay in self.relays:
                if not relay.dead:
                    relay.signal(signal.SIGCONT)
                    relay.kill()
            self.broker.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, choices=["sqlite", "postgres"])
    parser.add_argument("--broker", required=True, choices=sorted(BROKERS))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("OUTBOX_TEST_SEED") or random.randrange(2**31)))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="outbox-chaos-") as folder:
        try:
            return Chaos(options, folder).run()
        except BaseException:
            print(f"chaos {options.store} {options.broker} seed {options.seed} broke off", flush=True)
            raise


sys.exit(main())
