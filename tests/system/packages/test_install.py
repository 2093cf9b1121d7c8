# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall, from the build of this test: what came goes, and nothing else."""
import os
import pathlib
import subprocess

import pytest

from built import BUILD, ROOT

PREFIX = "/usr/local"


def call(script, folder, code=0):
    env = {**os.environ, "BUILD": str(BUILD), "DESTDIR": str(folder), "PREFIX": PREFIX}
    done = subprocess.run([ROOT / "scripts" / script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


def tree(folder):
    return {str(path.relative_to(folder)): path.lstat().st_mode for path in folder.rglob("*")}


@pytest.fixture(name="system")
def _system(tmp_path):
    """A folder in which somebody else has something already, also where our files go."""
    for name in ("bin/other", "lib/other.so", "share/man/man1/other.1", "include/other.h"):
        path = tmp_path / f"system{PREFIX}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("theirs")
    return tmp_path / "system"


def test_what_was_installed_goes_and_nothing_else(system):
    before = tree(system)
    call("install", system)
    installed = tree(system)
    names = {pathlib.Path(name).name for name in installed}
    assert {"outbox", "liboutbox.so", "liboutbox.so.1", "outbox.pc", "outbox-brokers.pc", "outbox-testing.pc", "outbox.1", "outbox.h",
            "runbook.md", "outbox-relay.service", "outbox-relay@.service"} <= names
    call("install", system)  # a second time, when the folders are there
    assert tree(system) == installed
    call("uninstall", system)
    assert tree(system) == before


def test_a_folder_with_a_file_of_somebody_elses_stays(system):
    call("install", system)
    theirs = system / "usr/local/include/outbox/theirs.h"
    theirs.write_text("theirs")
    call("uninstall", system)
    assert [p.name for p in theirs.parent.iterdir()] == ["theirs.h"]


def test_without_an_installation_it_says_so(system):
    before = tree(system)
    assert "nothing is known to be installed" in call("uninstall", system, code=1)
    assert tree(system) == before


def test_the_unit_names_the_installed_program(system):
    call("install", system)
    unit = (system / "usr/local/lib/systemd/system/outbox-relay.service").read_text()
    assert "ExecStart=/usr/local/bin/outbox relay" in unit and "/usr/bin/outbox" not in unit
