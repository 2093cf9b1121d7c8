# SPDX-License-Identifier: Apache-2.0
"""The brokers that tests/support/with-* started: where they are, how they die, what arrived there.

Relays send the structured envelope, so that what arrived is the same everywhere: the bytes of one JSON object a message.
"""
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 60
NAME = "chaos"


def read_pid(path):
    deadline = time.monotonic() + PATIENCE
    while True:  # a server that has just started may not have written it yet
        with open(path, encoding="utf-8") as file:
            words = file.read().split()
        if words or time.monotonic() > deadline:
            return int(words[0])
        time.sleep(0.05)


class Broker:
    """One server process. Subclasses: pid, restart(), prepare(), read(), target."""

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        while True:  # the port must be free
            try:
                os.kill(self.pid, 0)
                with open(f"/proc/{self.pid}/stat", encoding="utf-8") as stat:
                    if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except (ProcessLookupError, FileNotFoundError):
                return
            time.sleep(.01)

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        os.kill(self.pid, signal.SIGCONT)

    def close(self):
        """End what restart() started."""


class Redis(Broker):
    def __init__(self):
        self.folder = os.environ["REDIS_DIR"]
        self.port = int(os.environ["REDIS_PORT"])
        self.target = f"redis://127.0.0.1:{self.port}/?stream={NAME}"

    @property
    def pid(self):
        return read_pid(f"{self.folder}/pid")

    def prepare(self):
        pass

    def restart(self):
        subprocess.run([os.environ["REDIS_SERVER"], f"{self.folder}/redis.conf"], check=True, stdout=subprocess.DEVNULL)

    def read(self):
        import redis  # pylint: disable=import-outside-toplevel
        client = redis.Redis(port=self.port, socket_timeout=PATIENCE)
        return [fields[b"event"] for _, fields in client.xrange(NAME)]

    def close(self):
        pass  # with-redis ends whoever its pid file names


class Http(Broker):
    """A server of ours that has written what it acknowledges: a page cache survives a killed process."""

    def __init__(self):
        self.folder = os.environ["HTTP_DIR"]
        self.port = int(os.environ["HTTP_PORT"])
        self.target = f"http://127.0.0.1:{self.port}/{NAME}#allow_private=127.0.0.1"

    @property
    def pid(self):
        return read_pid(f"{self.folder}/pid")

    def prepare(self):
        pass

    def restart(self):
        os.unlink(f"{self.folder}/pid")
        with open(f"{self.folder}/log", "ab") as log:
            subprocess.Popen([os.environ["HTTP_SERVER"], self.folder, str(self.port)], stdout=log, stderr=log,
                             start_new_session=True)
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(f"{self.folder}/pid"):
            assert time.monotonic() < deadline, "the HTTP server does not start"
            time.sleep(0.02)

    def read(self):
        with open(f"{self.folder}/{NAME}", "rb") as lines:
            return lines.read().splitlines()


class Sns(Http):
    """The same server, which takes batches for a topic, too: what it says is SNS' protocol as its emulators speak it."""

    def __init__(self):
        super().__init__()
        os.environ.update(AWS_ACCESS_KEY_ID="AKIDEXAMPLE", AWS_SECRET_ACCESS_KEY="example", AWS_REGION="us-east-1")
        self.target = f"sns+http://127.0.0.1:{self.port}/000000000000/{NAME}.fifo"

    def read(self):
        with open(f"{self.folder}/{NAME}.fifo", "rb") as lines:
            return lines.read().splitlines()


class Rabbit(Broker):
    def __init__(self):
        self.home = os.environ["OUTBOX_TEST_RABBITMQ_HOME"]
        self.url = os.environ["OUTBOX_TEST_RABBITMQ"]
        self.target = f"{self.url}/?routing_key={NAME}"

    @property
    def pid(self):
        return read_pid(f"{self.home}/pid")

    def channel(self):
        import pika  # pylint: disable=import-outside-toplevel
        return pika.BlockingConnection(pika.URLParameters(self.url + "/%2F")).channel()

    def prepare(self):
        self.channel().queue_declare(NAME, durable=True, arguments={"x-queue-type": "quorum"})
        # RabbitMQ 3.10 keeps the name of a new quorum queue in memory for about three seconds: killed before, it
        # comes back without the queue's log, confirmed messages included.
        time.sleep(5)

    def restart(self):
        subprocess.run([f"{self.home}/start"], check=True, timeout=PATIENCE)

    def read(self):
        channel, bodies = self.channel(), []
        left = channel.queue_declare(NAME, passive=True).method.message_count
        channel.basic_qos(prefetch_count=1000)
        for method, _, body in channel.consume(NAME, inactivity_timeout=10):
            if body is None:
                break
            bodies.append(body)
            if len(bodies) % 500 == 0 or len(bodies) >= left:
                channel.basic_ack(method.delivery_tag, multiple=True)
            if len(bodies) >= left:
                break
        return bodies


