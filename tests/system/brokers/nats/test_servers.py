# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed, stopped, closed to us; through the driver, or the real relay with an oracle."""
import base64
import binascii
import collections
import contextlib
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

import natsd
import pytest

BINARY = os.environ.get("OUTBOX_BIN", "outbox")
KILLS = 20 if os.environ.get("OUTBOX_TEST_ALL") else 5
PATIENCE = 60

USERS = """authorization {{ users: [
  {{ user: admin, password: admin }},
  {{ user: relay, password: "{password}", permissions: {{ publish: {publish}, subscribe: "_INBOX.>" }} }}
] }}"""
ADMIN = {"user": "admin", "pass": "admin"}


def users(password='se"cret', publish='{ allow: ["S.>", "$JS.API.>"] }'):
    return USERS.format(password=password.replace('"', '\\"'), publish=publish)


def test_wrong_password_is_told_without_it(servers, probe):
    server = servers(users())
    url = f"nats://relay:{{}}@127.0.0.1:{server.port}/S.{{{{type}}}}"
    natsd.Witness(server.port, ADMIN).create("S")
    out = probe(url.format("wr0ng"))
    assert out.startswith("connect auth") and "Authorization Violation" in out and "wr0ng" not in out, out
    assert "the user or the password is wrong" in out, out
    out = probe(f"nats://127.0.0.1:{server.port}/S.{{type}}")
    assert "requires a user (nats://USER@HOST" in out, out
    assert "nothing listens there: is the server running" in probe("nats://127.0.0.1:1/S.{type}")
    # a quote is no way out of CONNECT's JSON
    assert "acked 1 " in probe(url.format("se%22cret"))


def test_an_inbox_that_we_may_not_hear(servers, probe):
    """Told when connecting: else the stream would get everything again and again, and we no answer."""
    server = servers(users())
    natsd.Witness(server.port, ADMIN).create("S")
    out = probe(f"nats://relay:se%22cret@127.0.0.1:{server.port}/S.{{type}}?inbox=ELSEWHERE")
    assert out.startswith("connect auth") and "Permissions Violation for Subscription" in out and "inbox=" in out, out
    assert natsd.Witness(server.port, ADMIN).count("S") == 0


def nkey(prefix, data):
    """As nkeys are written: base32 of prefix, data and a CRC-16."""
    raw = prefix + data
    return base64.b32encode(raw + struct.pack("<H", binascii.crc_hqx(raw, 0))).decode().rstrip("=")


@pytest.fixture
def user(tmp_path):
    """A user's public nkey and the file with its seed."""
    seed = os.urandom(32)
    der = bytes.fromhex("302e020100300506032b657004220420") + seed
    public = subprocess.run(["openssl", "pkey", "-inform", "DER", "-pubout", "-outform", "DER"], input=der, check=True,
                            capture_output=True).stdout[-32:]
    path = tmp_path / "seed"
    path.write_text(nkey(b"\x95\x00", seed) + "\n")
    path.chmod(0o600)
    return nkey(b"\xa0", public), path


def test_nkey(servers, probe, user, tmp_path):
    public, seed = user
    server = servers(f'authorization {{ users: [ {{ nkey: "{public}" }} ] }}')
    url = f"{server.url}/S.{{type}}?nkey={public}&nkey_seed="
    assert probe(f"{url}{seed}").startswith("connect ok")
    # another one's seed, and what is none
    (tmp_path / "other").write_text(nkey(b"\x95\x00", bytes(32)))
    (tmp_path / "other").chmod(0o600)
    assert probe(f"{url}{tmp_path}/other").startswith("connect auth")
    (tmp_path / "torn").write_text(seed.read_text()[:-8] + "AAAAAAA\n")
    (tmp_path / "torn").chmod(0o600)
    out = probe(f"{url}{tmp_path}/torn")
    assert out.startswith("connect config") and "no seed of a user" in out, out


