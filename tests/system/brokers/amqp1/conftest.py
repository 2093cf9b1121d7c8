# SPDX-License-Identifier: Apache-2.0
"""The broker that with-artemis started, Qpid Proton's Python client as a witness, and the transport on a string."""
import os
import pathlib
import signal
import subprocess
import sys
import uuid

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[3] / "support")]
from probe import Probe, message  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import
import witness  # noqa: E402  pylint: disable=wrong-import-position
from standin import StandIn  # noqa: E402  pylint: disable=wrong-import-position

PORT = int(os.environ.get("ARTEMIS_PORT") or 0)
FOLDER = os.environ.get("ARTEMIS_FOLDER")


class Broker:
    port = PORT

    def url(self, rest, login="relay:relay-secret@", port=PORT):
        return f"amqp1://{login}127.0.0.1:{port}/{rest}"

    def read(self, address):
        return witness.read(PORT, address)

    def ids(self, address):
        return [m.id for m in self.read(address)]

    def ask(self, resource, attribute):
        connection = witness.connect(PORT, "reader", "reader-secret")
        try:
            return witness.ask(connection, resource, attribute)
        finally:
            connection.close()

    def pid(self):
        return int(pathlib.Path(FOLDER, "pid").read_text(encoding="utf-8"))

    def kill(self):
        os.kill(self.pid(), signal.SIGKILL)

    def start(self):
        subprocess.run([f"{FOLDER}/start"], check=True, timeout=120)


@pytest.fixture(scope="session")
def broker():
    if not PORT:
        pytest.skip("run it by tests/support/with-artemis")
    return Broker()


@pytest.fixture
def name():
    """A name that nobody used before."""
    return "t-" + uuid.uuid4().hex[:12]


@pytest.fixture
def probe():
    """probe(url) opens a transport; all end with the test."""
    probes = []

    def make(url, envelope=0, connected=True):
        probes.append(Probe(url, envelope))
        assert probes[-1].opened.status == "ok", probes[-1].opened
        if connected:
            answer = probes[-1].connect()
            assert answer.status == "ok", answer
        return probes[-1]

    yield make
    for one in probes:
        one.process.kill()
        one.process.wait()
        one.process.stdin.close()
        one.process.stdout.close()


@pytest.fixture
def standin():
    """standin(...) starts a scripted peer; all end with the test."""
    peers = []

    def make(**arguments):
        peers.append(StandIn(**arguments))
        return peers[-1]

    yield make
    for peer in peers:
        peer.stop()
