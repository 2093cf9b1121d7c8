# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL servers of our own: made in a temporary folder, a free port on loopback, ended with the test.

fsync is off: tests kill processes, not machines. A server refuses to run as root, so it gets the user postgres.
As a program it prints a free port and where to put a cluster, for with-postgres.
"""
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from ports import free_port

PATIENCE = float(os.environ.get("OUTBOX_TEST_PATIENCE") or 60)
SETTINGS = """
listen_addresses = '127.0.0.1'
fsync = off
shared_buffers = 64MB
max_connections = 200
max_prepared_transactions = 400
wal_level = replica
max_wal_senders = 4
log_min_messages = warning
"""
MISSING = "no PostgreSQL server on this machine (Debian: postgresql-15)"


def end_on_signals():
    """SIGTERM ends the program as an exception does: servers that were started are ended, too."""
    def leave(number, _):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)


def bin_folder():
    """Where the server's programs are, or None."""
    found = [os.environ["PG_BIN"]] if os.environ.get("PG_BIN") else glob.glob("/usr/lib/postgresql/*/bin")
    found = [folder for folder in found if os.access(os.path.join(folder, "initdb"), os.X_OK)]
    return max(found, key=lambda folder: int(folder.split("/")[-2]) if folder.split("/")[-2].isdigit() else 0,
               default=None)


def home():
    """
    In memory, where there is plenty of it. A database has three hundred files: on a disk it takes longer to make and
    remove them than most tests take.
    """
    try:
        with open("/proc/meminfo", encoding="utf-8") as lines:
            memory = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
        there = os.statvfs("/dev/shm")
        roomy = min(memory, there.f_bavail * there.f_frsize) > 4 << 30
        return "/dev/shm" if roomy and os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    except (OSError, StopIteration):
        return tempfile.gettempdir()


def run_as_postgres(*command, check=True):
    prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    done = subprocess.run(prefix + [str(word) for word in command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, cwd="/")
    assert done.returncode == 0 or not check, f"{command}: {done.stdout}{done.stderr}"
    return done


def own(path):
    """Give a folder to the user that runs the server."""
    os.chmod(path, 0o755)
    if os.getuid() == 0:
        entry = pwd.getpwnam("postgres")
        os.chown(path, entry.pw_uid, entry.pw_gid)


class Server:
    """One cluster. of=SERVER makes a streaming standby of that one."""

    def __init__(self, settings="", of=None, folder=None):
        self.bin = bin_folder()
        assert self.bin, MISSING
        self.made = tempfile.mkdtemp(prefix="outbox-pgs-", dir=folder or home())
        own(self.made)
        self.data = os.path.join(self.made, "data")
        self.log = os.path.join(self.made, "log")
        self.port = free_port()
        if of:
            run_as_postgres(f"{self.bin}/pg_basebackup", "-D", self.data, "-d", of.url(), "-R", "-c", "fast", "--no-sync")
        else:
            run_as_postgres(f"{self.bin}/initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                            "--locale=C.UTF-8", "--no-sync")
            self.configure(SETTINGS + settings)
        self.configure(f"port = {self.port}\nunix_socket_directories = '{self.made}'\n")
        self.start()

    def configure(self, lines):
        with open(os.path.join(self.data, "postgresql.conf"), "a", encoding="utf-8") as file:
            file.write("\n" + lines + "\n")

    def ctl(self, *args, check=True):
        return run_as_postgres(f"{self.bin}/pg_ctl", "-D", self.data, "-l", self.log, "-w", "-t", "60", *args,
                               check=check)

    def start(self):
        self.ctl("start")

    def stop(self, mode="fast"):
        self.ctl("-m", mode, "stop")

    def restart(self, mode="immediate"):
        """The usual accident: every connection ends in the middle of whatever it does; recovery follows."""
        self.stop(mode)
        self.start()

    def promote(self):
        self.ctl("promote")

    def url(self, port=None, options=""):
        return f"postgres://postgres@127.0.0.1:{port or self.port}/postgres{options}"

    def close(self):
        self.ctl("-m", "immediate", "stop", check=False)
        shutil.rmtree(self.made, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Bouncer:
    """PgBouncer before a server, in transaction mode: each transaction may get another session."""

    def __init__(self, server, pool=5):
        self.program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
        assert self.program, "no PgBouncer on this machine (Debian: pgbouncer)"
        self.made = tempfile.mkdtemp(prefix="outbox-bouncer-")
        own(self.made)
        self.port = free_port()
        path = os.path.join(self.made, "bouncer.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""[databases]
* = host=127.0.0.1 port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = trust
auth_file = {self.made}/users
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 500
server_round_robin = 1
server_lifetime = 3
ignore_startup_parameters = extra_float_digits
logfile = {self.made}/log
""")
        with open(os.path.join(self.made, "users"), "w", encoding="utf-8") as file:
            file.write('"postgres" ""\n')
        self.process = subprocess.Popen([self.program, "-q", path], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        user="postgres" if os.getuid() == 0 else None)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, "PgBouncer does not listen"
                time.sleep(.05)

    def url(self, options=""):
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres{options}"

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        shutil.rmtree(self.made, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


if __name__ == "__main__":
    print(free_port(), home())
