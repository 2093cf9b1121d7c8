# SPDX-License-Identifier: Apache-2.0
"""mosquitto brokers of our own, and what arrived there, read by paho, whose authors have never heard of us."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../integration"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../support"))
from kit import Relay, until  # noqa: E402  pylint: disable=wrong-import-position
from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ.get("MQTT_SERVER") or shutil.which("mosquitto") or "/usr/sbin/mosquitto"
PATIENCE = 60


def reason_to_skip():
    if not pathlib.Path(PROGRAM).exists():
        return "no MQTT broker (Debian: mosquitto)"
    try:
        import paho.mqtt.client  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        return "no MQTT client for Python (Debian: python3-paho-mqtt)"
    return None


class Server:
    """One broker in a folder of its own. It keeps its port and what it has over restarts; it writes when it ends."""

    def __init__(self, folder, settings="", access="allow_anonymous true"):
        self.folder, self.port, self.process = pathlib.Path(folder), free_port(), None
        self.starts = 0
        self.folder.mkdir(exist_ok=True)
        self.configure(settings, access)

    def configure(self, settings="", access="allow_anonymous true"):
        # not 0: with that, mosquitto 2.0.11 ends the connection after a message that it refused
        self.conf.write_text("\n".join([
            f"listener {self.port} 127.0.0.1", access, "persistence true", f"persistence_location {self.folder}/",
            "max_queued_messages 1000000", "max_inflight_messages 100", f"log_dest file {self.folder}/log",
            "log_type all", *(["user root"] if os.getuid() == 0 else []), settings, ""]))

    @property
    def conf(self):
        return self.folder / "mosquitto.conf"

    def passwords(self, **users):
        """password_file with these users; a reload makes a running broker read it."""
        path = self.folder / "passwords"
        path.write_text("".join(f"{user}:{password}\n" for user, password in users.items()))
        path.chmod(0o600)
        subprocess.run([shutil.which("mosquitto_passwd") or "/usr/bin/mosquitto_passwd", "-U", path], check=True,
                       capture_output=True)
        return f"password_file {path}"

    def start(self):
        with open(self.folder / "said", "ab") as said:
            self.process = subprocess.Popen([PROGRAM, "-c", self.conf], stdout=said, stderr=said)
        self.starts += 1
        until(self.listens, "mosquitto to listen")
        return self

    def listens(self):
        assert self.process.poll() is None, (self.folder / "said").read_text() + self.log()
        return self.log().count(" running\n") >= self.starts

    def log(self):
        return (self.folder / "log").read_text(errors="replace") if (self.folder / "log").exists() else ""

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """In order: what it has is on disk afterwards."""
        self.signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def url(self, path="shop/{type}", login="", options=""):
        return f"mqtt://{login}127.0.0.1:{self.port}/{path}{options}"


class Witness:
    """A subscriber whose session lasts: (topic, payload, properties) of everything that came, in order."""

    def __init__(self, port, name="witness", filters="#", user=None, password=None, version=5):
        import paho.mqtt.client as paho  # pylint: disable=import-outside-toplevel
        from paho.mqtt.packettypes import PacketTypes  # pylint: disable=import-outside-toplevel
        from paho.mqtt.properties import Properties  # pylint: disable=import-outside-toplevel
        self.arrived, self.subscribed, self.mark, self.marks = [], threading.Event(), f"mark/{name}", 0
        self.seen = 0
        self.client = paho.Client(name, protocol=paho.MQTTv5 if version == 5 else paho.MQTTv311,
                                  **({} if version == 5 else {"clean_session": False}))
        self.client.max_inflight_messages_set(1000)
        if user:
            self.client.username_pw_set(user, password)
        self.client.on_message = self.on_message
        self.client.on_connect = lambda client, *_: client.subscribe([(filters, 1), (self.mark, 1)])
        self.client.on_subscribe = lambda *_: self.subscribed.set()
        self.client.reconnect_delay_set(1, 1)
        more = {}
        if version == 5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 3600
            properties.ReceiveMaximum = 1000
            more = {"clean_start": False, "properties": properties}
        self.client.connect("127.0.0.1", port, **more)
        self.client.loop_start()
        assert self.subscribed.wait(PATIENCE), "the witness cannot subscribe"

    def on_message(self, _client, _context, message):
        if message.topic == self.mark:
            self.seen += 1
        else:
            self.arrived.append(message)

    def read(self):
        """Everything that the broker acknowledged up to now has come when our own message came back."""
        self.marks += 1
        until(self.client.is_connected, "the witness to be connected")
        self.client.publish(self.mark, b"", 1)
        until(lambda: self.seen >= self.marks, "the mark to come back")
        self.marks = self.seen
        return list(self.arrived)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


def properties(message):
    """The user properties of a message, as a dict; a name twice is a mistake."""
    pairs = getattr(message.properties, "UserProperty", [])
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


class Courier:
    """Relays of one shop, to one target called events."""

    def __init__(self, shop, folder):
        self.shop, self.folder, self.relays = shop, str(folder), []

    def start(self, url, *extra):
        args = ["--store", self.shop.store, "--to", f"events={url}", "--lease", "2s", *map(str, extra)]
        relay = Relay(os.path.join(self.folder, f"relay-{len(self.relays)}.log"), args, dict(os.environ))
        self.relays.append(relay)
        return relay

    def once(self, url, *extra):
        """Deliver what is due now; the exit code, 1 when something failed."""
        return self.start(url, "--once", *extra).wait()

    def drain(self, url, *extra):
        self.start(url, "--until-idle", *extra).finish()

    def close(self):
        for relay in self.relays:
            if not relay.dead:
                relay.signal(signal.SIGCONT)
                relay.kill()


def judge(ledger, arrived):
    """Everything committed arrived, as it was and in order per key; nothing else did. Returns the duplicates."""
    committed = {m.id: m for m in ledger.committed}
    seen, last = {}, {}
    for entry in arrived:
        fields = properties(entry)
        ident = fields["id"]
        assert ident in committed, f"{ident} was never committed"
        message = committed[ident]
        if ident not in seen and message.key is not None:
            assert message.n > last.get(message.key, 0), f"{message.key}/{message.n} is out of order"
            last[message.key] = message.n
        seen[ident] = seen.get(ident, 0) + 1
        payload = message.payload if isinstance(message.payload, bytes) else message.payload.encode()
        assert entry.payload == payload
        assert (fields["type"], fields.get("partitionkey")) == (message.type, message.key)
        assert entry.properties.ContentType == message.content_type
        assert (message.headers or {}).items() <= fields.items()
    lost = [ident for ident in committed if ident not in seen]
    assert not lost, f"lost: {len(lost)} of {len(committed)}: {lost[:5]}"
    return sum(seen.values()) - len(seen)


def charged(shop):
    """Deliveries that failed or were charged an attempt."""
    return shop.value("SELECT count(*) FROM outbox_detour WHERE attempts > 0 OR state = 'failed'")
