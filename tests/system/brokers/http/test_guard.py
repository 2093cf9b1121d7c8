# SPDX-License-Identifier: Apache-2.0
"""However an address is written, what is inside is not reached unless somebody allowed it."""
import socket

import pytest

from servers import LOOPBACK, probe, verdicts
from recorder import Recorder

SPELLINGS = ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "0177.0.0.1", "127.0.1",
             "0", "0.0.0.0", "localhost", "localhost.", "LOCALHOST", "127.0.0.1.", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]",
             "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]",
             "[2002:7f00:1::]", "[2001:0:7f00:1::1]", "①②⑦.⓪.⓪.①", "127。0。0。1"]
ELSEWHERE = ["10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255",
             "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "0xa9fea9fe", "2852039166"]


@pytest.mark.parametrize("host", SPELLINGS + ELSEWHERE)
def test_refused(host):
    with Recorder() as receiver:
        said = probe(f"http://{host}:{receiver.port}/", seconds=5)
    assert said.get("connect") != "ok" and not receiver.requests, said
    if host.isascii() and not host.endswith("."):
        assert said["connect"] == "config" and "allow_private" in said["error"], said
        assert "not a public one" in said["error"], said
    else:  # where curl or the resolver knows the spelling it is the same, elsewhere the name is unknown
        assert said["connect"] in ("conn", "config"), said


@pytest.mark.parametrize("host", ["127.0.0.1", "2130706433", "0x7f.1", "017700000001", "localhost", "0.0.0.0",
                                  "[::ffff:7f00:1]"])
def test_the_guard_is_what_refuses_them(host):
    """These do reach the server when somebody allows it: the test above tests something."""
    with Recorder() as receiver:
        refused = probe(f"http://{host}:{receiver.port}/", seconds=5)
        said = probe(f"http://{host}:{receiver.port}/#allow_private=0.0.0.0/0,::/0", seconds=5)
    assert refused["connect"] == "config" and "not a public one" in refused["error"], refused
    assert verdicts(said) == ["ACKED"] and len(receiver.requests) == 1


def test_allowed_networks():
    with Recorder() as receiver:
        url = f"http://127.0.0.1:{receiver.port}/"
        assert verdicts(probe(f"{url}#{LOOPBACK}")) == ["ACKED"]
        assert verdicts(probe(f"{url}#allow_private=10.0.0.0/8,127.0.0.1/32")) == ["ACKED"]
        assert probe(f"{url}#allow_private=127.0.0.2")["connect"] == "config"
        # another spelling is another address
        mapped = f"http://[::ffff:127.0.0.1]:{receiver.port}/#{LOOPBACK}"
        assert probe(mapped)["connect"] == "config"
    assert len(receiver.requests) == 2


def test_the_error_names_the_address():
    said = probe("http://localhost:9/")
    assert "127.0.0.1" in said["error"] or "::1" in said["error"], said
    assert "loopback" in said["error"]


def test_a_redirect_inside_is_not_followed():
    with Recorder() as inside:
        place = f"http://127.0.0.1:{inside.port}/secret"
        with Recorder(lambda r: (302, [("Location", place)], b"")) as receiver:
            said = probe(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}")
    assert verdicts(said) == ["REJECTED"] and not inside.requests
    assert "127.0.0.1" in said["items"][0]["reason"]


def test_ipv6_loopback_when_allowed():
    try:
        probe_socket = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    with probe_socket:
        url = f"http://[::1]:{probe_socket.getsockname()[1]}/"
        assert probe(url)["connect"] == "config"
        assert probe(f"{url}#allow_private=::1", seconds=2)["connect"] == "ok"
