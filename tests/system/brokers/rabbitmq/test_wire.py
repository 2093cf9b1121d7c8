# SPDX-License-Identifier: Apache-2.0
"""Bytes that no good broker sends, confirms in every order, and certificates. None of it needs a real broker, but one."""
import os
import pathlib
import random
import ssl
import struct
import subprocess
import time

import pytest

import conftest  # noqa: F401  pylint: disable=unused-import  (makes probe.py known)
from probe import PATIENCE, Probe, message
from fake import Fake, ack, channel_close, connection_close, frame, long, method, nack, returned, START, TUNE

SUPPORT = pathlib.Path(os.environ.get("OUTBOX_TEST_SUPPORT") or pathlib.Path(__file__).parents[3] / "support")


def url(fake, scheme="amqp", host="127.0.0.1", rest=""):
    return f"{scheme}://guest:guest@{host}:{fake.port}/?routing_key=q{rest}"


def batch(n):
    return [message(f"m-{i}") for i in range(n)]


# ---- greetings

def refuse(sock):
    """No login for this one."""
    sock.recv(8)
    sock.sendall(START_FRAME)
    sock.recv(65536)
    sock.sendall(connection_close(403, "ACCESS_REFUSED - Login was refused"))
    sock.recv(65536)


def test_a_wrong_password_is_told_though_the_other_host_is_down():
    with Fake(None, greet=refuse) as fake:
        for hosts in (f"127.0.0.1:{fake.port},127.0.0.1:1", f"127.0.0.1:1,127.0.0.1:{fake.port}"):
            p = Probe(f"amqp://guest:guest@{hosts}/?routing_key=q")
            answer = p.connect(10000)
            assert answer.status == "auth" and answer.native == 403 and "refused" in answer.text, answer
            p.close()


def drip(sock):
    for byte in b"\x01\0\0\0\0\x01\0" * 100:
        sock.sendall(bytes([byte]))
        time.sleep(.3)


START_FRAME = method(0, START, b"\0\x09" + struct.pack(">I", 0) + long("PLAIN") + long("en_US"))
GREETINGS = {
    "nothing": b"",
    "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "another version": b"AMQP\x00\x01\x00\x00",
    "an old version": method(0, START, b"\x08\0" + struct.pack(">I", 0) + long("PLAIN") + long("en_US")),
    "zeros": b"\0" * 4096,
    "ones": b"\xff" * 4096,
    "noise": random.Random(7).randbytes(65536),
    "huge frame": struct.pack(">BHI", 1, 0, 0xfffffff0) + b"x" * 1000,
    "empty frame": frame(1, 0, b""),
    "tiny method": frame(1, 0, b"\0"),
    "bad end": START_FRAME[:-1] + b"\0",
    "cut start": START_FRAME[:20],
    "no such method": method(0, (99, 99)),
    "a table longer than its frame": method(0, START, b"\0\x09" + struct.pack(">I", 0x7fffffff) + b"x" * 100),
    "no mechanism": method(0, START, b"\0\x09" + struct.pack(">I", 0) + long("MAGIC") + long("en_US")),
    "start twice": START_FRAME * 50,
    "tune to nothing": START_FRAME + method(0, TUNE, struct.pack(">HIH", 1, 1, 1)),
    "tune to a little": START_FRAME + method(0, TUNE, struct.pack(">HIH", 0, 10, 0)),
    "deep table": method(0, START, b"\0\x09" + (b"\x01aF" + struct.pack(">I", 2000)) * 280 + long("PLAIN") + long("e")),
    "header first": frame(2, 0, b"\0\x3c\0\0" + b"\xff" * 10),
    "body first": frame(3, 1, b"body"),
    "close at once": connection_close(541, "INTERNAL_ERROR \x1b[31m\r\n red"),
}


@pytest.mark.parametrize("name", GREETINGS)
def test_garbage_is_an_error(name):
    def greet(sock):
        sock.recv(8)
        sock.sendall(GREETINGS[name])
        if name not in ("nothing", "noise"):
            sock.recv(1 << 20)
            time.sleep(.2)

    with Fake(None, greet=greet) as fake:
        probe = Probe(url(fake))
        answer = probe.connect(1500)
        assert answer.status in ("conn", "proto", "timedout", "config", "auth"), answer
        assert answer.text and "\x1b" not in answer.text and "guest" not in answer.text
        probe.close()


@pytest.mark.parametrize("name,status", [("another version", "proto"), ("an old version", "config"),
                                         ("no mechanism", "config"), ("no such method", "proto")])
def test_what_is_no_broker_is_told(name, status):
    def greet(sock):
        sock.recv(8)
        sock.sendall(GREETINGS[name])
        sock.recv(1 << 20)

    with Fake(None, greet=greet) as fake:
        probe = Probe(url(fake))
        assert probe.connect(3000).status == status
        probe.close()


