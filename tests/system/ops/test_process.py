# SPDX-License-Identifier: Apache-2.0
"""The relay as a service: readiness, reload, watchdog, users, files, standing by, supervision."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from shell import BINARY, Shop, until

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
FILE = """
sources:
  - { name: shop, store: "sqlite:app.db" }
targets:
  - { name: events, to: "file:out.jsonl" }
"""


class Manager:
    """A service manager's end of NOTIFY_SOCKET."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0"))
        self.socket.setblocking(False)
        self.heard = []

    def lines(self):
        try:
            while True:
                self.heard += self.socket.recv(4096).decode().split("\n")
        except BlockingIOError:
            return self.heard

    def wait(self, line):
        until(lambda: line in self.lines(), f"{line}; heard {self.heard}")


@pytest.fixture
def shop(tmp_path):
    made = Shop(tmp_path)
    made.run("init")
    (tmp_path / "outbox.yaml").write_text(FILE)
    return made


@pytest.fixture
def manager(shop, request):
    """Bound to a path, or to what the test's parameter says."""
    address = getattr(request, "param", "{}/notify").format(shop.folder)
    made = Manager(address)
    shop.env["NOTIFY_SOCKET"] = address
    yield made
    made.socket.close()


def start(shop, *args):
    return shop.start("relay", "--config", "outbox.yaml", *args, stderr=open(shop.folder / "said", "wb"))


def stop(relay):
    relay.send_signal(signal.SIGTERM)
    assert relay.wait(60) == 0


def said(shop):
    return (shop.folder / "said").read_text()


@pytest.mark.parametrize("manager", ["{}/notify", "@{}"], indirect=True, ids=["path", "abstract"])
def test_the_service_manager_is_told(shop, manager):
    relay = start(shop)
    manager.wait("READY=1")
    manager.wait("STATUS=1 of 1 source running")
    manager.heard.clear()
    relay.send_signal(signal.SIGHUP)
    manager.wait("READY=1")
    at = manager.heard.index("READY=1")
    assert "RELOADING=1" in manager.heard[:at] and any(line.startswith("MONOTONIC_USEC=") for line in manager.heard[:at])
    relay.send_signal(signal.SIGTERM)
    manager.wait("STOPPING=1")
    assert relay.wait(60) == 0


def test_a_database_that_is_away_is_no_failed_start(shop, manager):
    (shop.folder / "outbox.yaml").write_text(FILE.replace("targets:", '  - { name: other, store: "sqlite:other.db" }\ntargets:'))
    shop.insert()
    relay = start(shop)
    manager.wait("READY=1")
    until(lambda: any(re.match(r"STATUS=1 of 2 sources running; other: no database at other.db", line)
                      for line in manager.lines()), "the status")
    until(shop.lines, "a delivery of the source that is there")
    time.sleep(2)  # it is tried again meanwhile
    assert said(shop).count("source.away other: ") == 1
    shop.run("init", "--store", "sqlite:other.db")
    manager.wait("STATUS=2 of 2 sources running")
    stop(relay)


def test_the_watchdog_hears_from_a_relay_that_waits(shop, manager):
    shop.env["WATCHDOG_USEC"] = "300000"
    relay = start(shop)
    until(lambda: manager.lines().count("WATCHDOG=1") >= 5, "signs of life of a relay with nothing to do")
    relay.send_signal(signal.SIGSTOP)  # a process that hangs says nothing
    time.sleep(0.3)
    manager.lines()
    manager.heard.clear()
    time.sleep(1)
    assert "WATCHDOG=1" not in manager.lines()
    relay.send_signal(signal.SIGCONT)
    manager.wait("WATCHDOG=1")
    stop(relay)


