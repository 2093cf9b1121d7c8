# SPDX-License-Identifier: Apache-2.0
"""Servers that are slow, endless, wrong or gone in the middle: what they did not say is not believed."""
import os
import socket
import ssl
import struct
import subprocess
import threading
import time

import pytest

import servers
from servers import LOOPBACK, probe, verdicts

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def read_request(sock):
    """The head and the body of one request; b"": the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return b""
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < size:
        more = sock.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body


class Hostile:
    """Talks to each connection by talk(sock, number)."""

    def __init__(self, talk, tls=None):
        self.talk, self.tls, self.count = talk, tls, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.one, args=(sock, self.count), daemon=True).start()

    def one(self, sock, number):
        try:
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            self.talk(sock, number)
        except (OSError, ssl.SSLError):
            pass
        finally:
            sock.close()

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()


def after_request(*pieces, pause=0.0, close=True):
    """Read a request, say these pieces, and close."""
    def talk(sock, _):
        if not read_request(sock):
            return
        for piece in pieces:
            sock.sendall(piece)
            time.sleep(pause)
        if not close:
            while sock.recv(65536):
                pass
    return talk


def ask(talk, count=1, seconds=10, options="", tls=None, scheme="http", **env):
    with Hostile(talk, tls) as server:
        return probe(f"{scheme}://127.0.0.1:{server.port}/#{LOOPBACK}{options}", count, seconds, **env)


WRONG = {
    "nothing": [],
    "half a status line": [b"HTTP/1.1 2"],
    "no end of the headers": [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"],
    "shorter than its length": [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"],
    "a chunk that ends early": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nshort"],
    "a chunk that is none": [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc"],
    "two lengths": [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: x\r\n\r\n"],
    "a negative length": [b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"],
    "not HTTP": [b"SSH-2.0-OpenSSH_9.2\r\n"],
    "a status of two digits": [b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"],
    "a status of 600": [b"HTTP/1.1 600 Odd\r\nContent-Length: 0\r\n\r\n"],
    "a status of 999": [b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"],
    "a status of 000": [b"HTTP/1.1 000 Odd\r\nContent-Length: 0\r\n\r\n"],
    "only a 100": [b"HTTP/1.1 100 Continue\r\n\r\n"],
    "a switch that nobody asked for": [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"],
    "headers without an end": [b"HTTP/1.1 200 OK\r\n"] + [b"X-A: " + b"a" * 60000 + b"\r\n"] * 20,
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_answer_is_unknown(name):
    said = ask(after_request(*WRONG[name]))
    assert said["connect"] == "ok" and verdicts(said) == ["UNKNOWN"], said
    assert said["publish"] != "ok" and said["error"] and said["items"][0]["reason"], said


def test_interim_answers_are_not_the_answer():
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
    assert verdicts(ask(after_request(interim, NO_CONTENT))) == ["ACKED"]
    assert verdicts(ask(after_request(interim, b"HTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n"))) == ["REJECTED"]


def test_trailers_belong_to_an_answer():
    said = ask(after_request(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n"))
    assert verdicts(said) == ["ACKED"], said


def test_an_answer_too_many_acknowledges_nothing():
    """Two answers to the first request; the second one gets none, on this connection or on another."""
    first = threading.Lock()

    def talk(sock, _):
        while read_request(sock):
            if first.acquire(blocking=False):
                sock.sendall(NO_CONTENT * 2)

    said = ask(talk, 2, 5, "&in_flight=1")
    assert verdicts(said)[0] == "ACKED" and verdicts(said)[1] != "ACKED", said


def test_a_reset():
    def talk(sock, _):
        read_request(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    said = ask(talk, 5)
    assert said["publish"] == "conn" and "ACKED" not in verdicts(said), said


def test_slow_headers_cost_the_deadline_and_no_more():
    def talk(sock, _):
        read_request(sock)
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 100000:
            sock.sendall(bytes([byte]))
            time.sleep(0.05)

    said = ask(talk, 3, seconds=2)
    assert said["publish"] == "timedout" and verdicts(said) == ["UNKNOWN"] * 3, said


def test_the_timeout_of_one_request():
    """One is slow: the others are answered, and that is no outage."""
    def talk(sock, _):
        while True:
            request = read_request(sock)
            if not request:
                return
            if b'"id":"m-3"' in request:
                sock.recv(1)
            sock.sendall(NO_CONTENT)

    said = ask(talk, 20, seconds=20, options="&timeout=1s")
    assert said["publish"] == "ok", said
    assert verdicts(said) == ["UNKNOWN" if i == 3 else "ACKED" for i in range(20)], said


def test_what_there_was_no_time_for_was_not_sent():
    """A slow receiver is no outage."""
    seen = []

    def talk(sock, _):
        while True:
            request = read_request(sock)
            if not request:
                return
            seen.append(request)
            time.sleep(0.4)
            sock.sendall(NO_CONTENT)

    said = ask(talk, 200, seconds=4, options="&in_flight=2")
    counts = {verdict: verdicts(said).count(verdict) for verdict in set(verdicts(said))}
    assert said["publish"] == "ok" and set(counts) == {"ACKED", "UNSET"} and counts["ACKED"] == len(seen), counts


def test_an_endless_body():
    def talk(sock, _):
        read_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            sock.sendall(b"1000\r\n" + b"a" * 4096 + b"\r\n")

    assert verdicts(ask(talk, 3)) == ["ACKED"] * 3

    def refuse(sock, _):
        read_request(sock)
        sock.sendall(b"HTTP/1.1 422 No\r\nContent-Length: 99999999999\r\n\r\n")
        while True:
            sock.sendall(b"no" * 2048)

    said = ask(refuse, 2)
    assert verdicts(said) == ["REJECTED"] * 2 and said["items"][0]["answer"] == "no" * 2048


def test_a_body_that_drips():
    def talk(sock, _):
        read_request(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            sock.sendall(b"a")
            time.sleep(0.2)

    said = ask(talk, 2, seconds=2)
    assert verdicts(said) == ["UNKNOWN"] * 2 and said["publish"] == "timedout", said


def test_an_answer_too_many_answers_nobody():
    """Two at once: the second one is not taken for the answer to the next request."""
    def talk(sock, _):
        read_request(sock)
        sock.sendall(NO_CONTENT + NO_CONTENT)
        while sock.recv(65536):
            pass

    # each connection answers the first request only: whatever came on it later was not acknowledged
    with Hostile(talk) as server:
        url = f"http://127.0.0.1:{server.port}/#{LOOPBACK}&in_flight=1&timeout=1s"
        said = probe(url, 5, 5)
        assert verdicts(said).count("ACKED") <= server.count - 1, (said, server.count)


def test_redirects_of_every_kind():
    for status in (300, 301, 302, 303, 304, 305, 307, 308, 399):
        answer = f"HTTP/1.1 {status} Go\r\nLocation: http://user:pw@Else.example:99/x\r\nContent-Length: 0\r\n\r\n"
        said = ask(after_request(answer.encode()))
        assert verdicts(said) == ["REJECTED"], (status, said)
        assert "pw" not in said["items"][0]["reason"]
    said = ask(after_request(b"HTTP/1.1 302 Go\r\nLocation: /\x1b[31m\r\nContent-Length: 0\r\n\r\n"))
    assert verdicts(said) == ["REJECTED"] and "\x1b" not in said["items"][0]["reason"]
    said = ask(after_request(b"HTTP/1.1 302 Go\r\nContent-Length: 0\r\n\r\n"))
    assert "redirect to somewhere" in said["items"][0]["reason"]


@pytest.fixture(name="context")
def server_context(pki):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "ip.pem", pki / "ip.key")
    return context


def test_tls_that_is_cut_off(pki, context):
    options = f"&ca={pki}/ca.pem"
    length = b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"

    def cut(sock, _):
        read_request(sock)
        sock.sendall(length)
        socket.socket.close(sock)  # without a good-bye

    said = ask(cut, 3, options=options, tls=context, scheme="https")
    assert verdicts(said) == ["UNKNOWN"] * 3 and said["publish"] == "conn", said
    # an answer without a length ends with the connection: cut off, nobody knows how long it was
    said = ask(after_request(b"HTTP/1.1 200 OK\r\n\r\nhalf"), options=options, tls=context, scheme="https")
    assert verdicts(said) != ["REJECTED"]

    def in_the_handshake(sock, _):
        sock.recv(10)

    assert ask(in_the_handshake, options=options, scheme="https")["connect"] == "conn"


def test_nothing_is_sent_after_the_deadline():
    """The connection of a request that was given up is closed at once, while the transport lives on."""
    ended = threading.Event()

    def talk(sock, _):
        if read_request(sock):
            while sock.recv(65536):
                pass
            ended.set()

    with Hostile(talk) as server:
        url = f"http://127.0.0.1:{server.port}/#{LOOPBACK}"
        with subprocess.Popen([os.environ["HTTP_PROBE"], url, "1", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "PROBE_LINGER": "1"}) as process:
            assert b'"timedout"' in process.stdout.readline()
            assert ended.wait(servers.PATIENCE)
            assert process.poll() is None
            process.communicate(b"\n")


# ---- HTTP/2 ---------------------------------------------------------------------------------------------------------

h2 = pytest.importorskip("h2", reason="no h2 for Python (Debian: python3-h2)")


class Streams:
    """An HTTP/2 server: decide(number of the request) says what becomes of its stream."""

    def __init__(self, decide):
        self.decide, self.asked = decide, 0

    def __call__(self, sock, _):
        import h2.config, h2.connection  # pylint: disable=import-outside-toplevel
        import h2.events  # pylint: disable=import-outside-toplevel
        import h2.exceptions  # pylint: disable=import-outside-toplevel
        if sock.selected_alpn_protocol() != "h2":
            return
        talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        talk.initiate_connection()
        sock.sendall(talk.data_to_send())
        while True:
            data = sock.recv(65536)
            if not data:
                return
            try:
                events = talk.receive_data(data)
            except h2.exceptions.ProtocolError:
                continue  # after a GOAWAY it hears nothing more
            for event in events:
                if isinstance(event, h2.events.DataReceived):
                    talk.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if isinstance(event, h2.events.StreamEnded):
                    self.asked += 1
                    goes_on = self.decide(talk, event.stream_id, self.asked)
                    sock.sendall(talk.data_to_send())
                    if goes_on is False:
                        return
            sock.sendall(talk.data_to_send())


def answer_stream(talk, stream):
    talk.send_headers(stream, [(":status", "204")], end_stream=True)


@pytest.fixture(name="h2_context")
def h2_server_context(context):
    context.set_alpn_protocols(["h2"])
    return context


def test_http2_answers(pki, h2_context):
    said = ask(Streams(lambda talk, stream, _: answer_stream(talk, stream)), 50, options=f"&ca={pki}/ca.pem",
               tls=h2_context, scheme="https")
    assert verdicts(said) == ["ACKED"] * 50


def test_a_stream_that_is_reset_is_one_messages_trouble(pki, h2_context):
    def decide(talk, stream, number):
        if number == 5:
            talk.reset_stream(stream, 2)  # INTERNAL_ERROR
        else:
            answer_stream(talk, stream)

    said = ask(Streams(decide), 20, options=f"&ca={pki}/ca.pem", tls=h2_context, scheme="https")
    assert said["publish"] == "ok" and sorted(verdicts(said)) == ["ACKED"] * 19 + ["UNKNOWN"], said


def test_a_goaway_acknowledges_nothing(pki, h2_context):
    answered = []

    def decide(talk, stream, number):
        if number == 4:
            talk.close_connection(0, last_stream_id=stream - 2)
            return False
        answered.append(stream)
        answer_stream(talk, stream)
        return True

    said = ask(Streams(decide), 20, options=f"&ca={pki}/ca.pem&timeout=3s", tls=h2_context, scheme="https")
    assert verdicts(said).count("ACKED") <= len(answered), said
    assert set(verdicts(said)) <= {"ACKED", "UNKNOWN", "UNSET"}, said


def test_a_goaway_and_silence(pki, h2_context):
    """A connection that is to end and answers nothing more is not asked for ever."""
    def decide(talk, stream, number):
        if number <= 3:
            answer_stream(talk, stream)
        elif number == 4:
            talk.close_connection(0, last_stream_id=stream - 2)

    said = ask(Streams(decide), 20, seconds=5, options=f"&ca={pki}/ca.pem&timeout=1s", tls=h2_context, scheme="https")
    assert verdicts(said).count("ACKED") == 3, said


def test_a_reset_after_the_head_is_no_answer(pki, h2_context):
    def decide(talk, stream, _):
        talk.send_headers(stream, [(":status", "200"), ("content-length", "10")])
        talk.send_data(stream, b"half")
        talk.reset_stream(stream, 8)  # CANCEL

    said = ask(Streams(decide), 3, options=f"&ca={pki}/ca.pem", tls=h2_context, scheme="https")
    assert verdicts(said) == ["UNKNOWN"] * 3, said
