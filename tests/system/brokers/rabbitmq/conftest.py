# SPDX-License-Identifier: Apache-2.0
"""The broker that with-rabbitmq started, pika as an independent witness, and the transport on a string (probe.c)."""
import os
import pathlib
import signal
import subprocess
import threading
import time
import uuid

import pika
import pytest

PROBE = os.environ.get("OUTBOX_RABBITMQ_PROBE", "probe")
HOME = os.environ.get("OUTBOX_TEST_RABBITMQ_HOME")
PORT = int(os.environ.get("OUTBOX_TEST_RABBITMQ_PORT") or 0)
PATIENCE = float(os.environ.get("OUTBOX_TEST_PATIENCE") or 60)
TLS_PORT = int(os.environ.get("OUTBOX_TEST_RABBITMQ_TLS_PORT") or 0)


class Answer:
    """What the transport said: its status, and for publish a (verdict, native, reason) for each message."""

    def __init__(self, lines):
        self.status, self.native, self.ms, *text = lines[-1][2:].split(" ", 3)
        self.native, self.ms, self.text = int(self.native), int(self.ms), "".join(text)
        self.lines = lines[:-1]
        self.items = [(v, int(n), r) for v, n, r in (line.split(" ", 2) for line in lines[:-1])
                      if v.isupper()] if lines[:-1] and lines[0].split(" ")[0].isupper() else []
        self.verdicts = [item[0] for item in self.items]

    def __repr__(self):
        return f"{self.status} {self.native} {self.text} {self.items[:5]}"


class Probe:
    def __init__(self, url, envelope=0, env=None, patience=PATIENCE):
        command = url if isinstance(url, list) else [PROBE, url, str(envelope)]
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


def message(ident, type="order.placed", topic="", key="", kind="event", size=20):
    return (ident, type, topic, key, kind, size)


class Broker:
    port, tls_port = PORT, TLS_PORT

    def url(self, rest, login="guest:guest", port=PORT):
        return f"amqp://{login}@127.0.0.1:{port}/{rest}"

    def ctl(self, *words):
        done = subprocess.run([HOME + "/ctl", *words], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pid(self):
        return int(pathlib.Path(HOME, "pid").read_text())

    def kill(self):
        os.kill(self.pid(), signal.SIGKILL)

    def start(self):
        subprocess.run([HOME + "/start"], check=True, timeout=120)

    def connect(self):
        return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", PORT, heartbeat=0))

    def make(self, exchange=None, queue=None, bind="#", **arguments):
        with self.connect() as connection:
            channel = connection.channel()
            if exchange:
                channel.exchange_declare(exchange, "topic", durable=True)
            if queue:
                arguments = {name.replace("_", "-"): value for name, value in arguments.items()}
                channel.queue_declare(queue, durable=True, arguments=arguments)
            if exchange and queue:
                channel.queue_bind(queue, exchange, bind)

    def settle(self):
        """What was declared is on disk. A broker that is killed right after a declaration forgets it."""
        self.ctl("eval", "mnesia:sync_log(), dumped = mnesia:dump_log().")
        time.sleep(2)  # the quorum queues' directory is saved twice a second

    def take(self, queue):
        """Everything in a queue, as (properties, body); it is empty afterwards."""
        with self.connect() as connection:
            channel = connection.channel()
            taken = []
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if not method:
                    return taken
                taken.append((properties, body))

    def ids(self, queue):
        return [properties.message_id for properties, _ in self.take(queue)]


@pytest.fixture(scope="session")
def broker():
    if not HOME:
        pytest.skip("run it by tests/support/with-rabbitmq")
    return Broker()


@pytest.fixture
def name():
    """A name that nobody used before."""
    return "t-" + uuid.uuid4().hex[:12]


@pytest.fixture
def probe():
    """probe(url) opens a transport; all end with the test."""
    probes = []

    def make(url, envelope=0, connected=True):
        probes.append(Probe(url, envelope))
        assert probes[-1].opened.status == "ok", probes[-1].opened
        if connected:
            answer = probes[-1].connect()
            assert answer.status == "ok", answer
        return probes[-1]

    yield make
    for one in probes:
        one.process.kill()
        one.process.wait()
        one.process.stdin.close()
        one.process.stdout.close()
