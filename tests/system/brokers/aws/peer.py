# SPDX-License-Identifier: Apache-2.0
"""A stand-in for SQS, SNS and a machine's metadata service, on a string: it says what no emulator says.

It believes nobody: each signature is computed again by botocore.
"""
import http.server
import json
import re
import socket
import ssl
import threading
import urllib.parse

import witness  # noqa: F401  pylint: disable=unused-import  (it finds botocore)


class Request:
    def __init__(self, handler, body):
        self.method, self.path, self.body = handler.command, handler.path, body
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.sns = "urlencoded" in self.headers.get("content-type", "")
        self.form = dict(urllib.parse.parse_qsl(body.decode())) if self.sns else {}
        self.json = json.loads(body) if body[:1] == b"{" else {}

    def entries(self):
        """As SQS has them."""
        if not self.sns:
            return self.json["Entries"]
        found = {}
        for name, value in self.form.items():
            if match := re.fullmatch(r"PublishBatchRequestEntries\.member\.(\d+)\.(\w+)", name):
                found.setdefault(int(match[1]), {})[match[2].replace("Message", "MessageBody")
                                                    if match[2] == "Message" else match[2]] = value
        return [found[number] for number in sorted(found)]

    def ids(self):
        return [json.loads(entry["MessageBody"])["id"] for entry in self.entries()]

    def signature_holds(self, secret):
        # pylint: disable=import-error,import-outside-toplevel
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials
        said = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=(.+?)/\d{8}/(.+?)/(.+?)/aws4_request, "
                            r"SignedHeaders=(.+?), Signature=([0-9a-f]{64})", self.headers["authorization"])
        again = AWSRequest("POST", f"http://{self.headers['host']}{self.path}", data=self.body)
        for name in said[4].split(";"):
            again.headers[name] = self.headers[name]
        again.context["timestamp"] = self.headers["x-amz-date"]
        auth = SigV4Auth(Credentials(said[1], secret), said[3], said[2])
        signed = set(said[4].split(";"))
        assert {"host", "x-amz-date", "content-type"} <= signed
        assert signed >= {name for name in self.headers if name.startswith("x-amz-")}
        return auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again) == said[5]


def stored(request, failed=None, leave_out=()):
    """200, all stored but those of failed: {number: (code, ours)}."""
    failed = failed or {}
    numbers = [n for n in range(len(request.entries())) if n not in leave_out]
    if not request.sns:
        return 200, json.dumps({
            "Successful": [{"Id": str(n), "MessageId": f"m-{n}", "MD5OfMessageBody": "0" * 32}
                           for n in numbers if n not in failed],
            "Failed": [{"Id": str(n), "Code": failed[n][0], "Message": "<so> & \"so\"", "SenderFault": failed[n][1]}
                       for n in numbers if n in failed]})
    good = "".join(f"<member><Id>{n}</Id><MessageId>m-{n}</MessageId></member>" for n in numbers if n not in failed)
    bad = "".join(f"<member><Id>{n}</Id><Code>{failed[n][0]}</Code><Message>&lt;so&gt; &amp; &quot;so&quot;</Message>"
                  f"<SenderFault>{str(failed[n][1]).lower()}</SenderFault></member>" for n in numbers if n in failed)
    return 200, ("<PublishBatchResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><PublishBatchResult>"
                 f"<Failed>{bad}</Failed><Successful>{good}</Successful></PublishBatchResult></PublishBatchResponse>")


def refused(request, code, status=400):
    if not code:
        return status, ""
    if request.sns:
        return status, f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>"
    return status, json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": "no"})


class Peer:
    """answer(request) gives (status, text), or None: nothing is said."""

    def __init__(self, answer=stored, certificate=None):
        self.answer, self.requests = answer, []
        peer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                request = Request(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                peer.requests.append(request)
                said = peer.answer(request)
                if said is None:
                    peer.stopped.wait(60)
                    self.close_connection = True
                    return
                status, text = said[:2]
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body) + (said[2] if len(said) > 2 else 0)))
                self.end_headers()
                self.wfile.write(body)
                self.close_connection = len(said) > 2

            do_POST = do_GET = do_PUT = handle_one

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):  # pylint: disable=arguments-differ
                pass

        self.stopped = threading.Event()
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, service="sqs", place="1/orders", options=""):
        return f"{service}+http://127.0.0.1:{self.port}/{place}?region=eu-west-1{options}"

    def close(self):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]
