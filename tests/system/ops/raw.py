# SPDX-License-Identifier: Apache-2.0
"""Bytes on a socket, as no library would send them, and what comes back."""
import json
import re
import socket

PATIENCE = 60
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                               "img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Reply:
    """One answer, or none: status 0."""

    def __init__(self, data):
        self.data = data
        head, _, self.body = data.partition(b"\r\n\r\n")
        while re.match(rb"HTTP/1\.1 1\d\d", head):
            head, _, self.body = self.body.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.1 (\d+)", lines[0])
        self.status = int(found.group(1)) if found else 0
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            assert name.lower() not in self.headers, f"{name} is there twice: {head!r}"
            self.headers[name.lower()] = value.strip()
        self.closes = self.headers.get("connection", "").lower() == "close"

    @property
    def ours(self):
        """Made by us, and not by the HTTP library, which refuses what it cannot read with a fixed page."""
        return "content-security-policy" in self.headers

    @property
    def error(self):
        return json.loads(self.body)["error"]

    def check_headers(self):
        for name, value in HEADERS.items():
            assert self.headers.get(name) == value, f"{name}: {self.headers.get(name)!r}"
        assert not [name for name in self.headers if name.startswith("access-control-")], self.headers
        assert "server" not in self.headers and "x-powered-by" not in self.headers


def connect(port, host="127.0.0.1"):
    return socket.create_connection((host, port), timeout=PATIENCE)


def receive(sock):
    """Read one whole answer, or to the end."""
    data = b""
    while True:
        head, found, body = data.partition(b"\r\n\r\n")
        while found and re.match(rb"HTTP/1\.1 1\d\d", head):
            head, found, body = body.partition(b"\r\n\r\n")
        if found:
            length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
            if length and len(body) >= int(length.group(1)):
                return Reply(data)
        try:
            more = sock.recv(65536)
        except ConnectionResetError:
            more = b""
        if not more:
            return Reply(data)
        data += more


def send(port, data):
    """Send the bytes on a connection of their own and read the answer."""
    with connect(port) as sock:
        try:
            sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent
        return receive(sock)


def request(port, line="GET /livez HTTP/1.1", headers=(), body=b"", host=True):
    """A request in its usual form, with some of it replaced."""
    lines = [line.encode("latin-1")]
    if host:
        lines.append(f"Host: 127.0.0.1:{port}".encode())
    lines += [h if isinstance(h, bytes) else h.encode("latin-1") for h in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
