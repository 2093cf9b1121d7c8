# SPDX-License-Identifier: Apache-2.0
"""The program of the version before, built from the history, and both versions on one store."""
import copy
import fcntl
import os
import pathlib
import subprocess

import pytest

from shell import BINARY

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
BEFORE = "b741d83"  # the last one with schema 1: the oldest that may run beside this one
BUILD = pathlib.Path(os.environ.get("OUTBOX_BEFORE_BUILD", pathlib.Path(BINARY).resolve().parents[2] / f"before-{BEFORE}"))
PROGRAM = BUILD / "build" / "src" / "cli" / "outbox"


def run(*args, **how):
    done = subprocess.run([*map(str, args)], capture_output=True, check=False, **how)
    assert done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout[-3000:]!r}\n{done.stderr[-3000:]!r}"
    return done.stdout


def build():
    """Kept beside the build for the next run; two tests at once build it once."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if PROGRAM.exists():
            return
        there = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", f"{BEFORE}^{{commit}}"], capture_output=True, check=False)
        if there.returncode != 0:
            pytest.skip(f"the version before, {BEFORE}, is not in this checkout's history (a shallow clone, or no git):"
                        " git fetch --unshallow brings it")
        run("tar", "x", "-C", BUILD, input=run("git", "-C", ROOT, "archive", BEFORE))
        if not (BUILD / "build" / "build.ninja").exists():
            run("meson", "setup", "build", ".", "-Dtests=false", "-Dman=disabled", cwd=BUILD)
        run("ninja", "-C", "build", "src/cli/outbox", cwd=BUILD)


def before(shop):
    """The same shop, with the commands of the version before."""
    build()
    old = copy.copy(shop)
    old.command = lambda *args: [str(PROGRAM), *map(str, args)]
    return old
