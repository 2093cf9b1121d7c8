# SPDX-License-Identifier: Apache-2.0
"""Somebody who is told of alerts: a web server that keeps what it was sent and answers as the test says."""
import http.server
import json
import threading

from shell import until


class Receiver:
    """status: what it answers; gate: while it is clear, no answer at all."""

    def __init__(self, port=0):
        self.posts, self.headers = [], []
        self.status, self.location = 200, None
        self.gate = threading.Event()
        self.gate.set()
        self.arrived = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.arrived += 1
                receiver.gate.wait()
                if receiver.status == 200:
                    receiver.posts.append(json.loads(body))
                    receiver.headers.append(dict(self.headers))
                try:
                    self.send_response(receiver.status)
                    if receiver.location:
                        self.send_header("Location", receiver.location)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except OSError:
                    pass  # it did not wait for us

            def do_GET(self):
                receiver.arrived += 1
                self.send_error(404)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook/url-secret-4711"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()

    def told(self):
        """(alert, status, target) of all that was taken, in order."""
        return [(a["labels"]["alertname"], a["status"], a["labels"].get("target"))
                for post in self.posts for a in post["alerts"]]

    def await_told(self, alert, status, target="events"):
        until(lambda: (alert, status, target) in self.told(), f"{alert} {status}; told: {self.told()}")
