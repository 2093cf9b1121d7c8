# SPDX-License-Identifier: Apache-2.0
import pytest

import servers


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    for name in ("ca", "stranger", "self"):
        servers.authority(folder, name)
    servers.certificate(folder, "good", "DNS:localhost")
    servers.certificate(folder, "ip", "IP:127.0.0.1")
    servers.certificate(folder, "wrong", "DNS:other.example")
    servers.certificate(folder, "expired", "DNS:localhost", days=-1)
    servers.certificate(folder, "unknown", "DNS:localhost", ca="stranger")
    servers.certificate(folder, "client", "DNS:client")
    return folder


@pytest.fixture(scope="module")
def nginx(tmp_path_factory):
    """nginx(block, ...) starts one with these servers; PORT in a block is its address."""
    if not servers.NGINX:
        pytest.skip("no nginx on this machine (Debian: nginx-light)")
    made = []

    def start(*blocks):
        made.append(servers.Nginx(tmp_path_factory.mktemp("nginx"), *blocks))
        return made[-1]

    yield start
    for one in made:
        one.close()
