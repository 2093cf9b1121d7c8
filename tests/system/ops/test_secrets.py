# SPDX-License-Identifier: Apache-2.0
"""Passwords, tokens, payloads and headers are planted everywhere; nothing that is said may hold one."""
import signal
import socket
import threading
import time

import pytest

from console import SECRETS, Console
from receiver import Receiver
from shell import Shop, until

PLANTED = {
    "store": "pw-store-3f9a", "redis": "pw-redis-81cc", "nats": "pw-nats-5d20", "amqp": "pw-amqp-77e1", "kafka": "pw-kafka-0b44",
    "file": "pw-file-c2d8", "reloaded": "pw-later-e6a3", "payload": "payload-mark-19ab", "header": "header-mark-40fe",
}


class Echo:
    """A server that quotes whatever it is sent in an error of its own, as some do."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = b""
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    def answer(self, client):
        with client:
            try:
                while data := client.recv(4096):
                    self.heard += data
                    client.sendall(b"-ERR wrong: " + data.replace(b"\r\n", b" ") + b"\r\n")
            except OSError:
                pass


FILE = """
sources:
  - {{ name: shop, store: "sqlite:app.db" }}
  - {{ name: away, store: "postgres://app@127.0.0.1:1/shop", password: {store} }}
  - {{ name: quoting, store: "postgres://app:{store}@127.0.0.1:{echo}/shop?connect_timeout=1s" }}
targets:
  - {{ name: redis, to: "redis://relay@127.0.0.1:{echo}/", password: "file:secret" }}
  - {{ name: redis-away, to: "redis://relay:{redis}@127.0.0.1:1/" }}
  - {{ name: nats, to: "nats://relay:{nats}@127.0.0.1:{echo}/x" }}
  - {{ name: rabbit, to: "amqp://relay:{amqp}@127.0.0.1:{echo}/?exchange=x" }}
  - {{ name: kafka, to: "kafka://relay:{kafka}@127.0.0.1:{echo}/x" }}
  - {{ name: quoting, to: "file:/nowhere/{redis}/x.jsonl" }}
  - {{ name: out, to: "file:out.jsonl", retry: {{ max_attempts: 1 }} }}
relay: {{ breaker_max: 1s }}
log: {{ format: {format}, level: debug }}
{more}
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_planted_is_ever_said(tmp_path, form):
    shop, echo = Shop(tmp_path), Echo()
    shop.run("init")
    (tmp_path / "secret").write_text(PLANTED["file"])
    (tmp_path / "secret").chmod(0o600)

    def write(more="", **over):
        (tmp_path / "outbox.yaml").write_text(FILE.format(format=form, echo=echo.port, more=more, **{**PLANTED, **over}))

    write()
    # one that goes through, and one that is refused, both with marks
    shop.insert(payload=f'"{PLANTED["payload"]}"', headers=f'{{"h":"{PLANTED["header"]}"}}')
    shop.insert(payload="{broken " + PLANTED["payload"], headers=f'{{"h":"{PLANTED["header"]}"}}')
    with open(tmp_path / "said", "wb") as sink:
        relay = shop.start("relay", "--config", "outbox.yaml", stdout=sink, stderr=sink)

    def said():
        return (tmp_path / "said").read_text()

    try:
        for words in ("message.refused", "source.away", *(f"{name}" for name in ("redis", "redis-away", "nats", "rabbit", "kafka"))):
            until(lambda words=words: words in said(), words)
        until(lambda: said().count("target.outage") >= 6, "every broker's outage")
        assert PLANTED["file"].encode() in echo.heard, "a password must have been sent, or this shows nothing"
        time.sleep(0.2)
        write(redis=PLANTED["reloaded"])
        relay.send_signal(signal.SIGHUP)
        until(lambda: "config.reloaded" in said(), "the reload")
        time.sleep(0.2)
        write(more=f"nonsense: {PLANTED['reloaded']}")
        relay.send_signal(signal.SIGHUP)
        until(lambda: "config.refused" in said(), "the refusal")
    finally:
        relay.send_signal(signal.SIGTERM)
        relay.wait(120)
    found = {name: line for name, secret in PLANTED.items() for line in said().splitlines() if secret in line}
    assert not found


def test_nothing_planted_is_answered_or_told(tmp_path):
    """What a server or a library says goes to views and to those who are told of alerts, too."""
    secret, receiver = "pw-planted-6c1e", Receiver()
    console = Console(tmp_path, targets=("events",), more=f'alerts:\n  - {{ name: pager, url: "{receiver.url}" }}\n')
    console.config.write_text(console.config.read_text().replace(
        "admin:", f'  - {{ name: away, to: "redis://relay:{secret}@127.0.0.1:1/" }}\n'
                  f'  - {{ name: quoting, to: "file:/nowhere/{secret}/x.jsonl" }}\nadmin:'))
    SECRETS.append(secret)
    try:
        console.up()
        console.insert()
        receiver.await_told("outbox_outage", "firing", "quoting")
        assert secret not in str(receiver.posts)
        # each answer is looked at by the console
        assert "/nowhere/***/" in console.get("/api/targets").body.decode()
        assert "/nowhere/***/" in console.get("/api/alerts").body.decode()
        assert "/nowhere/***/" in console.get("/api/outbox").body.decode()
        for path in ("/api/lanes", "/api/messages", "/metrics"):
            console.get(path)
    finally:
        console.down()
        SECRETS.remove(secret)
        receiver.close()