class Kafka(Broker):
    def __init__(self):
        self.folder = os.environ["KAFKA_FOLDER"]
        self.servers = f"127.0.0.1:{os.environ['KAFKA_PORT']}"
        self.target = f"kafka://{self.servers}/{NAME}"

    @property
    def pid(self):
        return read_pid(f"{self.folder}/pid")

    def prepare(self):
        from confluent_kafka.admin import AdminClient, NewTopic  # pylint: disable=import-outside-toplevel
        admin = AdminClient({"bootstrap.servers": self.servers})
        admin.create_topics([NewTopic(NAME, 3, 1)])[NAME].result(PATIENCE)

    def restart(self):
        subprocess.run([f"{self.folder}/start"], check=True)

    def read(self):
        from confluent_kafka import Consumer, TopicPartition  # pylint: disable=import-outside-toplevel
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "witness", "enable.auto.commit": False})
        bodies = []
        for partition in range(3):
            place = TopicPartition(NAME, partition, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE)
            consumer.assign([place])
            deadline = time.monotonic() + PATIENCE
            at = 0
            while at < end:
                assert time.monotonic() < deadline, f"partition {partition}: read {at} of {end}"
                message = consumer.poll(1)
                if message is not None and not message.error():
                    bodies.append(message.value())
                    at = message.offset() + 1
        consumer.close()
        return bodies