@pytest.mark.parametrize("variables", [{"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "soon"}])
def test_a_watchdog_that_is_not_ours_hears_nothing(shop, manager, variables):
    shop.env.update({"WATCHDOG_USEC": "300000", **variables})
    relay = start(shop)
    manager.wait("READY=1")
    stop(relay)
    assert "WATCHDOG=1" not in manager.lines()


def test_a_second_instance_stands_by(shop):
    """One lane, two relays of one file: the second takes over when the first is drained, and nothing is sent twice."""
    first = start(shop)
    shop.insert()
    until(shop.lines, "a delivery")
    log = shop.folder / "second.log"
    with log.open("w") as said:
        second = shop.start("relay", "--config", "outbox.yaml", "--set", "relay.instance=~second", stderr=said)
    until(lambda: "target.standby" in log.read_text(), "the second to say that it stands by")
    for _ in range(20):
        shop.insert()
    until(lambda: len(shop.lines()) == 21, "deliveries with two")
    first.send_signal(signal.SIGTERM)
    assert first.wait(60) == 0
    ids = [shop.insert() for _ in range(5)]
    until(lambda: len(shop.lines()) == 26, "deliveries of the second")
    assert [line["id"] for line in shop.lines()][-5:] == ids
    lanes = shop.run("status", "--json").json["targets"][0]["lanes"]
    assert lanes[0]["owner"].startswith("~second")
    second.terminate()
    assert second.wait(60) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("mode, owner, told", [
    (0o644, 0, None),
    (0o600, 65534, None),
    (0o666, 0, "can be changed by others"),
    (0o644, 1, "belongs to another user"),
])
def test_run_as_nobody(mode, owner, told):
    """As a user without any rights, in a folder of its own, with a file that root or it owns."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="outbox-nobody-", dir="/var/tmp"))
    try:
        program = folder / "outbox"
        shutil.copy(BINARY, program)
        program.chmod(0o755)
        (folder / "outbox.yaml").write_text(FILE)
        os.chown(folder, 65534, 65534)
        os.chmod(folder / "outbox.yaml", mode)
        os.chown(folder / "outbox.yaml", owner, owner)
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all"]

        def run(*args):
            return subprocess.run([*become, program, *args], cwd=folder, capture_output=True, text=True, timeout=60, check=False)

        assert run("init", "--store", "sqlite:app.db").returncode == 0
        assert run("publish", "--store", "sqlite:app.db", "--type", "a.b", "--data", "1").returncode == 0
        done = run("relay", "--config", "outbox.yaml", "--once")
        if told:
            assert done.returncode == 2 and told in done.stderr, done.stderr
        else:
            assert done.returncode == 0 and (folder / "out.jsonl").stat().st_uid == 65534, done.stderr
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("make, told", [
    (lambda path: path.chmod(0o644), "chmod 600"),
    (lambda path: (path.rename(path.with_name("real")), path.symlink_to("real")), "symbolic link"),
])
def test_secret_files_that_others_could_read_or_exchange_are_refused(shop, make, told):
    secret = shop.folder / "password"
    secret.write_text("pw-hidden")
    secret.chmod(0o600)
    (shop.folder / "outbox.yaml").write_text(FILE + '  - { name: x, to: "redis://relay@127.0.0.1:1/", password: "file:password" }\n')
    shop.run("config", "check")
    make(secret)
    err = shop.run("relay", "--config", "outbox.yaml", code=2).err
    assert told in err and "pw-hidden" not in err


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
@pytest.mark.parametrize("unit", ["outbox-relay.service", "outbox-relay@.service"])
def test_the_unit_is_hardened_and_right(unit, tmp_path):
    told = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", ROOT / "contrib" / unit],
                          capture_output=True, text=True, check=False).stdout
    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert level and float(level.group(1)) <= 1.5, told
    # with a program that exists, so that nothing else may be wrong
    text = (ROOT / "contrib" / unit).read_text()
    assert "Type=notify" in text and "WatchdogSec=" in text
    (tmp_path / unit).write_text(text.replace("/usr/bin/outbox", BINARY))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / unit], capture_output=True, text=True, check=False)
    assert unit.split(".")[0].rstrip("@") not in done.stderr, done.stderr


def test_nobody_reads_its_memory(shop):
    relay = start(shop)
    until(lambda: "relay.start" in said(shop), "the relay")
    limits = pathlib.Path(f"/proc/{relay.pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0\s+0", limits)
    stop(relay)
