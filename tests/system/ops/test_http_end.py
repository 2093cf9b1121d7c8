# SPDX-License-Identifier: Apache-2.0
"""The end of the process while everybody asks: it is orderly, and no memory is used that is gone (sanitizers say so)."""
import signal
import threading

import pytest

import raw
from console import TOKENS, Console
from shell import PATIENCE

ASKED = ["/api/messages", "/api/openapi.json", "/api/audit"]
CLIENTS, AT_ONCE = 12, 20


class Client(threading.Thread):
    """Asks for what only a worker can answer, many times in a row, without waiting for the answers."""

    def __init__(self, console, i):
        super().__init__()
        self.console = console
        self.data = raw.request(console.port, f"GET {ASKED[i % len(ASKED)]} HTTP/1.1",
                                [f"Authorization: Bearer {TOKENS['rob'][1]}"]) * AT_ONCE
        self.start()

    def run(self):
        while self.console.process.poll() is None:
            try:
                with raw.connect(self.console.port) as sock:
                    sock.sendall(self.data)
                    while sock.recv(65536):
                        pass
            except OSError:
                pass


@pytest.mark.parametrize("again", range(8))
def test_the_end_while_everybody_asks(tmp_path, again):
    console = Console(tmp_path).up()
    clients = [Client(console, i) for i in range(CLIENTS)]
    try:
        for _ in range(20):
            assert console.ask("GET", "/livez").status == 200
        console.process.send_signal(signal.SIGTERM)
        assert console.process.wait(PATIENCE) == 0, (tmp_path / "relay.log").read_text()
    finally:
        console.process.kill()
        for client in clients:
            client.join()
    console.down()
