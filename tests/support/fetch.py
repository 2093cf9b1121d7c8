# SPDX-License-Identifier: Apache-2.0
"""Packages of Python and Node.js that Debian does not have: fetched once into the user's cache, and only there."""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import subprocess
import sys


@contextlib.contextmanager
def locked(name):
    """A folder of the cache that nobody else fills meanwhile."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = cache / "outbox-test" / name
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def fetch(package, module, alone=False):
    """The folder in which `module` of `package` ("name==version") is, or None where it cannot be had."""
    with locked(package) as folder:
        if not (folder / module).exists():
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder,
                            *(["--no-deps"] if alone else []), package],
                           check=False, capture_output=True, timeout=180)
    return folder if (folder / module).exists() else None


def fetch_npm(packages):
    """node_modules with these packages ({name: version}), or None where they cannot be had. What is in C++ is compiled
    with the headers of this Node.js, without optimization: that takes a quarter of the time."""
    wanted = json.dumps(packages, sort_keys=True)
    with locked("npm-" + hashlib.sha256(wanted.encode()).hexdigest()[:16]) as folder:
        modules, done = folder / "node_modules", folder / "done"
        if not done.exists():
            env = {**os.environ, "npm_config_nodedir": "/usr"}
            (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": packages}), encoding="utf-8")
            install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error",
                       "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000"]
            build = ["npm", "run", "--silent", "build-debug"]
            ok = subprocess.run(install, cwd=folder, env=env, check=False, capture_output=True, timeout=180).returncode == 0
            if ok and "better-sqlite3" in packages:
                subprocess.run(build, cwd=modules / "better-sqlite3", env=env, check=True, stdout=subprocess.DEVNULL,
                               timeout=600)
            if ok:
                done.touch()
        return modules if done.exists() else None
