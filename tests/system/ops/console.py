# SPDX-License-Identifier: Apache-2.0
"""A running `outbox relay --config` with its admin server, and a client as any program has one."""
import http.client
import json
import subprocess
import urllib.parse

from ports import free_port
from shell import PATIENCE, Shop, until

TOKENS = {"ada": ("operate", "ada-secret-0123456789abcdef0123456789abcdef"),
          "rob": ("read", "rob-secret-fedcba9876543210fedcba9876543210")}
SECRETS = [token for _, token in TOKENS.values()] + ["planted-password"]


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body
        text = body.decode("utf-8", "replace") + str(response.headers)
        for secret in SECRETS:
            assert secret not in text, f"a secret in an answer: {text}"

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]["message"]

    def __str__(self):
        return f"{self.status} {self.body[:2000]!r}"


class Console(Shop):
    """A folder with databases, a configuration, and the daemon that serves it."""

    def __init__(self, folder, sources=("shop",), targets=("events",), stores=None, more=""):
        super().__init__(folder)
        self.env.pop("OUTBOX_STORE")
        self.path = folder / f"{sources[0]}.db"
        self.port = free_port()
        self.config = folder / "outbox.yaml"
        self.tokens = folder / "tokens"
        self.tokens.write_text("".join(f"{name} {role} {token}\n" for name, (role, token) in TOKENS.items()))
        self.tokens.chmod(0o600)
        stores = stores or {}
        text = "sources:\n"
        for name in sources:
            text += f'  - name: {name}\n    store: "{stores.get(name) or f"sqlite:{name}.db"}"\n'
        text += "targets:\n"
        for name in targets:
            text += f'  - name: {name}\n    to: "file:{name}.jsonl"\n'
        text += f"admin:\n  listen: 127.0.0.1:{self.port}\n  tokens: {self.tokens}\nhealth:\n  interval: 200ms\n  settle: 200ms\n{more}"
        self.config.write_text(text)
        for name in sources:
            self.run("init", "--config", "outbox.yaml", "--source", name)
        self.sources = sources
        self.process = None

    def up(self, whole=True):
        """Start it; ready when its health can be asked and the first look at the stores is over. whole: all of them."""
        self.log = open(self.folder / "relay.log", "wb")
        self.process = subprocess.Popen(self.command("relay", "--config", "outbox.yaml"), cwd=self.folder,
                                        env=self.env, stdout=self.log, stderr=self.log)
        until(self.ready, f"readiness; the log says {(self.folder / 'relay.log').read_text()}")
        if whole:
            until(self.running, "every source with its targets")
        return self

    def running(self):
        answer = self.ask("GET", "/api/outbox")
        return answer.status == 200 and all(s["state"] == "running" and s["targets"] for s in answer.json["sources"])

    def ready(self):
        assert self.process.poll() is None, (self.folder / "relay.log").read_text()
        try:
            return self.ask("GET", "/readyz", token=None).status == 200
        except OSError:
            return False

    def down(self):
        """End it; what it logged has no secrets."""
        if self.process:
            self.process.terminate()
            self.process.wait(timeout=PATIENCE)
            self.log.close()
            self.process = None
        text = (self.folder / "relay.log").read_text(errors="replace")
        for secret in SECRETS:
            assert secret not in text, text
        assert "Sanitizer" not in text and "runtime error:" not in text, text

    def ask(self, method, path, body=None, token="ada", query=None, headers=None):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = dict(headers or {})
        if token:
            headers["Authorization"] = f"Bearer {TOKENS[token][1]}"
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def get(self, path, status=200, **query):
        token = query.pop("token", "rob")
        answer = self.ask("GET", path, token=token, query=query)
        assert answer.status == status, f"GET {path} {query}: {answer}"
        return answer

    def post(self, path, body=None, status=200, token="ada"):
        answer = self.ask("POST", path, {} if body is None else body, token=token)
        assert answer.status == status, f"POST {path} {body}: {answer}"
        return answer

    def cli(self, *args, code=0):
        """The same through the command line."""
        return self.run(*args, "--config", "outbox.yaml", "--json", code=code).json

    def states(self, source=None):
        """How many deliveries are in which state, by the command line."""
        args = ("--source", source) if source else ()
        counts = {}
        for row in self.cli("list", "--all", *args)["deliveries"]:
            counts[row["state"]] = counts.get(row["state"], 0) + 1
        return counts
