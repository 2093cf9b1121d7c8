# SPDX-License-Identifier: Apache-2.0
"""What the tests are about: the packages, made once for all of them, and changed copies of them."""
import fcntl
import functools
import hashlib
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(os.environ.get("OUTBOX_SOURCE", pathlib.Path(__file__).resolve().parents[3]))
BUILD = pathlib.Path(os.environ.get("OUTBOX_BUILD", ROOT / "build"))
CACHE = BUILD / "packages"
LIBRARIES = ("liboutbox1", "liboutbox-brokers1", "liboutbox-testing1")
PACKAGES = ("outbox", *LIBRARIES, "liboutbox-dev")


def run(*args, **how):
    done = subprocess.run([*map(str, args)], capture_output=True, check=False, **how)
    assert done.returncode == 0, f"{args}: exit {done.returncode}\n{done.stdout.decode()[-3000:]}\n{done.stderr.decode()[-3000:]}"
    return done.stdout.decode()


def fetch(*args, **how):
    """The same with a command that asks Debian's mirrors; skipped when they do not answer."""
    try:
        return run(*args, **how)
    except AssertionError as failure:
        if "apt-get update" in str(failure):
            pytest.skip(f"Debian's mirrors are out of reach: {args[0]}")
        raise


@functools.cache
def state():
    """A digest of all that the packages are made from: not of the tests, which they do not build."""
    digest = hashlib.sha256()
    for name in run(ROOT / "scripts" / "deb", "--list").split("\0"):
        path = ROOT / name
        if path.is_file() and not name.startswith("tests/system/"):
            digest.update(f"{name} {path.stat().st_mode:o}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def made(name, key, make):
    """The folder CACHE/name, in which make() has put what belongs to key; two tests at once make it once."""
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "key"
        if not stamp.exists() or stamp.read_text() != key:
            stamp.unlink(missing_ok=True)
            make(folder)
            stamp.write_text(key)
    return folder


@functools.cache
def debs():
    """The folder of the packages. OUTBOX_DEBS names another one, for instance with a fault in it."""
    if os.environ.get("OUTBOX_DEBS"):
        return pathlib.Path(os.environ["OUTBOX_DEBS"])
    return made("deb", state(), lambda folder: run(ROOT / "scripts" / "deb", folder))


def deb(package, folder=None):
    found = list((folder or debs()).glob(f"{package}_*.deb"))
    assert len(found) == 1, f"{package}: {found}"
    return found[0]


def field(path, name):
    return run("dpkg-deb", "--field", path, name).strip()


def dependencies(path):
    """The names of packages that one depends on, of alternatives the first."""
    return [re.split(r"[ (|:]", d.strip())[0] for d in field(path, "Depends").split(",")]


def older(path, folder):
    """The same package as version 0.0.1-1 would be, whose configuration file had another comment."""
    tree = folder / "older"
    run("dpkg-deb", "--raw-extract", path, tree)
    control = tree / "DEBIAN" / "control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 0.0.1-1", control.read_text(), flags=re.M))
    conffile = tree / "etc" / "outbox" / "outbox.yaml"
    conffile.write_text("# as it was in 0.0.1\n" + conffile.read_text())
    return pathlib.Path(re.sub(r".*'(.*)'\.$", r"\1", run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, folder).strip()))
