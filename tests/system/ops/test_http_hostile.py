# SPDX-License-Identifier: Apache-2.0
"""Requests that no honest client sends: each is refused, with the reason and every safety header, and changes nothing."""
import pytest

import raw
from console import TOKENS, Console

ADA = f"Authorization: Bearer {TOKENS['ada'][1]}"
ROB = f"Authorization: Bearer {TOKENS['rob'][1]}"
JSON = "Content-Type: application/json"
PAUSE = "POST /api/targets/events/pause HTTP/1.1"
BODY = b'{"reason": "hostile"}'


@pytest.fixture(scope="module")
def console(tmp_path_factory):
    console = Console(tmp_path_factory.mktemp("hostile"))
    yield console.up()
    console.down()


def post(headers=(), body=BODY, line=PAUSE, length=True, host=True):
    """What would pause the target if it were let in."""
    def make(port):
        own = [f"Content-Length: {len(body)}"] if length else []
        return raw.request(port, line, [*headers, *own], body, host)
    return make


def get(line="GET /livez HTTP/1.1", headers=(), host=True):
    return lambda port: raw.request(port, line, headers, host=host)


def exactly(text):
    return lambda port: text.replace(b"PORT", str(port).encode())


GOOD = [ADA, JSON]
# name: (what is sent, the status, the error's code; None where the HTTP library refuses it itself)
ROWS = {
    # the request line
    "absolute form": (get("GET http://127.0.0.1:80/livez HTTP/1.1"), 400, "target"),
    "authority form": (get("CONNECT 127.0.0.1:80 HTTP/1.1"), 400, "target"),
    "asterisk form": (get("OPTIONS * HTTP/1.1"), 400, "target"),
    "trace": (get("TRACE /livez HTTP/1.1"), 405, "method"),
    "unknown method": (get("BREW /livez HTTP/1.1"), 405, "method"),
    "method in lower case": (get("get /livez HTTP/1.1"), 405, "method"),
    "put": (get("PUT /livez HTTP/1.1"), 405, "method"),
    "delete": (get("DELETE /api/messages/x HTTP/1.1"), 405, "method"),
    "options": (get("OPTIONS /api/drain HTTP/1.1", ["Origin: http://evil.example",
                                                   "Access-Control-Request-Method: POST"]), 405, "method"),
    "act by get": (get("GET /api/drain HTTP/1.1", [ADA]), 405, "method"),
    "method override": (get("GET /api/drain HTTP/1.1", [ADA, "X-HTTP-Method-Override: POST"]), 405, "method"),
    "http/1.9": (get("GET /livez HTTP/1.9"), 505, "version"),
    "http/2.0": (get("GET /livez HTTP/2.0"), 505, None),
    "no version": (get("GET /livez"), 400, None),
    "two spaces": (get("GET  /livez HTTP/1.1"), 400, "header"),
    "a space in the path": (get("GET /li vez HTTP/1.1"), 400, "target"),
    "NUL in the path": (get("GET /livez\0x HTTP/1.1"), 400, "header"),
    "bytes above 127": (get("GET /liv\xe9z HTTP/1.1"), 400, "target"),
    "backslash": (get("GET /\\..\\livez HTTP/1.1"), 400, "target"),
    "fragment": (get("GET /livez#x HTTP/1.1"), 400, "target"),
    "bare LF": (exactly(b"GET /livez HTTP/1.1\nHost: 127.0.0.1:PORT\n\n"), 400, "header"),
    "bare LF behind the line": (exactly(b"GET /livez HTTP/1.1\nHost: 127.0.0.1:PORT\r\n\r\n"), 400, "header"),
    "bare LF at the end": (exactly(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\n"), 400, "header"),
    "TLS on a plain port": (exactly(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20), None, None),
    "garbage": (exactly(bytes(range(256)) * 4 + b"\r\n\r\n"), None, None),
    # paths
    "dots": (get("GET /../../etc/passwd HTTP/1.1", [ADA]), 404, "not_found"),
    "escaped dots": (get("GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1", [ADA]), 404, "not_found"),
    "two slashes": (get("GET //livez HTTP/1.1"), 404, "not_found"),
    "a slash behind": (get("GET /livez/ HTTP/1.1"), 404, "not_found"),
    "escaped letters": (get("GET /%6civez HTTP/1.1"), 404, "not_found"),
    "escaped NUL": (get("GET /livez%00 HTTP/1.1"), 404, "not_found"),
    "NUL in an id": (get("GET /api/messages/a%00b HTTP/1.1", [ADA]), 404, "not_found"),
    "broken UTF-8 in an id": (get("GET /api/messages/%c3%28 HTTP/1.1", [ADA]), 404, "not_found"),
    # queries
    "broken escape": (get("GET /api/messages?type=%zz HTTP/1.1", [ADA]), 400, "query"),
    "NUL in a query": (get("GET /api/messages?type=%00 HTTP/1.1", [ADA]), 400, "query"),
    "parameter twice": (get("GET /api/messages?type=a&type=b HTTP/1.1", [ADA]), 400, "query"),
    "unknown parameter": (get("GET /api/messages?nonsense=1 HTTP/1.1", [ADA]), 400, "parameter"),
    "parameter where none is": (get("GET /livez?x=1 HTTP/1.1"), 400, "parameter"),
    # hosts: before the route, for every method
    "no host": (get(host=False), 400, "header"),
    "no host, http/1.0": (get("GET /livez HTTP/1.0", host=False), 400, "header"),
    "two hosts": (lambda port: raw.request(port, headers=[f"Host: 127.0.0.1:{port}"]), 400, "header"),
    "a second, foreign host": (get(headers=["Host: evil.example"]), 400, "header"),
    "foreign host": (get(headers=["Host: evil.example"], host=False), 421, "host"),
    "foreign host, no such path": (get("GET /nothing HTTP/1.1", ["Host: evil.example"], host=False), 421, "host"),
    "foreign host, post": (post([*GOOD, "Host: evil.example"], host=False), 421, "host"),
    "foreign host, right port": (lambda port: raw.request(port, headers=[f"Host: rebind.example:{port}"],
                                                          host=False), 421, "host"),
    "host without its port": (get(headers=["Host: 127.0.0.1"], host=False), 421, "host"),
    "host with a user": (lambda port: raw.request(port, headers=[f"Host: a@127.0.0.1:{port}"], host=False), 421,
                         "host"),
    "host with more behind": (lambda port: raw.request(port, headers=[f"Host: 127.0.0.1:{port}.evil.example"],
                                                       host=False), 421, "host"),
    "empty host": (get(headers=["Host:"], host=False), 421, "host"),
    "a right host only where proxies write it": (
        lambda port: raw.request(port, headers=["Host: evil.example", f"X-Forwarded-Host: 127.0.0.1:{port}",
                                                f"Forwarded: host=127.0.0.1:{port}"], host=False), 421, "host"),
    # headers
    "space before the colon": (get(headers=["X : a"]), 400, "header"),
    "folded line": (get(headers=["X: a\r\n b"]), 400, "header"),
    "NUL in a value": (get(headers=["X: a\0b"]), 400, "header"),
    "control character": (get(headers=["X: a\x01b"]), 400, "header"),
    "no colon": (get(headers=["nonsense"]), 400, None),
    "65 headers": (get(headers=[f"X-{i}: a" for i in range(64)]), 431, "too_large"),
    "a header of 16 KiB": (get(headers=["X: " + "a" * (16 << 10)]), 431, "too_large"),
    "a header of 1 MiB": (get(headers=["X: " + "a" * (1 << 20)]), 431, None),
    "10,000 headers": (get(headers=[f"X-{i}: a" for i in range(10000)]), 431, None),
    "a path of 8 KiB and one": (get("GET /" + "a" * (8 << 10) + " HTTP/1.1"), 414, "too_long"),
    "a path of 1 MiB": (get("GET /" + "a" * (1 << 20) + " HTTP/1.1"), 414, None),
    # bodies
    "body of a get": (lambda port: raw.request(port, headers=["Content-Length: 2"], body=b"{}"), 400, "body"),
    "length -1": (post([*GOOD, "Content-Length: -1"], length=False), 400, None),
    "length +2": (post([*GOOD, "Content-Length: +2"], length=False), 400, None),
    "length 0x15": (post([*GOOD, "Content-Length: 0x15"], length=False), 400, None),
    "length 21, 21": (post([*GOOD, "Content-Length: 21, 21"], length=False), 400, None),
    "length twice": (post([*GOOD, f"Content-Length: {len(BODY)}"]), 400, "header"),
    "two lengths": (post([*GOOD, "Content-Length: 4"]), 400, "header"),
    "length 2^64 + 21": (post([*GOOD, "Content-Length: 18446744073709551637"], length=False), 413, None),
    "length of a terabyte": (post([*GOOD, "Content-Length: 1099511627776"], length=False), 413, "too_large"),
    "a body of 64 KiB and one": (post(GOOD, b'{"reason": "' + b"a" * (64 << 10) + b'"}'), 413, "too_large"),
    "a body of 1 MiB": (post(GOOD, b'{"reason": "' + b"a" * (1 << 20) + b'"}'), 413, "too_large"),
    "length and chunks": (post([*GOOD, "Transfer-Encoding: chunked"], b"15\r\n" + BODY + b"\r\n0\r\n\r\n"), 400,
                          "framing"),
    "chunks": (post([*GOOD, "Transfer-Encoding: chunked"], b"15\r\n" + BODY + b"\r\n0\r\n\r\n", length=False), 501,
               "framing"),
    "unknown coding": (post([*GOOD, "Transfer-Encoding: xchunked"], length=False), 501, "framing"),
    "broken chunks": (post([*GOOD, "Transfer-Encoding: chunked"], b"-5\r\nxx", length=False), 501, "framing"),
    "not JSON": (post(GOOD, b"reason=hostile"), 400, "body"),
    "not an object": (post(GOOD, b'["hostile"]'), 400, "body"),
    "a name twice": (post(GOOD, b'{"reason": "a", "reason": "b"}'), 400, "body"),
    "JSON that is too deep": (post(GOOD, b'{"a":' * 9000 + b"1" + b"}" * 9000), 400, "body"),
    "broken UTF-8": (post(GOOD, b'{"reason": "\xff"}'), 400, "body"),
    # pages of other sites
    "form": (post([ADA, "Content-Type: application/x-www-form-urlencoded"], b"reason=x"), 415, "content_type"),
    "form as text": (post([ADA, "Content-Type: text/plain"]), 415, "content_type"),
    "form with a file": (post([ADA, "Content-Type: multipart/form-data; boundary=x"]), 415, "content_type"),
    "no type": (post([ADA]), 415, "content_type"),
    "two types": (post([ADA, JSON, "Content-Type: text/plain"]), 400, "header"),
    "foreign origin": (post([*GOOD, "Origin: http://evil.example"]), 403, "origin"),
    "no origin that can be named": (post([*GOOD, "Origin: null"]), 403, "origin"),
    "own address as https": (lambda port: post([*GOOD, f"Origin: https://127.0.0.1:{port}"])(port), 403, "origin"),
    "own address, other port": (post([*GOOD, "Origin: http://127.0.0.1:1"]), 403, "origin"),
    "two origins": (lambda port: post([*GOOD, f"Origin: http://127.0.0.1:{port}", "Origin: http://evil.example"])(
        port), 400, "header"),
    "foreign origin, get": (get("GET /api/outbox HTTP/1.1", [ADA, "Origin: http://evil.example"]), 403, "origin"),
    "cross-site": (post([*GOOD, "Sec-Fetch-Site: cross-site"]), 403, "origin"),
    "same-site": (post([*GOOD, "Sec-Fetch-Site: same-site"]), 403, "origin"),
    "cross-site with an own origin": (lambda port: post([*GOOD, f"Origin: http://127.0.0.1:{port}",
                                                         "Sec-Fetch-Site: cross-site"])(port), 403, "origin"),
    # tokens
    "no token": (post([JSON]), 401, "token"),
    "basic": (post([JSON, "Authorization: Basic YWRhOmFkYQ=="]), 401, "token"),
    "two tokens": (post([JSON, ADA, ROB]), 400, "header"),
    "a token behind a comma": (post([JSON, ADA + ", Bearer x"]), 401, "token"),
    "a token as a cookie": (post([JSON, f"Cookie: token={TOKENS['ada'][1]}"]), 401, "token"),
    "a right token in the query": (get(f"GET /api/outbox?access_token={TOKENS['ada'][1]} HTTP/1.1"), 400,
                                   "token_in_query"),
    "the same with a right header": (get(f"GET /api/outbox?token={TOKENS['ada'][1]} HTTP/1.1", [ADA]), 400,
                                     "token_in_query"),
    "a right token under another name": (get(f"GET /api/messages?key={TOKENS['rob'][1]} HTTP/1.1", [ADA]), 400,
                                         "token_in_query"),
    "reader who acts": (post([ROB, JSON]), 403, "role"),
    "reader who drains": (post([ROB, JSON], b"{}", "POST /api/drain HTTP/1.1"), 403, "role"),
    "events without a token": (get("GET /api/events HTTP/1.1", ["Accept: text/event-stream"]), 401, "token"),
    "metrics without a token": (get("GET /metrics HTTP/1.1"), 401, "token"),
    "from where proxies say it is": (get("GET /api/outbox HTTP/1.1", ["X-Forwarded-For: 127.0.0.1",
                                                                     "X-Real-IP: 127.0.0.1"]), 401, "token"),
}


def paused(console):
    """As it is in the store, not as the server last saw it."""
    with console.db() as db:
        return bool(db.execute("SELECT count(*) FROM outbox_target WHERE paused").fetchone()[0])


@pytest.mark.parametrize("name", ROWS)
def test_refused(console, name):
    make, status, code = ROWS[name]
    reply = raw.send(console.port, make(console.port))
    # too many wrong tokens from one address in a minute: refused all the more
    allowed = (401, 429) if status == 401 else (status,)
    if status:
        assert reply.status in allowed, reply.data
    else:
        assert reply.status == 0 or reply.status >= 400, reply.data
    if code:
        assert reply.ours, reply.data
        reply.check_headers()
        assert reply.error["code"] in (code, "too_many"), reply.data
        assert reply.error["status"] == reply.status and len(reply.error["id"]) == 16
        assert reply.headers["content-type"] == "application/json"
    for _, token in TOKENS.values():
        assert token.encode() not in reply.data
    assert b"/tmp" not in reply.data and b"sqlite" not in reply.data
    # it goes on, and nothing was done
    good = raw.send(console.port, raw.request(console.port))
    assert good.status == 200 and good.body == b"ok\n"
    assert not paused(console)


def test_all_that_was_refused_is_good_otherwise(console):
    """The rows differ from these in one thing only, so that it is this thing that they are refused for."""
    assert raw.send(console.port, post(GOOD)(console.port)).status == 200
    assert paused(console)
    own = [f"Origin: http://127.0.0.1:{console.port}", "Sec-Fetch-Site: same-origin"]
    back = post([*GOOD, *own], b"{}", "POST /api/targets/events/resume HTTP/1.1")(console.port)
    assert raw.send(console.port, back).status == 200
    assert not paused(console)
    for line in ("GET /livez HTTP/1.1", "HEAD /livez HTTP/1.1", "GET /livez HTTP/1.0", "GET /livez? HTTP/1.1"):
        with raw.connect(console.port) as sock:
            sock.sendall(raw.request(console.port, line, ["Connection: close"]))
            reply = raw.Reply(b"".join(iter(lambda s=sock: s.recv(65536), b"")))
        assert reply.status == 200, (line, reply.data)
        reply.check_headers()
        assert reply.body == (b"" if line.startswith("HEAD") else b"ok\n")
    limits = raw.request(console.port, "GET /livez HTTP/1.1", [f"X-{i}: a" for i in range(63)])
    assert raw.send(console.port, limits).status == 200


def test_methods_are_named(console):
    reply = raw.send(console.port, raw.request(console.port, "TRACE /livez HTTP/1.1", [ADA]))
    assert reply.headers["allow"] == "GET, HEAD"
    assert ADA.encode() not in reply.data
    reply = raw.send(console.port, raw.request(console.port, "GET /api/drain HTTP/1.1", [ADA]))
    assert reply.headers["allow"] == "POST"


def test_nothing_rides_behind_a_refused_request(console):
    """What follows a request that could be read in two ways is not read as another one."""
    inner = raw.request(console.port, PAUSE, [*GOOD, f"Content-Length: {len(BODY)}"], BODY)
    for headers in (["Content-Length: 5", "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked"],
                    ["Content-Length: 0", f"Content-Length: {len(inner)}"]):
        outer = raw.request(console.port, "POST /api/drain HTTP/1.1", [JSON, *headers], b"0\r\n\r\n" + inner)
        with raw.connect(console.port) as sock:
            sock.sendall(outer)
            data = b""
            while True:
                try:
                    more = sock.recv(65536)
                except ConnectionResetError:
                    break
                if not more:
                    break
                data += more
        assert data.count(b"HTTP/1.1 ") == 1, data
        assert not paused(console)


def test_pipelined_requests_are_answered_in_turn(console):
    one = raw.request(console.port, "GET /livez HTTP/1.1")
    two = raw.request(console.port, "GET /nothing HTTP/1.1", ["Connection: close"])
    with raw.connect(console.port) as sock:
        sock.sendall(one + two)
        data = b"".join(iter(lambda: sock.recv(65536), b""))
    assert data.index(b"200 OK") < data.index(b"404 Not Found")


def test_the_log_holds_no_control_characters_and_no_flood(console):
    evil = "\x1b[31m\u202egnp.exe%0d%0afake line"
    for _ in range(50):
        raw.send(console.port, raw.request(console.port, "GET /api/outbox HTTP/1.1",
                                           [f"Authorization: Bearer wrong{evil}".encode(),
                                            b"User-Agent: " + evil.encode()]))
        raw.send(console.port, raw.request(console.port, "GET /api/messages/%1b%5b31m HTTP/1.1", [ADA]))
        assert raw.send(console.port, raw.request(console.port, "GET /api/outbox HTTP/1.1",
                                                  ["Authorization: Bearer wrong"])).status in (401, 429)
    text = (console.folder / "relay.log").read_text()
    assert "\x1b" not in text and "\u202e" not in text and "fake line" not in text
    # wrong tokens: a line a minute for an address, whatever their number
    assert 1 <= text.count("admin.denied") < 10, text
