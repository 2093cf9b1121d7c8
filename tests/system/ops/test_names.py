# SPDX-License-Identifier: Apache-2.0
"""A name server that does not answer, in a network of its own: what is asked of it does not hold up the end."""
import os
import shutil
import signal
import subprocess
import sys

import pytest

from console import Console
from shell import BINARY, PATIENCE, until

# binds the silent server, says when it was asked, runs the relay and ends as it ends
WRAPPER = """
import os, socket, subprocess, sys, threading
for command in (["ip", "link", "set", "lo", "up"], ["mount", "--bind", "resolv.conf", "/etc/resolv.conf"]):
    subprocess.run(command, check=True)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
threading.Thread(target=lambda: (server.recv(500), open("asked", "w").close()), daemon=True).start()
relay = subprocess.Popen([sys.argv[1], "relay", "--config", "outbox.yaml"])
with open("pid.new", "w") as out:
    out.write(str(relay.pid))
os.rename("pid.new", "pid")
sys.exit(relay.wait())
"""


def can_unshare():
    return all(map(shutil.which, ("unshare", "ip"))) and subprocess.run(
        ["unshare", "-mn", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_unshare(), reason="no network of its own can be made here")
def test_a_silent_name_server_does_not_hold_up_the_end(tmp_path):
    console = Console(tmp_path, more="alerts:\n  - { name: pager, url: 'http://hook.example/' }\n"
                                     "otlp: { endpoint: 'http://collector.example:4318', interval: 1s }\n")
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n")
    console.insert(payload="{broken")
    with open(tmp_path / "relay.log", "wb") as log:
        process = subprocess.Popen(["unshare", "-mn", sys.executable, "-c", WRAPPER, BINARY], cwd=tmp_path,
                                   env=console.env, stdout=log, stderr=log)
    until((tmp_path / "pid").exists, "the relay")
    pid = int((tmp_path / "pid").read_text())
    try:
        until((tmp_path / "asked").exists, "a question to the name server")
        until(lambda: "alert.fired" in (tmp_path / "relay.log").read_text(), "an alert")
        os.kill(pid, signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, (tmp_path / "relay.log").read_text()
    finally:
        if process.poll() is None:
            os.kill(pid, signal.SIGKILL)
    console.down()