def test_credentials_file(servers, probe, user, tmp_path):
    """The JWT as it is, and a signature of the nonce; the seed stays here."""
    public, seed = user
    creds = tmp_path / "creds"
    creds.write_text(f"-----BEGIN NATS USER JWT-----\nabc.def.ghi\n------END NATS USER JWT------\n\n"
                     f"-----BEGIN USER NKEY SEED-----\n{seed.read_text()}------END USER NKEY SEED------\n")
    creds.chmod(0o644)
    out = probe(f"{servers().url}/x?creds={creds}")
    assert out.startswith("connect config") and "chmod 600 it" in out, out
    creds.chmod(0o600)
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            client, _ = listener.accept()
            client.sendall(b'INFO {"headers":true,"nonce":"n0nce","max_payload":1048576}\r\n')
            heard.append(client.makefile("rb").readline())
            client.sendall(b"PONG\r\n")
            client.recv(1000)

        threading.Thread(target=serve, daemon=True).start()
        out = probe(f"nats://127.0.0.1:{listener.getsockname()[1]}/x?creds={creds}", 1, 5, 1)
    assert out.startswith("connect ok"), out
    said = json.loads(heard[0][len("CONNECT "):])
    key = base64.b32decode(public + "=" * (-len(public) % 8))[1:33]
    (tmp_path / "key").write_bytes(bytes.fromhex("302a300506032b6570032100") + key)
    (tmp_path / "sig").write_bytes(base64.urlsafe_b64decode(said["sig"] + "=="))
    (tmp_path / "nonce").write_text("n0nce")
    subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key", "-rawin", "-in", "nonce",
                    "-sigfile", "sig"], cwd=tmp_path, check=True)
    assert said["jwt"] == "abc.def.ghi" and seed.read_text().strip() not in heard[0].decode()
    creds.write_text("nothing\n")
    assert "is not a credentials file" in probe(f"{servers().url}/x?creds={creds}")


def test_token(servers, probe, tmp_path):
    server = servers('authorization { token: "s3cret" }')
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "token").chmod(0o600)
    natsd.Witness(server.port, {"auth_token": "s3cret"}).create("S")
    assert probe(f"{server.url}/S.{{type}}").startswith("connect auth")
    assert "acked 3 " in probe(f"{server.url}/S.{{type}}?token_file={tmp_path}/token", 3)


def test_a_forbidden_subject_is_the_messages_problem(servers, probe):
    server = servers(users(publish='{ allow: ["S.ok.1", "S.ok.3", "$JS.API.>"] }'))
    witness = natsd.Witness(server.port, ADMIN)
    witness.create("S")
    out = probe(f"nats://relay:se%22cret@127.0.0.1:{server.port}/S.{{type}}", 6)
    assert "publish ok acked 2 rejected 0 retry 4 " in out, out
    assert "Permissions Violation for Publish to \"S.ok.0\"" in out, out
    assert witness.count("S") == 2


def test_a_forbidden_target_charges_nobody(servers, probe):
    server = servers(users(publish='{ allow: ["other.>", "$JS.API.>"] }'))
    natsd.Witness(server.port, ADMIN).create("S")
    out = probe(f"nats://relay:se%22cret@127.0.0.1:{server.port}/S.orders", 6)
    assert "publish auth acked 0 rejected 0 retry 0 unknown 0 unset 6 " in out, out
    assert "Permissions Violation for Publish to \"S.orders\"" in out and "grant it" in out, out


def test_what_somebody_must_repair_is_told(servers, probe):
    """Of several hosts one refuses the password, the next is down: that it is down explains nothing."""
    server, down = servers(users()), natsd.free_port()
    hosts = [f"127.0.0.1:{server.port}", f"127.0.0.1:{down}"]
    for order in (hosts, hosts[::-1]):
        out = probe(f"nats://relay:wr0ng@{','.join(order)}/x")
        assert out.startswith("connect auth") and f":{server.port}: Authorization Violation" in out, out


def test_without_jetstream_it_is_an_outage(servers, probe):
    out = probe(f"{servers(jetstream=False).url}/S.{{type}}", 3)
    assert "publish conn acked 0 rejected 0 retry 0 " in out and "nats-server -js" in out, out


