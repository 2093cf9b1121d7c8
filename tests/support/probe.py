# SPDX-License-Identifier: Apache-2.0
"""A transport on a string: tests/system/brokers/probe.c does what it is told, and says what became of it."""
import os
import subprocess
import threading

PATIENCE = float(os.environ.get("OUTBOX_TEST_PATIENCE") or 60)


class Answer:
    """What the transport said: its status, and for publish a (verdict, native, reason) for each message."""

    def __init__(self, lines):
        self.status, self.native, self.ms, *text = lines[-1][2:].split(" ", 3)
        self.native, self.ms, self.text = int(self.native), int(self.ms), "".join(text)
        self.lines = lines[:-1]
        self.items = [(v, int(n), r) for v, n, r in (line.split(" ", 2) for line in self.lines
                                                     if line.split(" ")[0].isupper())]
        self.verdicts = [item[0] for item in self.items]

    def __repr__(self):
        return f"{self.status} {self.native} {self.text} {self.items[:5]}"


class Probe:
    def __init__(self, url, envelope=0, env=None, patience=PATIENCE):
        command = url if isinstance(url, list) else [os.environ.get("OUTBOX_PROBE", "probe"), url, str(envelope)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        self.opened = self.answer(patience)

    def answer(self, patience=PATIENCE):
        lines = []
        hung = threading.Timer(patience, self.process.kill)  # whoever ignores its deadline fails the test
        hung.start()
        try:
            while not lines or not lines[-1].startswith("= "):
                line = self.process.stdout.readline()
                assert line, f"the probe ended: {self.process.wait()}"
                lines.append(line.rstrip("\n"))
        finally:
            hung.cancel()
        return Answer(lines)

    def tell(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, text):
        self.tell(text)
        return self.answer()

    def connect(self, ms=20000):
        return self.ask(f"connect {ms}")

    def begin(self, messages, ms=20000):
        """Start a publish; its answer() is for later."""
        self.tell("\n".join([f"publish {ms} {len(messages)}"] + ["\t".join(map(str, m)) for m in messages]))

    def publish(self, messages, ms=20000):
        self.begin(messages, ms)
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(20) == 0


def message(ident, type="order.placed", topic="", key="", kind="event", size=20, correlation="", ttl="", headers=""):
    return (ident, type, topic, key, kind, size, correlation, ttl, headers)