def test_a_byte_now_and_then_does_not_hold_us():
    with Fake(None, greet=drip) as fake:
        probe = Probe(url(fake))
        assert probe.connect(1000).status in ("timedout", "proto", "conn")
        probe.close()


# ---- confirms

def ask(script, n=10, ms=1500, rest="", frame_max=131072, messages=None):
    with Fake(script, frame_max=frame_max) as fake:
        probe = Probe(url(fake, rest=rest))
        answer = probe.connect(5000)
        assert answer.status == "ok", answer
        answer = probe.publish(messages or batch(n), ms)
        probe.close()
        return answer


def play(*answers, n=10):
    def script(session):
        session.receive(n)
        for answer in answers:
            session.send(answer)
    return script


def test_confirms_in_every_order():
    rng = random.Random(11)
    for _ in range(10):
        tags = list(range(1, 11))
        rng.shuffle(tags)
        nacked = {tag for tag in tags if rng.random() < .3}
        answer = ask(play(b"".join(nack(tag) if tag in nacked else ack(tag) for tag in tags)))
        assert answer.status == "ok"
        assert answer.verdicts == ["RETRY" if i + 1 in nacked else "ACKED" for i in range(10)]


def test_multiple():
    assert ask(play(ack(4, True), nack(6, True), ack(8), ack(10, True))).verdicts == \
        ["ACKED"] * 4 + ["RETRY"] * 2 + ["ACKED"] * 4
    assert ask(play(ack(0, True))).verdicts == ["ACKED"] * 10


def test_a_return_goes_before_its_ack():
    answer = ask(play(ack(2, True), returned("m-4"), returned("m-7", b""), ack(10, True)))
    assert answer.status == "ok"
    assert [i for i, v in enumerate(answer.verdicts) if v == "RETRY"] == [4, 7]
    assert answer.verdicts.count("ACKED") == 8


def test_what_was_not_confirmed_is_not_acked():
    answer = ask(play(ack(3, True), ack(7)))
    assert answer.status == "timedout"
    assert answer.verdicts == ["ACKED"] * 3 + ["UNKNOWN"] * 3 + ["ACKED"] + ["UNKNOWN"] * 3


LIES = {
    "a tag never sent": ack(11),
    "tag zero": ack(0),
    "a huge tag": ack(2**64 - 1, True),
    "a return of nobody's": returned("stranger"),
    "a return within a return": returned("m-4")[:-10] + returned("m-5"),
    "a body of nothing": frame(3, 1, b"x" * 100),
    "properties of nothing": returned("m-4")[returned("m-4").index(b"\xce") + 1:],
    "an ack on another channel": method(9, (60, 80), struct.pack(">QB", 10, 1)),
    "an ack on no channel": method(0, (60, 80), struct.pack(">QB", 10, 1)),
    "half an ack": frame(1, 1, struct.pack(">HHI", 60, 80, 0)),
    "a delivery": method(1, (60, 60), b"\0" + b"\0" * 9 + b"\0\0"),
    "noise": random.Random(3).randbytes(4096),
    "the end": connection_close(320, "CONNECTION_FORCED - \x1b[2J bye"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_acknowledge_nothing(name):
    answer = ask(play(ack(2, True), LIES[name], ack(10, True)))
    assert answer.status in ("conn", "proto", "timedout"), answer
    assert answer.verdicts == ["ACKED"] * 2 + ["UNKNOWN"] * 8 or \
        answer.verdicts == ["ACKED"] * 2 + ["UNKNOWN"] * 2 + ["RETRY"] + ["UNKNOWN"] * 5, answer
    assert "\x1b" not in answer.text


def test_a_closed_channel_keeps_what_was_confirmed():
    def script(session):
        session.receive(10)
        session.send(ack(4, True) + channel_close(541, "INTERNAL_ERROR"))
    answer = ask(script)
    assert answer.status == "conn" and answer.native == 541
    assert answer.verdicts == ["ACKED"] * 4 + ["UNKNOWN"] * 6


def codes():
    """The broker's codes in docs/transports/rabbitmq.md: (code, words, verdict, status)."""
    page = (pathlib.Path(__file__).parents[4] / "docs/transports/rabbitmq.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]]
            for line in page.partition("\n## Codes\n")[2].partition("\n## ")[0].splitlines() if line.startswith("|")]
    found = [(int(code), words, verdict, status[1:].lower()) for code, _, words, verdict, status in rows if code.isdigit()]
    assert len(found) > 10
    return found


@pytest.mark.parametrize("code,words,verdict,status", codes())
def test_codes_that_end_a_connection(code, words, verdict, status):
    answer = ask(play(ack(2, True), connection_close(code, f"SO - {words} it is")))
    assert (answer.status, answer.native) == (status, code)
    assert answer.verdicts == ["ACKED"] * 2 + ["UNKNOWN"] * 8


# A message that was too large is found and the channel opened again: test_verdicts.py, on a real broker.
@pytest.mark.parametrize("code,words,verdict,status", [row for row in codes() if row[2] != "REJECTED"])
def test_codes_that_close_a_channel(code, words, verdict, status):
    answer = ask(play(ack(2, True), channel_close(code, f"SO - {words} it is")))
    assert (answer.status, answer.native) == (status, code)
    assert answer.verdicts == ["ACKED"] * 2 + ["UNKNOWN"] * 8


def test_headers_must_fit_in_a_frame():
    messages = [message("a"), message("b", type="t", topic="x" * 5000), message("c")]
    answer = ask(play(ack(2, True), n=2), messages=messages, frame_max=4096)
    assert answer.verdicts == ["ACKED", "REJECTED", "ACKED"]
    assert "frames hold 4088" in answer.items[1][2]


def test_a_body_of_many_frames():
    for size in (4087, 4088, 4089, 8176, 8177):
        messages = [message("a", size=size), message("b")]
        assert ask(play(ack(2, True), n=2), messages=messages, frame_max=4096).verdicts == ["ACKED", "ACKED"]


# ---- certificates

def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    for authority in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={authority}", "-days", 2,
                "-keyout", folder / f"{authority}.key", "-out", folder / f"{authority}.pem")

    def make(name, san, authority="ca", days=2, subject="/CN=localhost"):
        (folder / f"{name}.ext").write_text(f"subjectAltName={san}\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", folder / f"{name}.key",
                "-out", folder / f"{name}.csr")
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / f"{authority}.pem", "-CAkey",
                folder / f"{authority}.key", "-CAcreateserial", "-days", days, "-extfile", folder / f"{name}.ext",
                "-out", folder / f"{name}.pem")

    make("good", "DNS:localhost")
    make("wrong name", "DNS:mq.example")
    make("address", "IP:127.0.0.1", subject="/CN=somebody")
    make("expired", "DNS:localhost", days=-1)
    make("unknown authority", "DNS:localhost", authority="other")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", 2, "-addext",
            "subjectAltName=DNS:localhost", "-keyout", folder / "self-signed.key", "-out", folder / "self-signed.pem")
    return folder


