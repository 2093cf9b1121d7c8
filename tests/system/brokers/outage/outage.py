#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A broker is killed and stays away, while orders go on being placed: outage.py BROKER [--silent] [--seconds N] [--seed N]

Started by tests/system/brokers/outage/run beside a real server. One relay with its default settings, SQLite. When the broker is back
on its data, everything arrives: nothing failed, nothing was charged, nothing is missing, each key in order by first arrival.
--silent: it lives, but the network between takes what is sent, and nothing arrives on either side.
"""
import argparse
import os
import random
import socket
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "integration"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "proof", "chaos"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "support"))
# pylint: disable=wrong-import-position
from brokers import BROKERS
from kit import Relay, Shop, until
from oracle import judge
from producer import Producer
from proxy import Proxy

LANES = 2
PATIENCE = 120
BEFORE = 200  # delivered before the outage begins


class Outage:
    def __init__(self, options, folder):
        self.options = options
        self.shop = Shop(folder, lanes=LANES)
        self.broker = BROKERS[options.broker]()
        self.place = urllib.parse.urlsplit(self.broker.target)
        self.url = self.broker.target
        if options.silent:
            self.proxy = Proxy(self.place.port)
            self.url = self.url.replace(f":{self.place.port}/", f":{self.proxy.port}/")
        self.producer = Producer(self.shop, random.Random(options.seed), pause=.01)
        self.log = os.path.join(folder, "relay.log")
        self.relay = None
        self.figures = {}

    def answers(self):
        """Somebody listens at the broker's port."""
        try:
            with socket.create_connection((self.place.hostname, self.place.port), 1):
                return True
        except OSError:
            return False

    def target(self):
        target, = self.shop.status()["targets"]
        return target

    def delivered(self):
        return self.target()["delivered"]

    def begin(self):
        self.broker.prepare()
        more = ["--lease", "3s"] if self.options.silent else []  # so that nothing is waited for longer
        self.relay = Relay(self.log, ["--store", self.shop.store, "--to", f"events={self.url}",
                                      "--envelope", "events=structured", *more], dict(os.environ))
        until(lambda: "relay.start" in self.relay.log(), "the relay to begin")
        self.producer.start(10**9)
        until(lambda: self.delivered() >= BEFORE, "messages to arrive before the outage", PATIENCE)

    def times(self, what):
        return self.relay.log().count(what)

    def be_away(self):
        opened = self.times("breaker open")  # a slow beginning is an outage, too
        if self.options.silent:
            self.proxy.stall()
        else:
            self.broker.kill()
        until(lambda: self.times("breaker open") > opened, "the relay to see the outage", PATIENCE)
        assert self.options.silent or not self.answers(), "the broker is not away"
        time.sleep(1)  # what had been acknowledged is settled
        before = self.delivered()
        time.sleep(max(self.options.seconds - 1, 0))
        target = self.target()
        assert target["delivered"] == before, "something was delivered to a broker that is away"
        assert not target["failed"], f"failed during the outage: {target}"
        self.figures["waiting"] = sum(target[name] for name in ("pending", "sending", "waiting", "parked"))
        assert self.figures["waiting"] > 0 and self.producer.busy(), "nothing was published during the outage"

    def come_back(self):
        closed = self.times("breaker closed")
        if self.options.silent:
            self.proxy.flow()
            self.proxy.cut()
        else:
            self.broker.restart()
        until(self.answers, "the broker to come back", PATIENCE)
        back = time.monotonic()
        until(lambda: self.times("breaker closed") > closed, "the first arrival after the outage", PATIENCE)
        self.figures["first"] = time.monotonic() - back
        ledger = self.producer.finish(stop=True)
        until(lambda: self.delivered() == len(ledger.committed), "everything to be delivered", PATIENCE)
        self.figures["all"] = time.monotonic() - back
        self.relay.end()
        return ledger

    def judge(self, ledger):
        verdict = judge(ledger, [body + b"\n" for body in self.broker.read()], 10**9)
        target = self.target()
        self.figures["attempts"] = self.shop.value("SELECT coalesce(max(attempts), 0) FROM outbox_delivery")
        if target["failed"] or self.figures["attempts"]:
            verdict.problems.append(f"the outage was charged: {target['failed']} failed, at most "
                                    f"{self.figures['attempts']} attempts")
        print(f"{'silence' if self.options.silent else 'outage'} {self.options.broker:<8} {self.options.seconds:g} s: {len(ledger.committed)} committed, "
              f"{self.figures['waiting']} waiting at its end, {target['failed']} failed, {self.figures['attempts']} attempts, "
              f"{verdict.duplicates} duplicates, first arrival {self.figures['first']:.1f} s after it, all after "
              f"{self.figures['all']:.1f} s; seed {self.options.seed}")
        return verdict.problems

    def run(self):
        try:
            self.begin()
            self.be_away()
            problems = self.judge(self.come_back())
        except BaseException:
            print(f"-- relay\n{self.relay.log()[-4000:] if self.relay else ''}\n-- {self.target() if self.relay else ''}")
            raise
        finally:
            self.producer.close()
            if self.relay and not self.relay.dead:
                self.relay.kill()
            self.broker.close()
        for problem in problems:
            print("PROBLEM", problem)
        return 1 if problems else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("broker", choices=sorted(BROKERS))
    parser.add_argument("--silent", action="store_true")
    parser.add_argument("--seconds", type=float, default=120 if os.environ.get("OUTBOX_TEST_ALL") else 5)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("OUTBOX_TEST_SEED") or random.randrange(2**31)))
    options = parser.parse_args()
    if os.environ.get("OUTBOX_TEST_KAFKA_MOCK"):
        print("kafka: no real broker that could be killed")
        return 77
    with tempfile.TemporaryDirectory(prefix="outbox-outage-") as folder:
        return Outage(options, folder).run()


sys.exit(main())
