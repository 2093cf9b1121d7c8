# SPDX-License-Identifier: Apache-2.0
"""A full disk under the database's tables: it costs time, nothing else."""
import os
import subprocess
import tempfile

import pytest
from kit import until
from oracle import expect_good
from pgshop import Connection
from postgres import Server, own

SIZE = 40 << 20


@pytest.fixture
def small():
    """A server, and a tablespace of a few MiB in it."""
    # not in tmp_path: each start of pytest closes its folders again to other users, such as the server's
    folder = tempfile.mkdtemp(prefix="outbox-small-")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", folder], capture_output=True,
                             check=False)
    if mounted.returncode:
        os.rmdir(folder)
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.decode().strip()}")
    own(folder)
    space = os.path.join(folder, "space")
    os.mkdir(space)
    own(space)
    try:
        with Server() as server:
            with Connection(server.url()) as db:
                db.execute(f"CREATE TABLESPACE small LOCATION '{space}'")
            yield server, os.path.join(folder, "filler")
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
        os.rmdir(folder)


def fill(path):
    with open(path, "ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                pass


def warnings(relay):
    return [line for line in relay.log().splitlines() if " warn " in line]


def test_full_tablespace(make, small):
    server, filler = small
    shop, crew, producer = make(server, tablespace="small")
    producer.publish(100)
    relay = crew.start(batch=1)  # a receipt for each message: the table of receipts grows, too
    until(crew.lines, "the first line")
    fill(filler)
    producer.publish_refused(3)
    until(lambda: warnings(relay) or len(crew.lines()) >= len(producer.ledger.committed),
          "the relay to notice, or to be done")
    assert not relay.dead, relay.log()
    os.unlink(filler)
    producer.publish(50)
    ledger = producer.finish()
    until(lambda: len(crew.lines()) >= len(ledger.committed), f"the rest; the relay says:\n{relay.log()}")
    assert len(warnings(relay)) <= 1, f"not said once:\n{relay.log()}"
    relay.end()
    crew.drain()
    expect_good(ledger, crew, 0)
