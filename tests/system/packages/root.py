# SPDX-License-Identifier: Apache-2.0
"""A fresh Debian in a folder, without a network: apt finds there what the packages need, and nothing else.

It is made once with mmdebstrap from the machine's own package sources and kept beside the build. Each use has a copy in
memory, with a mount and a network namespace for each command; where those are forbidden, root gets a plain chroot.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile

import pytest

from built import PACKAGES, ROOT, deb, debs, dependencies, fetch, made, run

PATIENCE = int(os.environ.get("OUTBOX_TEST_PATIENCE") or 120)
COMPILER = ("gcc", "libc6-dev", "pkg-config")
# dpkg need not wait for a disk
UNSAFE = "--dpkgopt=force-unsafe-io"
IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def namespaces():
    """The command that enters new ones; [] in a plain chroot; None: neither can be had."""
    spaces = ["unshare", "--mount", "--net"]
    if os.geteuid() != 0:
        spaces += ["--user", "--map-root-user", "--map-auto"]
    if subprocess.run([*spaces, "true"], capture_output=True, check=False).returncode == 0:
        return spaces
    return [] if os.geteuid() == 0 else None


def make_tar(folder):
    """A root with apt, which has fetched all that our packages depend on and not installed it."""
    sources = folder / "sources.list"
    sources.write_text(run(ROOT / "scripts" / "debian-sources"))
    needed = {d for p in PACKAGES for d in dependencies(deb(p))} - set(PACKAGES)
    fetch("mmdebstrap", "--quiet", "--variant=apt", UNSAFE, "--skip=cleanup/apt", "--aptopt=APT::Install-Recommends \"false\"",
          f"--customize-hook=APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -qq --download-only install {' '.join(sorted({*needed, *COMPILER}))}",
          codename(), folder / "root.tar", sources, env={**os.environ, **({"TMPDIR": IN_MEMORY} if IN_MEMORY else {})})


def codename():
    return re.search(r"^VERSION_CODENAME=(\w+)$", pathlib.Path("/etc/os-release").read_text(), re.M).group(1)


def tar():
    key = " ".join(sorted({d for p in PACKAGES for d in dependencies(deb(p))})) + make_tar.__code__.co_code.hex()
    return made("root", hashlib.sha256(key.encode()).hexdigest(), make_tar) / "root.tar"


class Root:
    """One copy of it; run() runs a command as root in it."""

    def __init__(self, folder):
        self.spaces = namespaces()
        if self.spaces is None:
            pytest.skip("a root of Debian needs root, or a kernel that allows user namespaces")
        if not self.spaces:
            print("no namespaces here: a plain chroot, which has the machine's network")
        self.folder, self.path, self.debs = folder, None, debs()

    def __enter__(self):
        archive = tar()
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="outbox-root-", dir=IN_MEMORY))
        self.outside("tar", "--extract", "--numeric-owner", f"--directory={self.path}", f"--file={archive}")
        self.outside("mkdir", f"{self.path}/debs")
        self.outside("cp", *(deb(p, self.debs) for p in PACKAGES), f"{self.path}/debs")
        return self

    def __exit__(self, *_):
        self.outside("rm", "-rf", self.path)

    def outside(self, *args):
        """A command that may change what belongs to the root's users."""
        return run(*self.spaces, *args)

    def enter(self, script="", alone=False):
        """The command that enters the root; script is run just before, with the root mounted at its path. Alone: no process
        outside can be seen or stopped, but a signal to the command reaches nobody."""
        if not self.spaces:
            return ["chroot", str(self.path)]
        spaces = [*self.spaces, "--pid", "--fork", "--kill-child"] if alone else self.spaces
        proc = "mount -t proc proc" if alone else "mount --rbind /proc"
        mounts = f"mount --bind {self.path} {self.path}; {proc} {self.path}/proc; mount --rbind /dev {self.path}/dev; {script}"
        return [*spaces, "sh", "-ec", f'{mounts} exec chroot {self.path} "$@"', "sh"]

    def start(self, *args, script="", alone=False, env=None, **how):
        """A command that goes on, in an environment of its own."""
        env = {"LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", **(env or {}), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return subprocess.Popen([*self.enter(script, alone), *map(str, args)], env=env, **how)

    def run(self, *args, code=0):
        """Standard output and error of a command; the exit code must be the one expected."""
        process = self.start(*args, alone=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out = process.communicate(timeout=PATIENCE * 5)[0].decode()
        assert process.returncode == code, f"{args}: exit {process.returncode}\n{out[-4000:]}"
        return out

    def apt(self, *args):
        """apt-get as a person would use it who answers every question with: keep mine."""
        return self.run("apt-get", "--yes", "--no-install-recommends", "-o", "Dpkg::Options::=--force-unsafe-io",
                        "-o", "Dpkg::Options::=--force-confold", *args)

    def install(self, *names):
        return self.apt("install", *(f"/debs/{deb(n, self.debs).name}" for n in names))

    def installed(self):
        """{package: state}"""
        lines = self.run("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n").splitlines()
        return dict(line.split() for line in lines)

    def files(self):
        """Every path that no program is expected to change in passing."""
        skip = ["/proc", "/dev", "/sys", "/run", "/debs", "/tmp", "/var/cache", "/var/log", "/var/lib/apt", "/var/lib/dpkg"]
        pruned = " -o ".join(f"-path {folder}" for folder in skip)
        return set(self.run("sh", "-c", f"find / \\( {pruned} \\) -prune -o -print").splitlines())

    def copy_in(self, path, place):
        self.outside("cp", path, f"{self.path}{place}")

    def write(self, place, text, how=("-m", "644")):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            self.outside("chmod", "644", file.name)
            self.copy_in(file.name, "/debs/written")
        self.run("install", *how, "/debs/written", place)
