# SPDX-License-Identifier: Apache-2.0
"""Who may ask: tokens and their file, roles, TLS, addresses; with the clients that people use."""
import fcntl
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import time

import pytest

import raw
from console import TOKENS, Console
from shell import end, until


def kill(process):
    process.kill()
    process.wait(60)


@pytest.fixture
def console(tmp_path):
    console = Console(tmp_path)
    yield console
    console.down()


def log_of(console):
    return (console.folder / "relay.log").read_text()


def refused(console, *says):
    """It does not start, and says why; never a token."""
    ran = console.run("relay", "--config", "outbox.yaml", code=None, people=False)
    assert ran.code not in (0, None), ran
    for text in says:
        assert text in ran.err, ran.err
    for _, token in TOKENS.values():
        assert token not in ran.err
    return ran


def configure(console, **admin):
    """Rewrite the admin group."""
    text = console.config.read_text().split("admin:\n")[0] + "admin:\n"
    for name, value in admin.items():
        text += f"  {name}: {value}\n"
    console.config.write_text(text)


def test_the_first_start_makes_a_file_of_tokens(console):
    console.tokens.unlink()
    console.up(whole=False)
    mode = console.tokens.stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    rows = [line.split() for line in console.tokens.read_text().splitlines() if not line.startswith("#")]
    assert [row[1] for row in rows] == ["operate", "read"]
    for _, role, token in rows:
        assert len(token) >= 43
        assert token not in log_of(console)
        answer = console.ask("GET", "/api/outbox", token=None, headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 200
        act = console.ask("POST", "/api/reload", {"dry_run": True}, token=None,
                          headers={"Authorization": f"Bearer {token}"})
        assert act.status == (200 if role == "operate" else 403), act
    assert str(console.tokens) in log_of(console)
    before = console.tokens.read_text()
    console.down()
    console.up(whole=False)
    assert console.tokens.read_text() == before


def test_everything_but_health_wants_a_token(console):
    console.up()
    for path in ("/healthz", "/livez", "/readyz"):
        answer = console.ask("GET", path, token=None)
        assert (answer.status, answer.body) == (200, b"ok\n"), (path, answer)
    # the index says what the documentation says
    index = console.ask("GET", "/", token=None)
    described = console.get("/api/openapi.json").json["paths"]
    assert index.status == 200
    assert {line.split()[1] for line in index.body.decode().splitlines()} == set(described)
    for path in ("/metrics", "/api/outbox", "/api/targets", "/api/messages", "/api/events", "/api/openapi.json"):
        answer = console.ask("GET", path, token=None)
        assert answer.status in (401, 429), (path, answer)
        assert answer.status == 429 or answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_every_act_wants_the_operate_role(console):
    """All of the description's acts, so that none is forgotten."""
    console.up()
    paths = console.get("/api/openapi.json").json["paths"]
    acts = [path for path, methods in paths.items() if "post" in methods]
    assert len(acts) > 5
    for path in acts:
        path = path.replace("{name}", "events").replace("{id}", "x")
        assert console.ask("POST", path, {}, token="rob").status == 403, path
        answer = console.ask("POST", path, {}, token=None)
        assert answer.status in (401, 429), path


def test_metrics_can_be_opened(console):
    configure(console, listen=f"127.0.0.1:{console.port}", tokens=console.tokens, open_metrics="true")
    console.up()
    assert b"outbox_" in console.ask("GET", "/metrics", token=None).body
    assert console.ask("GET", "/api/outbox", token=None).status == 401


def test_tokens_end_and_are_exchanged(console):
    console.up()
    old, new = "old-" + "o" * 43, "new-" + "n" * 43
    past, future = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"

    def ask(token):
        return console.ask("GET", "/api/outbox", token=None, headers={"Authorization": f"Bearer {token}"}).status

    def reload(text):
        console.tokens.write_text(text)
        console.process.send_signal(signal.SIGHUP)

    assert ask(old) == 401
    reload(f"eve read {old} {future}\n")
    until(lambda: ask(old) == 200, "the new token")
    reload(f"eve read {old} {past}\nfay read {new}\n")
    until(lambda: ask(new) == 200, "the newer token")
    assert ask(old) in (401, 429)
    assert console.ask("GET", "/api/outbox", token="ada").status in (401, 429)
    # a file that is wrong changes nothing
    reload("nonsense\n")
    until(lambda: "a line must be NAME ROLE TOKEN" in log_of(console), "the complaint")
    assert ask(new) == 200
    os.chmod(console.tokens, 0o644)
    reload(f"eve read {old}\n")
    until(lambda: "chmod 600" in log_of(console), "the complaint")
    assert ask(new) == 200 and ask(old) in (401, 429)
    console.tokens.chmod(0o600)
    for token in (old, new):
        assert token not in log_of(console)


@pytest.mark.parametrize("what, says", [
    ("readable", "chmod 600"), ("link", "symbolic link"), ("folder", "chmod go-w"), ("short", "too short"),
    ("foreign", "belongs to another user"), ("empty", "has no token"),
])
def test_unsafe_files_are_refused(console, what, says):
    if what == "readable":
        console.tokens.chmod(0o644)
    elif what == "link":
        console.tokens.rename(console.folder / "real")
        console.tokens.symlink_to(console.folder / "real")
    elif what == "folder":
        (console.folder / "open").mkdir()
        (console.folder / "open").chmod(0o777)
        configure(console, listen=f"127.0.0.1:{console.port}", tokens=console.folder / "open" / "tokens")
    elif what == "short":
        console.tokens.write_text("ann operate hunter2\n")
    elif what == "empty":
        console.tokens.write_text("")
    elif os.geteuid() != 0:
        pytest.skip("only root can give files away")
    else:
        os.chown(console.tokens, 12345, 12345)
    ran = refused(console, says)
    assert "hunter2" not in ran.err
    (console.folder / "relay.log").write_text("")


@pytest.mark.parametrize("admin, says", [
    ({"listen": "0.0.0.0:PORT"}, ["admin.cert", "127.0.0.1"]),
    ({"listen": '"[::]:PORT"'}, ["admin.cert"]),
    ({"listen": "192.0.2.1:PORT"}, ["admin.cert"]),
    ({"listen": "example.com:80"}, ["127.0.0.1:8040"]),
    ({"listen": "8040"}, ["127.0.0.1:8040"]),
    ({"listen": "127.0.0.1:PORT", "cert": "c.pem"}, ["admin.key"]),
    ({"listen": "0.0.0.0:PORT", "cert": "c.pem", "key": "k.pem"}, ["c.pem"]),
])
def test_unsafe_addresses_are_refused(console, admin, says):
    admin = {name: value.replace("PORT", str(console.port)) for name, value in admin.items()}
    configure(console, tokens=console.tokens, **admin)
    refused(console, *says)
    (console.folder / "relay.log").write_text("")


def test_an_address_in_use_is_told(console):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        configure(console, listen=f"127.0.0.1:{taken.getsockname()[1]}", tokens=console.tokens)
        refused(console, "in use")
    (console.folder / "relay.log").write_text("")


def make_certificate(folder, name="localhost"):
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                    "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name},IP:127.0.0.1"],
                   check=True, capture_output=True)
    key.chmod(0o600)
    return cert, key


