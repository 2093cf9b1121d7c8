# SPDX-License-Identifier: Apache-2.0
"""The broker of with-kafka, the transport (kafka_probe) and a witness in another language than the driver's."""
import os
import signal
import subprocess
import sys
import time
from collections import namedtuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

Item = namedtuple("Item", "id verdict native reason")
Answer = namedtuple("Answer", "lines status message")
Record = namedtuple("Record", "id key partition offset value headers")


class Probe:
    """One transport, in a process of its own."""

    def __init__(self, url):
        self.process = subprocess.Popen([os.environ["KAFKA_PROBE"], url], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.opened = self.read()

    def read(self):
        lines = []
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith("= "):
                status, _, message = line[2:].partition(" ")
                return Answer(lines, status, message)
            lines.append(line)
        raise AssertionError(f"the probe ended: {self.process.wait()}")

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def connect(self, ms=20000):
        return self.say(f"connect {ms}")

    def publish(self, messages, ms=20000):
        """messages: (id, key, topic, bytes). Returns the answer and the items by id."""
        for message in messages:
            self.process.stdin.write("message " + " ".join(str(f) if f is not None else "-" for f in message) + "\n")
        answer = self.say(f"publish {ms}")
        items = [Item(*line.split(" ", 3)) for line in answer.lines]
        assert [i.id for i in items] == [m[0] for m in messages]
        return answer, {i.id: i for i in items}

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0


class Broker:
    def __init__(self):
        self.folder = os.environ["KAFKA_FOLDER"]
        self.port = os.environ["KAFKA_PORT"]
        self.client = {"bootstrap.servers": "127.0.0.1:" + self.port, "log_level": 0}

    def pid(self):
        with open(self.folder + "/pid", encoding="ascii") as file:
            return int(file.read())

    def topic(self, name, partitions=1, **config):
        config = {key.replace("_", "."): str(value) for key, value in config.items()}
        admin = AdminClient(self.client)
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(timeout=60)
        return name

    def drop(self, name):
        admin = AdminClient(self.client)
        admin.delete_topics([name])[name].result(timeout=60)

    def kill(self):
        os.kill(self.pid(), signal.SIGKILL)

    def start(self):
        subprocess.run([self.folder + "/start"], check=True)

    def await_ready(self):
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run([sys.executable, here + "/ready.py", self.port, str(self.pid())], check=True)

    def admin(self, *arguments):
        subprocess.run([self.folder + "/admin", *arguments], check=True, stdout=subprocess.DEVNULL)

    def read(self, topic):
        """Everything in a topic, partition by partition."""
        consumer = Consumer({**self.client, "group.id": "witness", "enable.partition.eof": True,
                             "enable.auto.commit": False})
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        records, ended = [], set()
        while len(ended) < len(partitions):
            message = consumer.poll(30)
            assert message is not None, "the witness got no answer"
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
                continue
            headers = {k: v.decode() for k, v in message.headers() or []}
            key = message.key().decode() if message.key() is not None else None
            records.append(Record(headers.get("ce_id"), key, message.partition(), message.offset(),
                                  message.value(), headers))
        consumer.close()
        return records


@pytest.fixture(scope="session")
def broker():
    if "KAFKA_FOLDER" not in os.environ or "KAFKA_PORT" not in os.environ:
        pytest.skip("no broker; run it with tests/support/with-kafka")
    return Broker()


@pytest.fixture
def probe():
    probes = []

    def make(url):
        probes.append(Probe(url))
        return probes[-1]

    yield make
    for one in probes:
        if one.opened.status == "ok":
            one.close()


def wait_until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)
