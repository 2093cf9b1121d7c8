# SPDX-License-Identifier: Apache-2.0
"""A collector that keeps what it gets and judges it with the classes that OpenTelemetry generates from its own .proto files.
They are fetched once with pip into the user's cache; where they cannot be had the JSON is read by hand, and the
output says so."""
import base64
import http.server
import json
import sys
import threading

from fetch import fetch

PACKAGE = "opentelemetry-proto==1.27.0"


def judge():
    """(what judges, parse metrics, parse traces)"""
    folder = fetch(PACKAGE, "opentelemetry")
    if not folder:
        return f"read by hand, {PACKAGE} could not be had", None, None
    sys.path.insert(0, str(folder))
    from google.protobuf import json_format
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

    def parse(make):
        # unknown fields, wrong types and wrong enums are errors
        return lambda body: json_format.ParseDict(with_bytes(json.loads(body)), make())

    return (PACKAGE, parse(metrics_service_pb2.ExportMetricsServiceRequest),
            parse(trace_service_pb2.ExportTraceServiceRequest))


def with_bytes(value):
    """OTLP writes ids in hexadecimal where the generated classes want base64: the one difference of the two JSONs."""
    if isinstance(value, dict):
        return {k: base64.b64encode(bytes.fromhex(v)).decode() if k in ("traceId", "spanId", "parentSpanId") else with_bytes(v)
                for k, v in value.items()}
    return [with_bytes(v) for v in value] if isinstance(value, list) else value


class Collector:
    """Answers what `answers` says next (a status; None: nothing at all), then 200."""

    def __init__(self, port=0):
        self.requests, self.answers, self.lock = [], [], threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.lock:
                    status = collector.answers.pop(0) if collector.answers else 200
                    collector.requests.append((self.path, dict(self.headers), body, status))
                if status is None:
                    collector.hang.wait(60)
                    return
                text = b"{}" if status == 200 else b"no\x1b[31m"
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args):
                pass

        self.hang = threading.Event()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def got(self, path, status=200):
        with self.lock:
            return [r for r in self.requests if r[0] == path and r[3] == status]

    def close(self):
        self.hang.set()
        self.server.shutdown()
        self.server.server_close()
