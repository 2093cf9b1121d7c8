# SPDX-License-Identifier: Apache-2.0
"""Redis servers of our own, and what arrived there, read by redis-py."""
import os
import shutil
import signal
import subprocess
import sys

import redis

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../integration"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../support"))
from kit import Relay, until  # noqa: E402  pylint: disable=wrong-import-position
from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

PROGRAM = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")


class Server:
    """One server in a folder of its own. What it acknowledges is on disk: tests kill it."""

    def __init__(self, folder, settings=""):
        self.folder = str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.port = free_port()
        self.conf = os.path.join(self.folder, "redis.conf")
        with open(self.conf, "w", encoding="utf-8") as conf:
            conf.write(f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\nsave \"\"\n"
                       f"appendonly yes\nappendfsync always\nrepl-diskless-sync-delay 0\n{settings}\n")
        self.process = None
        self.start()

    def url(self, options="", login=""):
        return f"redis://{login}127.0.0.1:{self.port}/{options}"

    def client(self, **options):
        return redis.Redis(port=self.port, socket_timeout=20, **options)

    def start(self):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen([PROGRAM, self.conf], stdout=log, stderr=log)
        until(self.ready, "the Redis server to answer")

    def ready(self):
        assert self.process.poll() is None, "the Redis server ended"
        try:
            return self.client().ping()
        except redis.AuthenticationError:
            return True
        except (redis.ConnectionError, redis.BusyLoadingError):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        if self.process.poll() is None:
            self.go_on()
            self.kill()


def entries(client, stream="events"):
    """The fields of all entries of a stream, oldest first; names as text, values as bytes."""
    return [{name.decode(): value for name, value in fields.items()}
            for _, fields in client.xrange(stream)]


class Courier:
    """Relays of one shop, to one Redis target called events."""

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
    for fields in arrived:
        ident = fields["id"].decode()
        assert ident in committed, f"{ident} was never committed"
        message = committed[ident]
        if ident not in seen and message.key is not None:
            assert message.n > last.get(message.key, 0), f"{message.key}/{message.n} is out of order"
            last[message.key] = message.n
        seen[ident] = seen.get(ident, 0) + 1
        payload = message.payload if isinstance(message.payload, bytes) else message.payload.encode()
        assert fields["data"] == payload
        assert fields["type"].decode() == message.type
        assert fields.get("partitionkey", b"").decode() == (message.key or "")
        assert fields["datacontenttype"].decode() == message.content_type
        headers = {name[7:]: value.decode() for name, value in fields.items() if name.startswith("header.")}
        assert headers == (message.headers or {})
    lost = [ident for ident in committed if ident not in seen]
    assert not lost, f"lost: {len(lost)} of {len(committed)}: {lost[:5]}"
    return sum(seen.values()) - len(seen)


def charged(shop):
    """Deliveries that failed or were charged an attempt."""
    return shop.value("SELECT count(*) FROM outbox_detour WHERE attempts > 0 OR state = 'failed'")