def test_tls(console):
    cert, key = make_certificate(console.folder)
    configure(console, listen=f"0.0.0.0:{console.port}", tokens=console.tokens, cert=cert, key=key,
              hosts='["localhost", "127.0.0.1"]')
    console.ready = lambda: "admin.listen" in log_of(console)
    console.up(whole=False)
    url = f"https://localhost:{console.port}"
    curl = ["curl", "-sS", "--cacert", str(cert), "-H", f"Authorization: Bearer {TOKENS['rob'][1]}"]
    done = subprocess.run([*curl, "-i", f"{url}/api/outbox"], capture_output=True, check=True)
    assert b"HTTP/1.1 200" in done.stdout, done.stdout
    assert b"Strict-Transport-Security: max-age=" in done.stdout
    # nothing older than 1.2, and nothing in the clear
    for version, good in (("1.1", False), ("1.2", True), ("1.3", True)):
        number = getattr(ssl.TLSVersion, "TLSv" + version.replace(".", "_"))
        context = ssl.create_default_context(cafile=cert)
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = number
        try:
            with socket.create_connection(("127.0.0.1", console.port), timeout=30) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as sock:
                    assert good, f"TLS {version} was spoken"
                    assert sock.version() == "TLSv" + version
        except (ssl.SSLError, ConnectionError):
            assert not good, f"TLS {version} was refused"
    assert raw.send(console.port, raw.request(console.port)).status == 0
    # a key that others can read
    console.down()
    key.chmod(0o644)
    refused(console, "key.pem", "chmod 600")
    key.chmod(0o600)
    key.write_text("nonsense")
    refused(console, "admin.cert and admin.key")


def test_unix_socket(console):
    path = console.folder / "admin.sock"
    configure(console, listen=f"unix:{path}", tokens=console.tokens)
    console.ready = lambda: path.exists()
    console.up(whole=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    done = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://localhost/livez"], capture_output=True,
                          check=True)
    assert done.stdout == b"ok\n"
    done = subprocess.run(["curl", "-sS", "--unix-socket", path, "http://evil.example/livez"], capture_output=True,
                          check=True)
    assert json.loads(done.stdout)["error"]["status"] == 421
    # a killed one leaves the file behind; the next one takes it over, but never from one that lives
    second = console.start("relay", "--config", "outbox.yaml")
    code, _, err = second.wait(60), None, second.stderr.read().decode()
    assert code != 0 and "in use" in err, err
    kill(console.process)
    assert path.exists()
    console.up(whole=False)
    until(lambda: subprocess.run(["curl", "-sS", "--unix-socket", path, "http://localhost/livez"],
                                 capture_output=True, check=False).stdout == b"ok\n", "the second life")
    console.down()
    assert not path.exists()