class Nats(Broker):
    """Spoken to in its own protocol, which is lines of text."""

    def __init__(self):
        self.port = int(os.environ["NATS_PORT"])
        self.folder = os.environ["NATS_FOLDER"]
        self.pid = int(os.environ["NATS_PID"])
        self.started = None
        self.target = f"nats://127.0.0.1:{self.port}/{NAME}?stream={NAME}"

    def restart(self):
        server = os.environ.get("NATS_SERVER", "nats-server")
        with open(f"{self.folder}/server.log", "ab") as log:
            self.started = subprocess.Popen([server, "-c", f"{self.folder}/server.conf", "-p", str(self.port)],
                                            stdout=log, stderr=log)
        self.pid = self.started.pid

    def kill(self):
        super().kill()
        if self.started:
            self.started.wait()
            self.started = None

    def ask(self, requests):
        """The answers to (subject, payload), one after the other, on one connection."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as link:
            lines = link.makefile("rwb")
            lines.write(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB answer 1\r\n')
            for subject, payload in requests:
                lines.write(b"PUB %s answer %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
                lines.flush()
                yield self.answer(lines)

    @staticmethod
    def answer(lines):
        while True:
            words = lines.readline().split()
            if words and words[0] == b"PING":
                lines.write(b"PONG\r\n")
                lines.flush()
            elif words and words[0] == b"MSG":
                data = lines.read(int(words[-1]))
                lines.readline()
                return json.loads(data)
            elif not words or words[0] in (b"-ERR", b"HMSG"):
                raise AssertionError(f"nats says {words}")

    def prepare(self):
        config = {"name": NAME, "subjects": [NAME], "storage": "file"}
        answer, = self.ask([(f"$JS.API.STREAM.CREATE.{NAME}", json.dumps(config).encode())])
        assert "error" not in answer, answer

    def read(self):
        info, = self.ask([(f"$JS.API.STREAM.INFO.{NAME}", b"")])
        last = info["state"]["last_seq"]
        requests = ((f"$JS.API.STREAM.MSG.GET.{NAME}", b'{"seq":%d}' % seq) for seq in range(1, last + 1))
        return [base64.b64decode(answer["message"]["data"]) for answer in self.ask(requests)]

    def close(self):
        if self.started:
            self.kill()


class Mqtt(Broker):
    """Read by a subscriber whose session lasts, and who is away until the end."""

    def __init__(self):
        self.port = int(os.environ["MQTT_PORT"])
        self.folder = os.environ["MQTT_DIR"]
        self.pid = int(os.environ["MQTT_PID"])
        self.started = None
        self.target = f"mqtt://127.0.0.1:{self.port}/{NAME}"

    def restart(self):
        with open(f"{self.folder}/said", "ab") as said:
            self.started = subprocess.Popen([os.environ["MQTT_SERVER"], "-c", f"{self.folder}/mosquitto.conf"],
                                            stdout=said, stderr=said)
        self.pid = self.started.pid

    def kill(self):
        """It acknowledges what it has in memory, and writes when it is asked to end: SIGKILL would lose messages."""
        os.kill(self.pid, signal.SIGCONT)
        os.kill(self.pid, signal.SIGTERM)
        if self.started:
            self.started.wait(PATIENCE)
            self.started = None
            return
        while os.path.exists(f"/proc/{self.pid}"):
            with open(f"/proc/{self.pid}/stat", encoding="utf-8") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
            time.sleep(.01)

    def session(self, *subscribe):
        """Be the subscriber until its own mark comes back; what came before it."""
        from paho.mqtt import client as paho  # pylint: disable=import-outside-toplevel
        client = paho.Client("witness", clean_session=False, protocol=paho.MQTTv311)
        bodies, over = [], []

        def connected(*_):
            for topic in subscribe:
                client.subscribe(topic, 1)
            client.publish("mark", b"", 1)

        def arrived(_client, _context, message):
            (over if message.topic == "mark" else bodies).append(message.payload)

        client.on_connect, client.on_message = connected, arrived
        client.connect("127.0.0.1", self.port)
        deadline = time.monotonic() + PATIENCE
        while not over:
            assert time.monotonic() < deadline, f"read {len(bodies)}, and no end"
            client.loop(.1)
        client.disconnect()
        return bodies

    def prepare(self):
        self.session(NAME, "mark")

    def read(self):
        return self.session()

    def close(self):
        if self.started:
            self.kill()


class Artemis(Broker):
    """AMQP 1.0; read by Qpid Proton's Python client."""

    def __init__(self):
        self.port = int(os.environ["ARTEMIS_PORT"])
        self.folder = os.environ["ARTEMIS_FOLDER"]
        self.target = f"amqp1://relay:relay-secret@127.0.0.1:{self.port}/{NAME}"

    @property
    def pid(self):
        return read_pid(f"{self.folder}/pid")

    def prepare(self):
        pass  # the address is made when it is first attached

    def restart(self):
        subprocess.run([f"{self.folder}/start"], check=True, timeout=PATIENCE)

    def read(self):
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../system/brokers/amqp1"))
        import witness  # pylint: disable=import-outside-toplevel,import-error
        return [bytes(message.body) for message in witness.read(self.port, NAME)]


class Elasticmq(Broker):
    """SQS; read by AWS' own client."""

    def __init__(self):
        self.port = int(os.environ["ELASTICMQ_PORT"])
        self.folder = os.environ["ELASTICMQ_FOLDER"]
        self.target = f"sqs+http://127.0.0.1:{self.port}/000000000000/f1.fifo?region=elasticmq"

    @property
    def pid(self):
        return read_pid(f"{self.folder}/pid")

    def prepare(self):
        pass  # its queues are in its configuration

    def restart(self):
        subprocess.run([f"{self.folder}/start"], check=True, timeout=PATIENCE)

    def read(self):
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../system/brokers/aws"))
        import witness  # pylint: disable=import-outside-toplevel,import-error
        queue = f"http://127.0.0.1:{self.port}/000000000000/f1.fifo"
        return [message["Body"].encode() for message in witness.read(witness.client("sqs", self.port), queue)]


BROKERS = {"rabbitmq": Rabbit, "kafka": Kafka, "nats": Nats, "redis": Redis, "mqtt": Mqtt, "artemis": Artemis,
           "elasticmq": Elasticmq, "http": Http, "sns": Sns}
