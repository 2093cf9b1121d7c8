# SPDX-License-Identifier: Apache-2.0
"""Python packages that Debian does not have: fetched once with pip into the user's cache, and only there."""
import fcntl
import os
import pathlib
import subprocess
import sys


def fetch(package, module, alone=False):
    """The folder in which `module` of `package` ("name==version") is, or None where it cannot be had."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "outbox-test" / package
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / module).exists():
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder,
                            *(["--no-deps"] if alone else []), package],
                           check=False, capture_output=True, timeout=180)
    return folder if (folder / module).exists() else None
