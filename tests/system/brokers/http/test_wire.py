# SPDX-License-Identifier: Apache-2.0
"""What a receiver sees: envelopes, headers, who we are, through a proxy, in batches."""
import base64
import http.server
import json
import socket
import threading
import urllib.parse

import pytest

from servers import LOOPBACK, probe, verdicts
from recorder import Recorder

STRUCTURED, BINARY, NATIVE, EXTERNAL = "1", "2", "3", "4"


def secret(folder, name, text):
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return path


def post(options="", path="/hook", answer=None, count=1, size=0, **env):
    with Recorder(answer) as receiver:
        said = probe(f"http://127.0.0.1:{receiver.port}{path}#{LOOPBACK}{options}", count, size=size, **env)
    return said, receiver.requests


def test_structured_is_the_default():
    said, (request,) = post(path="/hook/a%20b?x=1&y=%23")
    assert verdicts(said) == ["ACKED"]
    assert request.method == "POST" and request.path == "/hook/a%20b?x=1&y=%23"
    assert request.headers["Content-Type"] == "application/cloudevents+json"
    assert request.headers["User-Agent"].startswith("outbox/")
    assert not [name for name in request.headers if name.lower().startswith(("ce-", "webhook", "authorization"))]
    event = json.loads(request.body)
    assert (event["id"], event["type"], event["data"]) == ("m-0", "order.placed", {"n": 0})


def test_binary_follows_the_binding():
    """CloudEvents' HTTP binding: blanks, quotes, percent signs and what is not ASCII are escaped."""
    _, (request,) = post(PROBE_ENVELOPE=BINARY, PROBE_ID='id "1" 50%', PROBE_TYPE="größe €",
                         PROBE_HEADER="X-Name=a \"b\" 50% ü ")
    assert request.body == b'{"n":0}' and request.headers["Content-Type"] == "application/json"
    assert request.headers["ce-specversion"] == "1.0"
    assert request.headers["ce-id"] == "id%20%221%22%2050%25"
    assert request.headers["ce-type"] == "gr%C3%B6%C3%9Fe%20%E2%82%AC"
    assert urllib.parse.unquote(request.headers["ce-type"]) == "größe €"
    assert request.headers["X-Name"] == 'a "b" 50%25 %C3%BC%20'
    assert urllib.parse.unquote(request.headers["X-Name"]) == 'a "b" 50% ü '


def test_native():
    _, (request,) = post(PROBE_ENVELOPE=NATIVE, PROBE_HEADER="x-empty=")
    assert request.headers["outbox-id"] == "m-0" and request.headers["outbox-type"] == "order.placed"
    assert request.headers["x-empty"] == "" and request.body == b'{"n":0}'


def test_external_has_nothing_internal():
    _, (request,) = post(PROBE_ENVELOPE=EXTERNAL, PROBE_HEADER="tenant=acme")
    assert "kind" not in json.loads(request.body) and "tenant" not in request.headers


@pytest.mark.parametrize("name", ["Host", "Content-Length", "Transfer-Encoding", "Authorization", "Connection",
                                  "webhook-id", "X-Webhook-Signature", "Expect", "Cookie", "X-Own"])
def test_names_that_are_not_the_messages(name):
    """It can neither change the request's frame nor say who it is from."""
    _, (request,) = post("&header.X-Own=ours", PROBE_ENVELOPE=BINARY, PROBE_HEADER=f"{name}=5")
    assert request.headers[f"header-{name}"] == "5"
    assert request.headers.get(name) != "5" and request.body == b'{"n":0}'


def test_a_message_cannot_begin_a_header():
    said, requests = post(PROBE_ENVELOPE=BINARY, PROBE_ID="a\r\nEvil: 1")
    assert verdicts(said) == ["REJECTED"] and not requests
    said, requests = post(PROBE_ENVELOPE=BINARY, PROBE_HEADER="x=a\tb")
    assert verdicts(said) == ["ACKED"] and requests[0].headers["x"] == "a%09b"


def test_headers_of_every_request(tmp_path):
    file = secret(tmp_path, "headers", "X-Api-Key: s3cret-key\n\nX-Other:  two words\n")
    _, (request,) = post(f"&header.X-Tenant=acme&header_file={file}&idempotency_key=yes")
    assert (request.headers["X-Tenant"], request.headers["X-Api-Key"]) == ("acme", "s3cret-key")
    assert request.headers["X-Other"] == "two words" and request.headers["Idempotency-Key"] == "m-0"


def test_bearer_and_basic(tmp_path):
    _, (request,) = post(f"&token_file={secret(tmp_path, 'token', 'abc.def')}")
    assert request.headers["Authorization"] == "Bearer abc.def"
    with Recorder() as receiver:
        probe(f"http://me:p%40ss@127.0.0.1:{receiver.port}/#{LOOPBACK}")
    assert base64.b64decode(receiver.requests[0].headers["Authorization"].split()[1]) == b"me:p@ss"


