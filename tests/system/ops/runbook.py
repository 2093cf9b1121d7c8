# SPDX-License-Identifier: Apache-2.0
"""A deployment for the runbook: outbox.yaml, a relay under a systemctl of the test's own, and the page's commands."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

from console import free_port
from shell import BINARY, ENVIRONMENT, PATIENCE, Shop, until

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).parents[3]))
PAGE = (ROOT / "docs" / "runbook.md").read_text()

# what systemd would do for outbox-relay.service, and what the journal has of it
SYSTEMCTL = """#!/bin/bash
running() { [ -s relay.pid ] && ps -o stat= -p "$(cat relay.pid)" | grep -qv Z; }
stop() { running || return 0; kill "$(cat relay.pid)"; while running; do sleep 0.02; done; }
[ "$2" = outbox-relay ] || exit 5
case $1 in
start | restart) [ "$1" = start ] || stop; running && exit 0
	setsid outbox relay --config outbox.yaml </dev/null >>relay.log 2>&1 & echo $! >relay.pid ;;
stop) stop ;;
reload) running && kill -HUP "$(cat relay.pid)" ;;
status) if running; then echo "active (running)"; else echo "inactive (dead)"; exit 3; fi ;;
*) exit 1 ;;
esac
"""
JOURNALCTL = """#!/bin/bash
[ "$1 $2" = "-u outbox-relay" ] && cat relay.log
"""


def sections():
    """{alert: {tag: [block, ...]}}"""
    found = {}
    for part in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        blocks = {}
        for tag, text in re.findall(r"^```sh ([\w-]+)\n(.*?)^```$", part, re.M | re.S):
            blocks.setdefault(tag, []).append(text)
        found[part.splitlines()[0]] = blocks
    return found


class Redis:
    """A broker that can be stopped, started and frozen."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None

    @staticmethod
    def missing():
        return not (shutil.which("redis-server") and shutil.which("redis-cli"))

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)],
            stdout=subprocess.DEVNULL)
        until(lambda: self.cli("PING") == "PONG", "redis")

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait(timeout=PATIENCE)
            self.process = None

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True,
                              check=False).stdout.strip()


class Site(Shop):
    """target: its URL and further keys; health: limits that are reached within seconds."""

    def __init__(self, folder, health="", target="to: file:events.jsonl", relay="", lanes=1,
                 store="sqlite:shop.db"):
        super().__init__(folder)
        self.path = folder / "shop.db"
        self.config = folder / "outbox.yaml"
        self.env.pop("OUTBOX_STORE")
        (folder / "bin").mkdir()
        (folder / "bin" / "outbox").symlink_to(os.path.abspath(BINARY))
        for name, text in (("systemctl", SYSTEMCTL), ("journalctl", JOURNALCTL)):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        (folder / "relay.log").touch()
        self.env.update(OUTBOX_CONFIG="outbox.yaml", SOURCE="shop", TARGET="events",
                        PATH=f"{folder}/bin:{ENVIRONMENT['PATH']}")
        self.config.write_text(f"sources: [{{ name: shop, store: '{store}' }}]\n"
                               f"targets:\n  - name: events\n    {target}\n"
                               f"relay: {{ poll: 50ms, {relay} }}\n"
                               f"health: {{ interval: 100ms, settle: 300ms, {health} }}\n")
        self.run("init", "--lanes", str(lanes))

    def edit(self, old, new):
        text = self.config.read_text()
        assert old in text
        self.config.write_text(text.replace(old, new))

    def look(self, script):
        """As a person would. What is out of reach may end with an error, but no command may be misused or missing."""
        return self.sh(f"trap 'case $? in 2|126|127) exit 99;; esac' ERR\n{script}\nexit 0", flags="-uc")

    def sh(self, script, flags="-euc"):
        """It must succeed."""
        done = subprocess.run(["bash", flags, script], cwd=self.folder, env=self.env, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def systemctl(self, word):
        self.sh(f"systemctl {word} outbox-relay")

    def up(self):
        """Start the relay; it holds all lanes."""
        self.systemctl("start")
        until(lambda: all(lane["live"] for lane in self.status().get("lanes", [{"live": False}])), "the relay")

    def log(self):
        return (self.folder / "relay.log").read_text()

    def publish(self, count=1, payload="{}", type_="order.placed", key="k"):
        with self.db() as db:
            db.execute("BEGIN IMMEDIATE")
            for i in range(count):
                db.execute("INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?)",
                           (type_, f"{key}{i}", payload))
            db.execute("COMMIT")

    def status(self):
        return (self.run("status", "--json").json["targets"] or [{"delivered": 0}])[0]

    def alerts(self):
        return {f["rule"] for f in self.run("alerts", "--json", code=None).json["findings"]}

    def fired(self, rule):
        return re.search(rf"alert\.fired .*\b{rule} \(", self.log())

    def resolved(self, rule):
        last = max((m.start() for m in re.finditer(rf"alert\.fired .*\b{rule} \(", self.log())), default=-1)
        return last >= 0 and re.search(rf"alert\.resolved .*\b{rule} is over", self.log()[last:])