def test_names_that_are_given(console):
    configure(console, listen=f"127.0.0.1:{console.port}", tokens=console.tokens,
              hosts='["outbox.example", "front.example:443"]')
    console.up()
    for host, status in ((f"outbox.example:{console.port}", 200), ("front.example:443", 200), ("front.example", 421),
                         ("outbox.example", 200), ("other.example", 421), (f"localhost:{console.port}", 200)):
        reply = raw.send(console.port, raw.request(console.port, headers=[f"Host: {host}"], host=False))
        assert reply.status == status, host


def test_without_a_file(console):
    """--listen is all it takes; the tokens are where the state is."""
    state = console.folder / "state"
    log = open(console.folder / "relay.log", "wb")
    console.env["STATE_DIRECTORY"] = str(state)
    process = subprocess.Popen(console.command("relay", "--store", f"sqlite:{console.path}", "--to",
                                               "events=file:out.jsonl", "--listen", f"127.0.0.1:{console.port}"),
                               cwd=console.folder, env=console.env, stdout=log, stderr=log)
    try:
        console.process = process
        until(console.ready, "readiness")
        token = [line.split()[2] for line in (state / "tokens").read_text().splitlines() if "operator" in line][0]
        answer = console.ask("GET", "/api/outbox", token=None, headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 200 and token not in log_of(console)
    finally:
        console.process = None
        process.terminate()
        process.wait(60)
        log.close()


def test_nothing_listens_unless_asked(console):
    console.config.write_text(console.config.read_text().split("admin:\n")[0])
    process = console.start("relay", "--config", "outbox.yaml")
    try:
        until(lambda: b"relay" in os.read(process.stderr.fileno(), 4096), "its start")
        found = subprocess.run(["ss", "-ltnp"], capture_output=True, check=False).stdout.decode()
        assert f"pid={process.pid}," not in found, found
    finally:
        end(process)
    (console.folder / "relay.log").write_text("")


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(console):
    console.up()
    seen = [console.ask("GET", "/api/outbox", token=None, headers={"Authorization": f"Bearer {'x' * 43}"})
            for _ in range(12)]
    assert [answer.status for answer in seen[:10]] == [401] * 10
    assert seen[-1].status == 429 and seen[-1].headers["Retry-After"] == "60"
    assert console.ask("GET", "/api/outbox", token="rob").status == 200


def test_not_ready_without_a_store(console):
    away = console.folder / "away.db"
    console.path.rename(away)
    ready = console.ready
    console.ready = lambda: "admin.listen" in log_of(console)
    console.up(whole=False)
    until(lambda: "source.away" in log_of(console), "that the store is missed")
    answer = console.ask("GET", "/readyz", token=None)
    assert (answer.status, answer.body) == (503, b"fail\n")
    assert console.ask("GET", "/livez", token=None).body == b"ok\n"
    away.rename(console.path)
    until(ready, "the store")


def test_not_ready_while_draining(console):
    console.up()
    with open(console.folder / "events.jsonl", "ab") as target:
        # the target is somebody else's for a while, so that something is in flight
        fcntl.flock(target, fcntl.LOCK_EX)
        console.insert()
        until(lambda: console.get("/api/lanes").json["lanes"], "a lane")
        time.sleep(0.5)
        assert console.post("/api/drain", {}).status == 200
        answer = console.ask("GET", "/readyz", token=None)
        assert (answer.status, answer.body) == (503, b"fail\n")
        assert console.ask("GET", "/livez", token=None).status == 200
    assert console.process.wait(60) == 0, log_of(console)


def test_clients_that_people_use(console):
    """curl, requests, urllib: keep-alive, HEAD, a body, expect."""
    console.up()
    url = f"http://127.0.0.1:{console.port}"
    auth = ["-H", f"Authorization: Bearer {TOKENS['ada'][1]}"]
    done = subprocess.run(["curl", "-sS", *auth, f"{url}/livez", f"{url}/api/outbox", "-v"], capture_output=True,
                          check=True)
    assert b"Re-using existing connection" in done.stderr
    done = subprocess.run(["curl", "-sSI", *auth, f"{url}/metrics"], capture_output=True, check=True)
    assert b"HTTP/1.1 200" in done.stdout
    done = subprocess.run(["curl", "-sS", *auth, "-H", "Content-Type: application/json", "-H", "Expect: 100-continue",
                           "-d", '{"dry_run": true}', f"{url}/api/reload"], capture_output=True, check=True)
    assert b"error" not in done.stdout, done.stdout
    requests = pytest.importorskip("requests")
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {TOKENS['rob'][1]}"
        session.trust_env = False
        for _ in range(3):
            assert session.get(f"{url}/api/messages", params={"type": "order.*", "limit": 5}).status_code == 200
        assert session.post(f"{url}/api/reload", json={"dry_run": True}).status_code == 403


def test_connections_end_after_many_requests(console):
    console.up()
    with raw.connect(console.port) as sock:
        for count in range(1, 2000):
            sock.sendall(raw.request(console.port))
            if raw.receive(sock).closes:
                break
        assert count == 1001 or count == 1000, count
        assert sock.recv(1) == b""
