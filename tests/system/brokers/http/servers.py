# SPDX-License-Identifier: Apache-2.0
"""What the tests of webhooks share: a real nginx, certificates, the probe, and what the page says."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))
# pylint: disable=wrong-import-position
from ports import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
LOOPBACK = "allow_private=127.0.0.0/8"
PATIENCE = 60


def probe(url, count=1, seconds=10, size=0, **env):
    """What the driver says of COUNT messages to this URL."""
    done = subprocess.run([os.environ["HTTP_PROBE"], url, str(count), str(seconds), str(size)], check=True,
                          capture_output=True, timeout=PATIENCE + seconds, env={**os.environ, **env})
    return json.loads(done.stdout)


def verdicts(said):
    return [item["verdict"] for item in said["items"]]


class Nginx:
    """A server block for each port; ends with the test."""

    def __init__(self, folder, *servers):
        self.folder = folder
        self.ports = [free_port() for _ in servers]
        folder.mkdir(parents=True, exist_ok=True)
        blocks = "\n".join("server {\n" + block.replace("PORT", f"127.0.0.1:{port}") + "\n}"
                           for port, block in zip(self.ports, servers))
        places = "".join(f"{name}_temp_path {folder}/{name};\n" for name in
                         ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        # the packaged build may not have all of these modules
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"worker_processes 1; events {{ worker_connections 512; }}\n"
            f"http {{ access_log {folder}/access.log combined; default_type text/plain;\n{places}\n"
            f"log_format proto '$server_protocol $status $connection $connection_requests';\n{blocks}\n}}\n")
        self.process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf")],
                                        stdout=subprocess.DEVNULL, stderr=open(folder / "stderr", "wb"))
        deadline = time.monotonic() + PATIENCE
        while not (folder / "pid").exists():
            assert self.process.poll() is None and time.monotonic() < deadline, (folder / "stderr").read_text()
            time.sleep(0.02)

    def close(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def page_table(heading):
    """The rows of the first table under this heading of the page, without its head."""
    text = (ROOT / "docs" / "transports" / "http.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows[2:]]
