# SPDX-License-Identifier: Apache-2.0
"""A service as its unit file says, without systemd: the user, folders, environment, limits, and as much of the sandbox as a
mount namespace and setpriv give. What it does not do, it says: unit.ignored."""
import os
import re
import shlex
import signal
import socket
import subprocess

from root import PATIENCE

KNOWN = {"Type", "ExecStartPre", "ExecStart", "ExecReload", "Environment", "User", "StateDirectory", "StateDirectoryMode",
         "WorkingDirectory", "UMask", "CapabilityBoundingSet", "AmbientCapabilities", "NoNewPrivileges", "ProtectSystem",
         "ProtectHome", "PrivateTmp", "LimitNOFILE", "LimitCORE", "WatchdogSec", "KillMode"}


class Unit:
    def __init__(self, root, path):
        self.root, self.process, self.socket = root, None, None
        self.said = b""
        self.settings = {}
        for line in root.run("cat", path).splitlines():
            found = re.match(r"(\w+)=(.*)$", line)
            if found:
                self.settings.setdefault(found.group(1), []).append(found.group(2).replace("%S", "/var/lib"))
        self.ignored = sorted(set(self.settings) - KNOWN)
        self.env = dict(pair.split("=", 1) for line in self.settings["Environment"] for pair in shlex.split(line))

    def get(self, name):
        return self.settings[name][-1]

    def command(self, line):
        """The words of an Exec line, with its variables."""
        return [re.sub(r"\$\{(\w+)\}", lambda m: self.env[m.group(1)], word) for word in shlex.split(line)]

    def sandbox(self):
        """What is done outside, before the root becomes /."""
        assert self.get("ProtectSystem") == "strict" and self.get("PrivateTmp") == self.get("ProtectHome") == "yes"
        root, state = self.root.path, f"{self.root.path}/var/lib/{self.get('StateDirectory')}"
        return (f"mount -t tmpfs -o mode=1777 tmp {root}/tmp; mount -t tmpfs -o mode=0 tmp {root}/home; "
                f"mount --bind {state} {state}; mount -o remount,bind,ro {root}; "
                f"mkdir {root}/tmp/notify; mount --bind {self.root.folder}/notify {root}/tmp/notify;")

    def become(self):
        """Run inside the root: limits, then the user without any right, then the folder and the mask."""
        assert self.get("CapabilityBoundingSet") == self.get("AmbientCapabilities") == "" and self.get("NoNewPrivileges") == "yes"
        return ["prlimit", f"--nofile={self.get('LimitNOFILE')}", f"--core={self.get('LimitCORE')}",
                "setpriv", f"--reuid={self.get('User')}", f"--regid={self.get('User')}", "--init-groups", "--no-new-privs",
                "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all",
                "sh", "-c", f'umask {self.get("UMask")} && cd {self.get("WorkingDirectory")} && exec "$@"', "sh"]

    def spawn(self, line, **env):
        return self.root.start(*self.become(), *self.command(line), script=self.sandbox(), env={**self.env, **env},
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def prepare(self):
        state = f"/var/lib/{self.get('StateDirectory')}"
        self.root.run("mkdir", "-p", state)
        self.root.run("chown", "-R", f"{self.get('User')}:{self.get('User')}", state)
        self.root.run("chmod", self.get("StateDirectoryMode"), state)
        notify = self.root.folder / "notify"
        notify.mkdir(exist_ok=True)
        os.chmod(notify, 0o755)

    def start(self, refused=False):
        """Start it and wait until it says that it is ready; what ExecStartPre says when it refuses."""
        self.prepare()
        for line in self.settings["ExecStartPre"]:
            before = self.spawn(line)
            out = before.communicate(timeout=PATIENCE)[0].decode()
            if refused and before.returncode != 0:
                return out
            assert before.returncode == 0, out
        assert not refused, "nothing was refused"
        assert self.get("Type") == "notify"
        path = self.root.folder / "notify" / "socket"
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(path))
            os.chmod(path, 0o777)
            ready.settimeout(PATIENCE)
            self.process = self.spawn(self.get("ExecStart"), NOTIFY_SOCKET="/tmp/notify/socket")
            while b"READY=1" not in ready.recv(4096):
                assert self.process.poll() is None, self.process.communicate()[0].decode()
        return ""

    def stop(self):
        """SIGTERM, as KillMode=mixed sends it to the main process; its log."""
        self.process.send_signal(signal.SIGTERM)
        out = self.process.communicate(timeout=PATIENCE)[0].decode()
        assert self.process.returncode == 0, out
        return out
