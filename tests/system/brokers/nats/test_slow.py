# SPDX-License-Identifier: Apache-2.0
"""A slow way to the server: it is waited for until the deadline, and what is ACKED is in the stream."""
import pathlib
import re
import sys

import pytest

import natsd

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from proxy import Fault, Proxy  # noqa: E402


@pytest.fixture
def server(servers):
    started = servers()
    natsd.Witness(started.port).create("S")
    return started


def test_a_slow_server_is_waited_for(server, probe):
    with Proxy(server.port) as proxy:
        proxy.default = Fault(rate=100_000, delay=.05, reset=False)
        assert "publish ok acked 300 " in probe(f"nats://127.0.0.1:{proxy.port}/S.{{type}}", 300, 10, 30)
    assert natsd.Witness(server.port).count("S") == 300


def test_too_slow_for_the_deadline(server, probe):
    with Proxy(server.port) as proxy:
        proxy.default = Fault(rate=50_000, reset=False)
        # some 600 KB take 12 seconds
        out = probe(f"nats://127.0.0.1:{proxy.port}/S.{{type}}", 2000, 10, 4)
    acked = int(re.search(r"acked (\d+)", out)[1])
    assert "rejected 0 retry 0 " in out and acked < 2000, out
    assert natsd.Witness(server.port).count("S") >= acked
    # the same again when the way is good: each is stored once
    assert "publish ok acked 2000 " in probe(f"{server.url}/S.{{type}}", 2000)
    assert natsd.Witness(server.port).count("S") == 2000
