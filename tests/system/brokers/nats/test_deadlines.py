# SPDX-License-Identifier: Apache-2.0
"""publish() has one deadline, whatever the driver asks on the way; and what is asked about duplicates."""
import json
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

INFO = b'INFO {"server_id":"X","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576%s}\r\n'
NAMES = rb"PUB \$JS\.API\.STREAM\.NAMES (\S+) \d+\r\n"
GET = rb"PUB \$JS\.API\.STREAM\.MSG\.GET\.S (\S+) \d+\r\n"
MESSAGE = rb"HPUB S\.\S+ (\S+) \d+ \d+\r\n"


@pytest.fixture
def pki(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", "k.pem", "-out", "c.pem", "-days", "2", "-subj", "/CN=x"], cwd=tmp_path, check=True,
                   capture_output=True)
    return tmp_path


@pytest.fixture
def listener():
    made = socket.create_server(("127.0.0.1", 0))
    yield made
    made.close()


class Tls:
    """A server's end of TLS whose records can be held back."""

    def __init__(self, raw, pki, trusted=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "c.pem", pki / "k.pem")
        if trusted:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(trusted)
        self.raw, self.incoming, self.outgoing = raw, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.run(self.tls.do_handshake)

    def run(self, step):
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self.raw.sendall(self.outgoing.read())
                data = self.raw.recv(65536)
                if not data:
                    raise OSError("gone") from None
                self.incoming.write(data)

    def recv(self, size):
        return self.run(lambda: self.tls.read(size))

    def record(self, data):
        self.tls.write(data)
        return self.outgoing.read()

    def sendall(self, data):
        self.raw.sendall(self.record(data))


class Client:
    """One client of a fake server: what it said, and words to it."""

    def __init__(self, listener, pki=None):
        self.raw, _ = listener.accept()
        self.raw.sendall(INFO % (b',"tls_required":true' if pki else b""))
        self.socket, self.seen, self.at = self.raw, b"", 0
        if pki:
            self.socket = Tls(self.raw, pki)
        self.hear(rb"PING\r\n")
        self.say(b"PONG\r\n")

    def hear(self, pattern):
        while True:
            found = re.compile(pattern).search(self.seen, self.at)
            if found:
                self.at = found.end()
                return found
            data = self.socket.recv(65536)
            if not data:
                raise OSError("gone")
            self.seen += data

    def say(self, data):
        self.socket.sendall(data)

    @staticmethod
    def words(reply, value):
        body = json.dumps(value).encode()
        return b"MSG %s 1 %d\r\n%s\r\n" % (reply, len(body), body)

    def answer(self, pattern, value):
        self.say(self.words(self.hear(pattern)[1], value))


@pytest.fixture
def fake(listener):
    """fake(play, pki): a server that plays with its client until it is gone; the port."""
    def start(play, pki=None):
        def serve():
            try:
                client = Client(listener, pki)
                play(client)
                while client.socket.recv(65536):
                    pass
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]
    return start


def test_half_a_record_may_take_until_the_deadline(fake, probe, pki):
    """A question about the silence has a limit of its own, and it passes; the connection stays."""
    def play(client):
        reply = client.hear(MESSAGE)[1]
        client.hear(NAMES)
        record = client.socket.record(client.words(reply, {"stream": "S", "seq": 1}))
        client.raw.sendall(record[:20])
        time.sleep(4)
        client.raw.sendall(record[20:])

    out = probe(f"tls://127.0.0.1:{fake(play, pki)}/S.{{type}}?verify=no", 1, 5, 15, timeout=30)
    assert "publish ok acked 1 " in out, out


def test_half_a_record_behind_a_question(fake, probe, pki):
    """The question was answered; that does not end the watch over the rest."""
    def play(client):
        client.answer(NAMES, {"streams": ["S"], "total": 1})
        time.sleep(0.3)
        client.raw.sendall(b"\x17\x03\x03\x01\x00half")

    out = probe(f"tls://127.0.0.1:{fake(play, pki)}/S.{{type}}?verify=no", 1, 5, 5, timeout=20)
    assert "connect ok" in out and "publish timedout acked 0 " in out, out


def test_half_a_session_ticket(listener, probe, pki):
    """It holds our certificate, which is larger than a record: the part that came is no reason to stop reading."""
    (pki / "large").write_text("[req]\ndistinguished_name=dn\nx509_extensions=v3\nprompt=no\n[dn]\nCN=client\n[v3]\n"
                               "basicConstraints=CA:true\nsubjectAltName="
                               + ",".join(f"DNS:name-{i}.of-our.example" for i in range(1000)) + "\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", "ours.key", "-out", "ours.pem", "-days", "2", "-config", "large"], cwd=pki, check=True,
                   capture_output=True)

    def serve():
        client, _ = listener.accept()
        client.sendall(INFO % b',"tls_required":true')
        server = Tls(client, pki, pki / "ours.pem")
        tickets = server.outgoing.read()
        assert len(tickets) > 32768
        client.sendall(tickets[:17000])
        time.sleep(0.5)
        client.sendall(tickets[17000:])
        seen = b""
        while b"PING\r\n" not in seen:
            seen += server.recv(65536)
        server.sendall(b"PONG\r\n")
        time.sleep(3)

    threading.Thread(target=serve, daemon=True).start()
    port = listener.getsockname()[1]
    out = probe(f"tls://127.0.0.1:{port}/x?verify=no&cert={pki}/ours.pem&key={pki}/ours.key", 1, 5, 1, timeout=20)
    assert out.startswith("connect ok"), out


