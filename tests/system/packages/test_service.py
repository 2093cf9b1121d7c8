# SPDX-License-Identifier: Apache-2.0
"""The life of a service on Debian: installed, configured, run as its unit says, upgraded, removed, purged."""
import re
import time

import pytest

from built import deb, older
from root import PATIENCE
from unit import Unit

UNIT = "/lib/systemd/system/outbox-relay.service"
CONFIG = """# edited
sources: [{ name: shop, store: "sqlite:/var/lib/outbox/app.db" }]
targets: [{ name: events, to: "file:/var/lib/outbox/events.jsonl" }]
alerts: [{ name: pager, url: "http://127.0.0.1:9/", token: "file:/etc/outbox/pager.token" }]
"""
DATA = {"/var/lib/outbox", "/var/lib/outbox/app.db", "/var/lib/outbox/events.jsonl"}


# What maintainer scripts find when systemd runs; it keeps what they ask for.
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/debs/systemctl.log
"""


@pytest.fixture(name="life", scope="module")
def _life(root):
    """Where the tests of this file stand, as one follows the other."""
    root.run("mkdir", "-p", "/run/systemd/system")
    root.write("/usr/bin/systemctl", SYSTEMCTL, ["-m", "755"])
    root.before = root.files()
    root.users = root.run("cat", "/etc/passwd", "/etc/group")
    root.run("mkdir", "-p", "/debs/older")
    root.copy_in(older(deb("outbox", root.debs), root.folder), "/debs/older/outbox.deb")
    root.apt("install", "/debs/older/outbox.deb")
    yield root
    if getattr(root, "relay", None) and root.relay.process.poll() is None:
        root.relay.stop()


def asked(root):
    """What systemd was asked to do to our units since the last call."""
    log = root.run("sh", "-c", "touch /debs/systemctl.log && cat /debs/systemctl.log && rm /debs/systemctl.log").splitlines()
    return [line for line in log if "outbox-relay" in line and "is-" not in line]


def as_user(root, *args, code=0):
    return root.run("setpriv", "--reuid=outbox", "--regid=outbox", "--init-groups", *args, code=code)


def publish(root, key):
    as_user(root, "outbox", "publish", "--store", "sqlite:/var/lib/outbox/app.db", "--type", "order.placed", "--key", key, "--data", "1")


def delivered(root, count):
    """The target's lines, once there are so many."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        lines = root.run("sh", "-c", "cat /var/lib/outbox/events.jsonl 2>/dev/null || true").splitlines()
        if len(lines) >= count:
            return lines
        time.sleep(0.1)
    raise AssertionError(f"no {count} lines: {lines}")


def test_installed_it_waits_for_its_configuration(life):
    assert life.installed()["outbox"] == "installed" and asked(life) == []
    assert not [f for f in life.files() if f.startswith("/etc/systemd/system/") and "outbox" in f], "the service is enabled"
    user = life.run("getent", "passwd", "outbox").split(":")
    assert 100 <= int(user[2]) < 1000 and user[5:] == ["/var/lib/outbox", "/usr/sbin/nologin\n"]
    rights = life.run("stat", "-c", "%U:%G %a", "/etc/outbox", "/etc/outbox/outbox.yaml", "/var/lib/outbox").splitlines()
    assert rights == ["root:outbox 750", "root:root 644", "outbox:outbox 700"]
    life.relay = Unit(life, UNIT)
    print("without systemd, these settings do nothing:", *life.relay.ignored)
    assert "sources is missing" in life.relay.start(refused=True)


def test_the_service_delivers(life):
    life.write("/etc/outbox/outbox.yaml", CONFIG)
    life.write("/etc/outbox/pager.token", "secret", ["-m", "640", "-g", "outbox"])
    life.run("setpriv", "--reuid=nobody", "--clear-groups", "cat", "/etc/outbox/outbox.yaml", code=1)
    as_user(life, "outbox", "init", "--store", "sqlite:/var/lib/outbox/app.db")
    life.relay.start()
    publish(life, "1")
    assert '"type":"order.placed"' in delivered(life, 1)[0]
    status = as_user(life, "outbox", "status", "--config", "/etc/outbox/outbox.yaml")
    assert "healthy" in status and "1 message in the log" in status, status


def test_the_service_sees_a_system_that_it_cannot_change(life):
    if not life.spaces:
        pytest.skip("a read-only system needs a mount namespace")
    for place in ("/etc/outbox/x", "/var/lib/x", "/usr/bin/x", "/tmp/x"):
        probe = life.relay.spawn(f"/bin/sh -c 'touch {place}'")
        assert (probe.wait(PATIENCE) == 0) == (place == "/tmp/x"), place


def test_an_upgrade_keeps_what_was_edited_and_what_runs(life):
    told = life.install("outbox")
    assert asked(life) == [] and life.relay.process.poll() is None, "the relay was stopped by the upgrade"
    assert "the running relays are still those of 0.0.1-1" in told, told
    assert life.run("cat", "/etc/outbox/outbox.yaml") == CONFIG
    assert "as it was" not in life.run("cat", "/etc/outbox/outbox.yaml.dpkg-dist")
    assert life.run("stat", "-c", "%U:%G %a", "/etc/outbox").strip() == "root:outbox 750"
    life.relay.stop()
    assert as_user(life, "outbox", "upgrade", "--config", "/etc/outbox/outbox.yaml")
    life.relay = Unit(life, UNIT)
    life.relay.start()
    publish(life, "2")
    keys = [re.search(r'"partitionkey":"(\d)"', line).group(1) for line in delivered(life, 2)]
    assert keys == ["1", "2"]
    assert "daemon.end delivered 1, failed 0" in life.relay.stop()


def test_removed_it_leaves_configuration_and_data(life):
    life.apt("remove", "outbox")
    assert asked(life) == ["stop outbox-relay.service outbox-relay@*.service"]
    left = life.files()
    assert DATA | {"/etc/outbox/outbox.yaml", "/etc/outbox/pager.token"} <= left
    assert not {"/usr/bin/outbox", UNIT} & left
    life.run("getent", "passwd", "outbox")


def test_purged_it_leaves_the_data_alone(life):
    life.apt("purge", "outbox")
    others = set(life.run("sh", "-c", "cat /var/lib/dpkg/info/*.list").splitlines())
    others |= {"/usr" + f for f in others if f.startswith("/lib")}  # /lib is a link to it
    others |= {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-"}  # useradd's copies
    left = life.files() - life.before - others
    assert left - DATA == {"/etc/outbox", "/etc/outbox/pager.token"}, "of these, the token is the administrator's own"
    assert left >= DATA
    assert life.run("cat", "/etc/passwd", "/etc/group") == life.users
    assert set(life.run("stat", "-c", "%U:%G", *DATA, "/etc/outbox/pager.token").split()) == {"root:root"}
    assert "outbox" not in life.installed()