def test_a_secret_that_is_echoed_is_hidden(tmp_path):
    def echo(request):
        return 422, [], f"who are you, {request.headers['Authorization']}?\x1b[31m".encode()

    said, _ = post(f"&token_file={secret(tmp_path, 'token', 'hunter22')}", answer=echo)
    item = said["items"][0]
    assert "hunter22" not in json.dumps(said) and "\x1b" not in item["reason"] + item["answer"]
    assert item["reason"].startswith("422: who are you, Bearer ***?"), item


def test_of_an_answer_four_kib_are_kept():
    said, _ = post(answer=lambda request: (422, [], b"a" * 3000 + b"\n" + b"b" * 30000))
    item = said["items"][0]
    assert len(item["answer"]) == 4096 and len(item["reason"]) < 400


@pytest.mark.parametrize("head", [b"a" * 4093, b"\r\n" * 4093, b"a" * 8189, b"hunter22" * 1023 + b"12345", b"a" * 292], ids=len)
def test_no_half_of_a_secret_is_kept(tmp_path, head):
    """Wherever the answer is cut: for the history, for the reason, or where reading it ends."""
    said, _ = post(f"&token_file={secret(tmp_path, 'token', 'hunter22')}",
                   answer=lambda request: (422, [], head + b"hunter22" + b"b" * 20000))
    item = said["items"][0]
    assert "hun" not in item["answer"] and "hun" not in item["reason"] and len(item["answer"]) <= 4096, item


def test_batches():
    said, requests = post("&batch=4", count=10)
    assert verdicts(said) == ["ACKED"] * 10 and [len(json.loads(r.body)) for r in requests] == [4, 4, 2]
    assert {r.headers["Content-Type"] for r in requests} == {"application/cloudevents-batch+json"}
    assert [e["id"] for r in requests for e in json.loads(r.body)] == [f"m-{i}" for i in range(10)]
    said, requests = post("&batch=1000", count=5, size=400_000)
    assert [len(json.loads(r.body)) for r in requests] == [2, 2, 1]


def test_one_verdict_for_a_batch():
    said, _ = post("&batch=5", count=5, answer=lambda r: (500, [], b"no"))
    assert verdicts(said) == ["RETRY"] * 5 and said["items"][4]["reason"] == "500: no"
    # nobody knows which: the engine makes it smaller, until one is alone
    said, _ = post("&batch=5", count=5, answer=lambda r: (422, [], b"no"))
    assert verdicts(said) == ["UNKNOWN"] * 5 and said["publish"] == "ok"
    said, _ = post("&batch=5", count=1, answer=lambda r: (422, [], b"no"))
    assert verdicts(said) == ["REJECTED"]


def test_the_id_of_a_batch_is_of_all_its_messages():
    _, requests = post("&batch=4&idempotency_key=yes", count=8)
    _, again = post("&batch=4&idempotency_key=yes", count=8)
    _, shorter = post("&batch=4&idempotency_key=yes", count=3)
    keys = [r.headers["Idempotency-Key"] for r in requests]
    assert keys == [r.headers["Idempotency-Key"] for r in again] and len(set(keys)) == 2
    assert shorter[0].headers["Idempotency-Key"] not in keys


class Forward(http.server.BaseHTTPRequestHandler):
    """A forward proxy: absolute URLs, and CONNECT."""
    seen = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        Forward.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        place = urllib.parse.urlsplit(self.path)
        with socket.create_connection((place.hostname, place.port)) as out:
            head = f"POST {place.path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
            out.sendall(head.encode() + body)
            self.wfile.write(out.recv(65536))
        self.close_connection = True


def test_through_a_proxy(tmp_path):
    Forward.seen = []
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forward)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    file = secret(tmp_path, "password", "pr0xy")
    with Recorder() as receiver:
        # the check of addresses is the proxy's business then
        url = f"http://127.0.0.1:{receiver.port}/x#proxy=http://me@127.0.0.1:{proxy.server_address[1]}"
        said = probe(f"{url}&proxy_password_file={file}")
    proxy.shutdown()
    assert verdicts(said) == ["ACKED"] and len(receiver.requests) == 1, said
    (method, path, login), = Forward.seen
    assert (method, path) == ("POST", f"http://127.0.0.1:{receiver.port}/x")
    assert base64.b64decode(login.split()[1]) == b"me:pr0xy"


def test_proxies_of_the_environment_are_not_used():
    with Recorder() as receiver:
        said = probe(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}", http_proxy="http://127.0.0.1:1",
                     ALL_PROXY="http://127.0.0.1:1")
    assert verdicts(said) == ["ACKED"]


def test_doctor_sends_nothing():
    with Recorder() as receiver:
        said = probe(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}", PROBE_CHECK="1")
    assert said["level"] == 1 and "2xx" in said["check"] and "not signed" in said["check"]
    assert not receiver.requests


def test_doctor_tells_of_a_query_that_looks_like_an_option():
    with Recorder() as receiver:
        said = probe(f"http://127.0.0.1:{receiver.port}/?tenant=7&timeout=3s#{LOOPBACK}", PROBE_CHECK="1")
        plain = probe(f"http://127.0.0.1:{receiver.port}/?tenant=7#{LOOPBACK}", PROBE_CHECK="1")
    assert '"timeout" of the query goes to the receiver' in said["check"]
    assert "of the query" not in plain["check"]
