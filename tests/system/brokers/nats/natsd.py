# SPDX-License-Identifier: Apache-2.0
"""A NATS server of the test's own, and a witness that speaks the protocol with nothing but a socket."""
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../support"))
from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

SERVER = os.environ.get("NATS_SERVER") or shutil.which("nats-server") or "/usr/sbin/nats-server"
PATIENCE = 20


def reason_to_skip():
    return None if pathlib.Path(SERVER).exists() else "no NATS server (Debian: nats-server)"


class Server:
    """Keeps its port and its store over restarts."""

    def __init__(self, folder, settings="", jetstream=True):
        self.folder, self.port, self.process = pathlib.Path(folder), free_port(), None
        self.configure(settings, jetstream)

    def configure(self, settings, jetstream=True):
        lines = [f"listen: 127.0.0.1:{self.port}", "max_payload: 1MB", settings]
        if jetstream:
            lines.append(f'jetstream {{ store_dir: "{self.folder}/store" }}')
        (self.folder / "server.conf").write_text("\n".join(lines))

    def start(self):
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen([SERVER, "-c", self.folder / "server.conf"], stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self.process.poll() is None, (self.folder / "server.log").read_text()
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return self
            except OSError:
                time.sleep(0.02)
        raise AssertionError("the server does not listen")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def reload(self, settings):
        self.configure(settings)
        self.signal(signal.SIGHUP)

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"


class Witness:
    """Reads a stream through JetStream's API."""

    def __init__(self, port, login=None):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.file = self.socket.makefile("rb")
        self.line()
        self.send("CONNECT " + json.dumps({"verbose": False, "pedantic": False, **(login or {})}))
        self.send("SUB witness.> 1")
        self.number = 0

    def send(self, text, data=None):
        self.socket.sendall(text.encode() + b"\r\n" + (data + b"\r\n" if data is not None else b""))

    def line(self):
        line = self.file.readline()
        assert line, "the server hung up"
        return line.decode().split()

    def request(self, subject, value=None):
        self.number += 1
        data = b"" if value is None else json.dumps(value).encode()
        self.send(f"PUB {subject} witness.{self.number} {len(data)}", data)
        while True:
            words = self.line()
            if words[0] == "PING":
                self.send("PONG")
            elif words[0] == "MSG":
                answer = self.file.read(int(words[-1]) + 2)
                if words[1] == f"witness.{self.number}":
                    return json.loads(answer)
            else:
                assert words[0] in ("INFO", "PONG", "+OK"), words

    def update(self, name, **more):
        config = self.request(f"$JS.API.STREAM.INFO.{name}")["config"]
        answer = self.request(f"$JS.API.STREAM.UPDATE.{name}", {**config, **more})
        assert "error" not in answer, answer

    def create(self, name, **more):
        config = {"name": name, "subjects": [f"{name}.>"], "storage": "file", "num_replicas": 1, "max_msgs": -1,
                  "max_bytes": -1, "max_consumers": -1, "retention": "limits", "discard": "new", **more}
        answer = self.request(f"$JS.API.STREAM.CREATE.{name}", config)
        assert "error" not in answer, answer

    def count(self, name):
        return self.request(f"$JS.API.STREAM.INFO.{name}")["state"]["messages"]

    def messages(self, name):
        """(headers, body) of everything in the stream, in order."""
        last = self.request(f"$JS.API.STREAM.INFO.{name}")["state"]["last_seq"]
        for seq in range(1, last + 1):
            message = self.request(f"$JS.API.STREAM.MSG.GET.{name}", {"seq": seq})["message"]
            lines = base64.b64decode(message["hdrs"]).decode().split("\r\n")[1:]
            yield (dict(line.split(": ", 1) for line in lines if line),
                   base64.b64decode(message.get("data", "")))
