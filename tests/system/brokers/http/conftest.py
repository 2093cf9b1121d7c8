# SPDX-License-Identifier: Apache-2.0
import pytest

import servers
import certificates  # servers has its folder on the path


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return certificates.matrix(tmp_path_factory.mktemp("pki"))


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
