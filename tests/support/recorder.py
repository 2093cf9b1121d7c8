#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP/1.1 server that keeps what was posted to it: recorder.py FOLDER PORT

As a program it writes its process to FOLDER/pid once it listens, and every body as a line of FOLDER/PATH before it
answers 204. A batch for a topic of SNS it takes as SNS does: every message is a line of FOLDER/TOPIC before the answer
names it. Tests use the class, and say what it answers.
"""
import http.server
import os
import pathlib
import re
import sys
import threading
import urllib.parse


class Request:
    def __init__(self, method, path, headers, body, version):
        self.method, self.path, self.headers, self.body, self.version = method, path, headers, body, version


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "recorder"

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError, ValueError, BrokenPipeError):
            self.close_connection = True

    def take(self):
        size = int(self.headers.get("Content-Length", -1 if self.command == "POST" else 0))
        body = self.rfile.read(max(size, 0))
        # cut off in the middle: nobody posted that (a head that ends early has no length)
        if len(body) < size or size < 0:
            self.close_connection = True
            return
        request = Request(self.command, self.path, self.headers, body, self.request_version)
        status, headers, text = self.server.take(request)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204 and status >= 200:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if text and status != 204:
            self.wfile.write(text)

    do_POST = do_GET = do_HEAD = do_OPTIONS = do_PUT = take


class Recorder(http.server.ThreadingHTTPServer):
    """requests: what came, in the order of its end. answer(request): (status, headers, body); default 204."""
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, answer=None, tls=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.lock = threading.Lock()
        self.requests = []
        self.answer = answer
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self):
        return self.server_address[1]

    def handle_error(self, *_):
        pass

    def take(self, request):
        with self.lock:
            self.requests.append(request)
        return (self.answer(request) if self.answer else None) or (204, [], b"")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Files(Recorder):
    def __init__(self, folder, port):
        super().__init__(port=port)
        self.folder = folder

    def keep(self, name, lines):
        with self.lock, open(self.folder / name, "ab") as out:
            out.write(b"".join(line + b"\n" for line in lines))

    def take_batch(self, form):
        entries = sorted((int(match[1]), ident) for name, ident in form.items()
                         if (match := re.fullmatch(r"PublishBatchRequestEntries\.member\.(\d+)\.Id", name)))
        self.keep(form["TopicArn"].rsplit(":", 1)[1],
                  [form[f"PublishBatchRequestEntries.member.{number}.Message"].encode() for number, _ in entries])
        stored = "".join(f"<member><Id>{ident}</Id><MessageId>m</MessageId></member>" for _, ident in entries)
        return (200, [("Content-Type", "text/xml")], f"<PublishBatchResponse><PublishBatchResult><Failed/><Successful>{stored}"
                "</Successful></PublishBatchResult></PublishBatchResponse>".encode())

    def take(self, request):
        if request.body.startswith(b"Action=PublishBatch&"):
            return self.take_batch(dict(urllib.parse.parse_qsl(request.body.decode(), max_num_fields=1000)))
        self.keep(request.path.strip("/").replace("/", "_"), [request.body])
        return (204, [], b"")


def main():
    folder = pathlib.Path(sys.argv[1])
    server = Files(folder, int(sys.argv[2]))
    (folder / "pid.new").write_text(str(os.getpid()), encoding="ascii")
    os.rename(folder / "pid.new", folder / "pid")
    server.serve_forever()


if __name__ == "__main__":
    main()
