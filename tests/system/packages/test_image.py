# SPDX-License-Identifier: Apache-2.0
"""The image, run by podman as its users would: a message is delivered, and SIGTERM ends it in order."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import time

import pytest

from built import ROOT, debs, fetch, made, run, state
from root import PATIENCE, namespaces

CONFIG = """sources: [{ name: shop, store: "sqlite:/var/lib/outbox/app.db" }]
targets: [{ name: events, to: "file:/var/lib/outbox/events.jsonl" }]
"""


def image():
    folder = made("image", state(), lambda to: fetch(ROOT / "scripts" / "image", to, env={**os.environ, "DEBS": str(debs())}))
    return next(folder.glob("*.oci.tar"))


# Where cgroups of both versions are mounted, crun wants nothing of either: a mount namespace shows it the second alone.
ALONE = ["unshare", "--mount", "sh", "-c", 'mount -t cgroup2 none /sys/fs/cgroup; exec "$@"', "sh"]
# what a process without a right may have anyway
LIMITS = ["--network=none", "--cgroups=disabled", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]


class Podman:
    """Everything it keeps is below one folder."""

    def __init__(self, folder):
        hybrid = os.geteuid() == 0 and not pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
        self.command = [*(ALONE if hybrid else []), "podman", "--runtime", "crun", "--root", folder / "storage", "--runroot", folder / "run", "--storage-driver", "vfs",
                        "--cgroup-manager", "cgroupfs", "--events-backend", "none"]

    def run(self, *args):
        return run(*self.command, *args)


@pytest.fixture(name="podman", scope="module")
def _podman(tmp_path_factory):
    if not shutil.which("podman"):
        pytest.skip("podman is not installed")
    if not namespaces():
        pytest.skip("podman needs namespaces, which are forbidden here")
    folder = tmp_path_factory.mktemp("podman")
    podman = Podman(folder)
    podman.folder = folder
    podman.run("load", "--quiet", "--input", image())
    podman.name = json.loads(podman.run("images", "--format", "json"))[0]["Names"][0]
    yield podman
    podman.run("rm", "--all", "--force", "--time", "0")


def test_it_is_small_and_says_what_it_is(podman):
    inspected = json.loads(podman.run("image", "inspect", podman.name))[0]
    print(f"{image().name}: {image().stat().st_size / 1e6:.0f} MB, {inspected['Size'] / 1e6:.0f} MB unpacked")
    assert image().stat().st_size < 60e6
    config = inspected["Config"]
    assert config["User"] == "65532:65532" and config["StopSignal"] == "SIGTERM" and config["Volumes"] == {"/var/lib/outbox": {}}
    assert config["Entrypoint"] == ["/usr/bin/outbox"] and config["Labels"]["org.opencontainers.image.title"] == "outbox"
    assert podman.name.endswith("/outbox:" + config["Labels"]["org.opencontainers.image.version"])


def layer_names():
    with tarfile.open(image()) as layout:
        manifest = json.load(layout.extractfile("index.json"))["manifests"][0]["digest"].removeprefix("sha256:")
        layer = json.load(layout.extractfile(f"blobs/sha256/{manifest}"))["layers"][0]["digest"].removeprefix("sha256:")
        with tarfile.open(fileobj=layout.extractfile(f"blobs/sha256/{layer}"), mode="r:gz") as files:
            return {name.removeprefix("./") for name in files.getnames()}


def test_it_has_certificates_and_no_shell():
    names = layer_names()
    assert {"etc/ssl/certs/ca-certificates.crt", "etc/passwd", "var/lib/dpkg/status.d/outbox"} <= names
    assert not {"bin/sh", "usr/bin/apt", "usr/bin/perl"} & names


def test_it_delivers_and_stops_on_sigterm(podman):
    config = podman.folder / "etc"
    config.mkdir()
    (config / "outbox.yaml").write_text(CONFIG)
    shared = [*LIMITS, "-v", f"{config}:/etc/outbox:ro", "-v", "outbox-data:/var/lib/outbox"]
    store = ["--store", "sqlite:/var/lib/outbox/app.db"]
    podman.run("run", "--rm", *shared, podman.name, "init", *store)
    podman.run("run", "--detach", "--name=relay", "--read-only", *shared, podman.name)
    podman.run("exec", "relay", "/usr/bin/outbox", "publish", *store, "--type", "order.placed", "--key", "42", "--data", "1")
    volume = pathlib.Path(podman.run("volume", "inspect", "--format", "{{.Mountpoint}}", "outbox-data").strip())
    until = time.monotonic() + PATIENCE
    lines = []
    while time.monotonic() < until and not lines:
        time.sleep(0.1)
        lines = (volume / "events.jsonl").read_text().splitlines() if (volume / "events.jsonl").exists() else []
    assert len(lines) == 1 and '"type":"order.placed"' in lines[0]
    podman.run("stop", "--time", str(PATIENCE), "relay")
    ended = json.loads(podman.run("inspect", "relay"))[0]["State"]
    assert ended["ExitCode"] == 0, ended
    log = subprocess.run([*map(str, podman.command), "logs", "relay"], capture_output=True, text=True, check=True)
    assert re.search(r"daemon\.end", log.stdout + log.stderr), log.stderr
