# SPDX-License-Identifier: Apache-2.0
import os
import subprocess

import pytest

import natsd

PROBE = os.environ["NATS_PROBE"]


def pytest_collection_modifyitems(items):
    reason = natsd.reason_to_skip()
    for item in items:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def servers(tmp_path):
    """Start servers with servers(settings); they end with the test."""
    started = []

    def start(settings="", jetstream=True):
        folder = tmp_path / f"server{len(started)}"
        folder.mkdir()
        started.append(natsd.Server(folder, settings, jetstream))
        return started[-1].start()

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def probe():
    """Connect and publish with the driver: the lines that it prints."""
    def run(url, count=1, connect=5, publish=5, timeout=60, **env):
        done = subprocess.run([PROBE, url, str(count), str(connect), str(publish)], capture_output=True,
                              timeout=timeout, check=False, env={**os.environ, **env})
        assert done.returncode in (0, 1), (done.returncode, done.stdout, done.stderr)
        assert not done.stderr, done.stderr
        return done.stdout.decode()
    return run