def test_a_stopped_server_costs_the_deadline(servers, probe):
    server = servers()
    natsd.Witness(server.port).create("S")
    server.signal(signal.SIGSTOP)
    try:
        assert probe(f"{server.url}/S.{{type}}", 3, 1, 1, timeout=15).startswith("connect timedout")
    finally:
        server.signal(signal.SIGCONT)
    assert "acked 3 " in probe(f"{server.url}/S.{{type}}", 3)


class Relay:
    """A SQLite outbox with a relay to the server."""

    def __init__(self, folder, target):
        self.folder, self.path = folder, folder / "app.db"
        self.env = {**os.environ, "OUTBOX_STORE": f"sqlite:{self.path}"}
        subprocess.run([BINARY, "init"], env=self.env, check=True, capture_output=True)
        self.log = open(folder / "relay.log", "wb")
        self.process = subprocess.Popen([BINARY, "relay", "--to", f"events={target}"], env=self.env, stdout=self.log,
                                        stderr=self.log)
        self.written = 0

    def write(self, count, keys=10):
        db = sqlite3.connect(self.path, timeout=30)
        with db:
            for _ in range(count):
                self.written += 1
                db.execute("INSERT INTO outbox_message (id, type, key, payload) VALUES (?, 'order', ?, ?)",
                           (f"m-{self.written}", str(self.written % keys), str(self.written)))
        db.close()

    def delivered(self):
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as db:
            return db.execute("SELECT coalesce(sum(delivered), 0) FROM outbox_receipt").fetchone()[0]

    def await_work(self, more):
        """Until so many more were delivered: what happens next meets a relay at work."""
        end, goal = time.monotonic() + PATIENCE, self.delivered() + more
        while self.delivered() < goal:
            assert time.monotonic() < end, (self.folder / "relay.log").read_text()
            time.sleep(0.005)

    def end(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, (self.folder / "relay.log").read_text()
        self.log.close()


def await_count(server, name, count, login=None):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if natsd.Witness(server.port, login).count(name) >= count:
                return
        except (AssertionError, OSError, KeyError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"{natsd.Witness(server.port, login).count(name)} of {count} arrived")


def assert_all_in_order(witness, name, count):
    """Nothing lost, and each key's first deliveries in order. Returns how many are there more than once."""
    seen, by_key = set(), collections.defaultdict(list)
    stored = list(witness.messages(name))
    for headers, body in stored:
        number = int(body)
        assert headers["Nats-Msg-Id"] == headers["ce-id"] == f"m-{number}"
        if number not in seen:
            by_key[headers["ce-partitionkey"]].append(number)
        seen.add(number)
    assert seen == set(range(1, count + 1)), sorted(set(range(1, count + 1)) - seen)[:10]
    for key, numbers in by_key.items():
        assert numbers == sorted(numbers), (key, numbers)
    return len(stored) - len(seen)


def test_killed_under_load(servers, tmp_path):
    server = servers()
    natsd.Witness(server.port).create("S")
    relay = Relay(tmp_path, f"{server.url}/S.{{type}}?stream=S")
    for _ in range(KILLS):
        relay.write(2000)
        relay.await_work(100)
        server.kill()
        relay.write(100)
        server.start()
    server.signal(signal.SIGSTOP)
    relay.write(100)
    time.sleep(1)
    server.signal(signal.SIGCONT)
    await_count(server, "S", relay.written)
    relay.end()
    twice = assert_all_in_order(natsd.Witness(server.port), "S", relay.written)
    print(f"{relay.written} messages, {KILLS} kills: 0 lost, {twice} twice")


def test_revoked_while_running(servers, tmp_path):
    server = servers(users())
    natsd.Witness(server.port, ADMIN).create("S")
    relay = Relay(tmp_path, f"nats://relay:se%22cret@127.0.0.1:{server.port}/S.{{type}}")
    relay.write(50)
    await_count(server, "S", 50, ADMIN)
    server.reload(users(password="another"))
    time.sleep(0.5)
    relay.write(50)
    time.sleep(1.5)
    assert natsd.Witness(server.port, ADMIN).count("S") == 50
    server.reload(users())
    await_count(server, "S", 100, ADMIN)
    relay.end()
    assert_all_in_order(natsd.Witness(server.port, ADMIN), "S", 100)
    assert 'se"cret' not in (tmp_path / "relay.log").read_text()