def test_a_server_that_talks_without_end(fake, probe):
    def play(client):
        while True:
            client.say(INFO % b"" * 500)

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 1, 5, 2, timeout=20)
    # before the batch is sent, or when a pause let it through: it is over at the deadline, and nothing is taken for an answer
    assert "publish timedout acked 0 rejected 0 retry 0 " in out, out
    assert "sends without end" in out or "no answer in time" in out, out


# ---- who is meant by "nothing is subscribed" -------------------------------------------------------------------

NOBODY = b"HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"


def test_nobody_listens_for_one_and_another_is_slow(fake, probe):
    """That the first has no stream says nothing of the second, which is stored in the end."""
    def play(client):
        first, second, third = (client.hear(MESSAGE)[1] for _ in range(3))
        client.say(NOBODY % first + client.words(third, {"stream": "S", "seq": 1}))
        question = client.hear(NAMES + rb"(.*)\r\n")
        client.say(client.words(question[1], {"streams": [] if b"ok.0" in question[2] else ["S"]}))
        time.sleep(1)
        client.say(client.words(second, {"stream": "S", "seq": 2}))

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 3, 5, 15, timeout=30)
    assert "publish ok acked 2 rejected 0 retry 1 unknown 0 " in out and 'accepts the subject "S.ok.0"' in out, out


def test_no_stream_is_said_of_the_right_subject(fake, probe):
    """While JetStream is asked about the first, the server says something about the third."""
    def play(client):
        for _ in range(3):
            client.hear(MESSAGE)
        question = client.hear(NAMES)[1]
        client.say(b"-ERR 'Permissions Violation for Publish to \"S.ok.2\"'\r\n" + client.words(question, {"streams": []}))
        client.answer(NAMES, {"streams": []})

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 3, 5, 15, timeout=30)
    assert "retry 3 " in out and '; no stream accepts the subject "S.ok.0", though' in out, out


# ---- duplicates ---------------------------------------------------------------------------------------

DUPLICATE = {"stream": "S", "seq": 7, "duplicate": True}


@pytest.mark.parametrize("stored,words", [
    ({"message": {"subject": "S.ok.0", "seq": 7}}, "acked 1 rejected 0 retry 0 "),
    ({"message": {"subject": "S.ok.1", "seq": 7}}, 'retry 1 unknown 0 unset 0 ; stream "S" has this id already under '
     'the subject "S.ok.1" and did not store it under "S.ok.0"; add msg_id=target'),
    ({"message": {"seq": 7}}, "acked 0 rejected 0 retry 1 "),
    ({"message": "S.ok.0"}, "acked 0 rejected 0 retry 1 "),
    ({"error": {"code": 404, "err_code": 10037, "description": "no message found"}}, "no message found (10037)"),
    ({"error": 7, "message": {"subject": "S.ok.0"}}, "acked 0 rejected 0 retry 1 "),
    ([], "not JetStream's"),
])
def test_what_the_stream_has(fake, probe, stored, words):
    def play(client):
        client.answer(MESSAGE, DUPLICATE)
        client.answer(GET, stored)

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 1, 5, 5)
    assert "publish ok " in out and words in out, out


def test_no_answer_about_a_duplicate(fake, probe):
    def play(client):
        client.answer(MESSAGE, DUPLICATE)

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 1, 5, 1)
    assert "publish ok acked 0 rejected 0 retry 1 " in out and "no answer came in time" in out, out


def test_a_silent_neighbour_leaves_time_to_ask(fake, probe):
    def play(client):
        client.answer(MESSAGE, DUPLICATE)
        client.answer(GET, {"message": {"subject": "S.ok.0"}})

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 2, 5, 2)
    assert "publish ok acked 1 rejected 0 retry 0 unknown 1 " in out, out


def test_nobody_to_ask(fake, probe):
    def play(client):
        client.answer(MESSAGE, DUPLICATE)
        client.say(b"HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n" % client.hear(GET)[1])

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 1, 5, 5)
    assert "publish ok acked 0 rejected 0 retry 1 " in out and "nothing answers to $JS.API" in out, out


def test_gone_before_it_could_be_asked(fake, probe):
    def play(client):
        client.answer(MESSAGE, DUPLICATE)
        client.hear(GET)
        client.raw.shutdown(socket.SHUT_RDWR)

    out = probe(f"nats://127.0.0.1:{fake(play)}/S.{{type}}", 1, 5, 5)
    assert "publish conn acked 0 rejected 0 retry 0 unknown 1 " in out, out