def context(certificates, name, **limits):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
    for limit, value in limits.items():
        setattr(made, limit, value)
    return made


def tls(fake, certificates, rest=""):
    return url(fake, "amqps", "localhost", f"&ca={certificates}/ca.pem" + rest)


def test_a_good_certificate_connects(certificates):
    with Fake(play(ack(10, True)), context(certificates, "good")) as fake:
        probe = Probe(tls(fake, certificates))
        assert probe.connect(5000).status == "ok"
        assert probe.publish(batch(10)).verdicts == ["ACKED"] * 10
        probe.close()


@pytest.mark.parametrize("name", ["wrong name", "address", "expired", "unknown authority", "self-signed"])
def test_a_bad_certificate_does_not(certificates, name):
    with Fake(play(ack(10, True)), context(certificates, name)) as fake:
        probe = Probe(tls(fake, certificates))
        answer = probe.connect(5000)
        assert answer.status == "auth" and "certificate" in answer.text
        probe.close()
        # verify=no is how somebody says that it is known
        probe = Probe(tls(fake, certificates, "&verify=no"))
        assert probe.connect(5000).status == "ok"
        probe.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_tls_and_no_tls_do_not(certificates):
    old = context(certificates, "good", minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with Fake(play(), old) as fake:
        probe = Probe(tls(fake, certificates))
        assert probe.connect(3000).status in ("conn", "auth")
        probe.close()
    with Fake(play()) as fake:  # plain AMQP on a TLS port
        probe = Probe(tls(fake, certificates))
        assert probe.connect(1500).status in ("conn", "timedout")
        probe.close()


def test_a_real_broker_with_tls(certificates):
    if not os.path.exists("/usr/lib/rabbitmq/bin/rabbitmq-server"):
        pytest.skip("no RabbitMQ server on this machine")
    settings = f"""listeners.ssl.1 = 127.0.0.1:@TLS_PORT@
ssl_options.cacertfile = {certificates}/ca.pem
ssl_options.certfile = {certificates}/good.pem
ssl_options.keyfile = {certificates}/good.key
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
"""
    line = 'exec "$0" "amqps://guest:guest@localhost:$OUTBOX_TEST_RABBITMQ_TLS_PORT/?queue=q$1"'
    rest = f"&ca={certificates}/ca.pem&cert={certificates}/good.pem&key={certificates}/good.key"
    probe = Probe([SUPPORT / "with-rabbitmq", "bash", "-c", line, os.environ["OUTBOX_PROBE"], rest], env={"RABBITMQ_SETTINGS": settings},
                  patience=5 * PATIENCE)  # a server starts first
    assert probe.opened.status == "ok", probe.opened
    assert probe.connect().status == "ok"
    assert probe.publish([message(f"m-{i}", size=30000) for i in range(200)]).verdicts == ["ACKED"] * 200
    probe.close()
