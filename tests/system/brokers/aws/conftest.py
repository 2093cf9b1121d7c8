# SPDX-License-Identifier: Apache-2.0
"""The transport on a string, a scripted peer, AWS' own client, and what the page says."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "support")]
# pylint: disable=wrong-import-position
from probe import Probe, message  # noqa: E402,F401  pylint: disable=unused-import
import peer as stand_in  # noqa: E402
import witness  # noqa: E402

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "wJalr/XUt+nFEMI"}
NOBODY = {name: "" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
                                "AWS_SHARED_CREDENTIALS_FILE", "AWS_REGION", "AWS_DEFAULT_REGION")}
NOBODY |= {"AWS_EC2_METADATA_DISABLED": "true", "HOME": "/nonexistent"}


@pytest.fixture(scope="session")
def boto():
    if not witness.BOTO:
        pytest.skip("boto3 could not be had with pip")
    return witness


@pytest.fixture
def peer(boto):
    """peer(answer) starts a stand-in; all end with the test."""
    peers = []

    def make(*args, **named):
        peers.append(stand_in.Peer(*args, **named))
        return peers[-1]

    yield make
    for one in peers:
        one.close()


@pytest.fixture
def probe():
    """probe(url) opens a transport; all end with the test."""
    probes = []

    def make(url, envelope=0, connected=True, env=None):
        probes.append(Probe(url, envelope, env={**NOBODY, **(KEYS if env is None else env)}))
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


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    subprocess.run([HERE.parent / "kafka" / "certificates", folder], check=True)
    return folder


def page_codes():
    """The rows of the page's table of codes."""
    text = (ROOT / "docs" / "transports" / "aws.md").read_text(encoding="utf-8")
    section = text.split("\n## Codes\n")[1].split("\n## ")[0]
    rows = [[cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


PORT = int(os.environ.get("ELASTICMQ_PORT") or 0)
