# SPDX-License-Identifier: Apache-2.0
"""The broker that with-rabbitmq started, pika as an independent witness, and the transport on a string (probe.c)."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import pika
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from probe import Probe, message  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

HOME = os.environ.get("OUTBOX_TEST_RABBITMQ_HOME")
PORT = int(os.environ.get("OUTBOX_TEST_RABBITMQ_PORT") or 0)
TLS_PORT = int(os.environ.get("OUTBOX_TEST_RABBITMQ_TLS_PORT") or 0)


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
