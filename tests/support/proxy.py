# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that fails on purpose: cuts, stalls, slows or damages a connection after an exact number of bytes.

    proxy = Proxy(port)                    # of the real server; connect to proxy.port
    proxy.plan(Fault(cut_up=17))           # the next connection is cut after 17 bytes from the client
    proxy.stall()                          # all connections: bytes are taken and never arrive; nobody is told
    proxy.flow()                           # ... and go on
    proxy.cut()                            # end all of them at once
"""
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass

CHUNK = 65536


@dataclass
class Fault:
    """What happens to one connection. up: from the client to the server; down: back. Counts are bytes."""
    cut_up: int = None
    cut_down: int = None
    stall_up: int = None
    stall_down: int = None
    flip_down: int = None  # this byte arrives as another one
    notice: float = None  # seconds after which the server's keepalives tell it that nobody is there; None: never
    rate: int = None      # bytes per second, each way
    delay: float = 0      # seconds, each way
    reset: bool = True  # a cut is a reset (RST); False: an orderly end (FIN)


class Link:
    """One connection through the proxy: two sockets and two threads that pump."""

    def __init__(self, proxy, client, server, fault):
        self.proxy, self.client, self.server, self.fault = proxy, client, server, fault
        self.bytes = {"up": 0, "down": 0}
        self.over = threading.Event()
        self.stalled_at = None
        self.closing = threading.Lock()
        for way, source, target in (("up", client, server), ("down", server, client)):
            threading.Thread(target=self.pump, args=(way, source, target), daemon=True).start()

    def limit(self, way):
        """(bytes that still pass, what happens then)"""
        limits = [(at - self.bytes[way], what) for what in ("cut", "stall")
                  if (at := getattr(self.fault, f"{what}_{way}")) is not None]
        return min(limits, default=(CHUNK, None))

    def pump(self, way, source, target):
        try:
            while not self.over.is_set():
                left, what = self.limit(way)
                if left <= 0 and what == "cut":
                    break
                if left <= 0 and self.noticed():
                    break
                if left <= 0 or self.proxy.stalled.is_set():
                    time.sleep(.005)
                    continue
                # Not settimeout(): it changes the mode of a socket that the other thread writes to.
                if not select.select([source], [], [], .05)[0]:
                    continue
                data = source.recv(min(left, CHUNK))
                # a server with Nagle's algorithm on (mosquitto) would wait 40 ms for a late acknowledgement; the system forgets it
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                while self.proxy.stalled.is_set() and not self.over.is_set():
                    time.sleep(.005)
                if not data:
                    break
                if way == "down":
                    data = self.damaged(data)
                time.sleep(self.fault.delay + (len(data) / self.fault.rate if self.fault.rate else 0))
                target.sendall(data)
                self.bytes[way] += len(data)
        except (OSError, ValueError):  # ValueError: closed by the other thread
            pass
        self.end()

    def damaged(self, data):
        at = -1 if self.fault.flip_down is None else self.fault.flip_down - self.bytes["down"]
        return data[:at] + bytes([data[at] ^ 0xff]) + data[at + 1:] if 0 <= at < len(data) else data

    def noticed(self):
        self.stalled_at = self.stalled_at or time.monotonic()
        return self.fault.notice is not None and time.monotonic() > self.stalled_at + self.fault.notice

    def end(self):
        with self.closing:
            if self.over.is_set():
                return
            self.over.set()
            for end in (self.client, self.server):
                try:
                    if self.fault.reset:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    else:
                        end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()


class Proxy:
    def __init__(self, port, host="127.0.0.1", at=0):
        self.target = (host, port)
        self.plans = []
        self.default = Fault(reset=False)
        self.links = []
        self.refusing = False
        self.refused = 0  # connections
        self.stalled = threading.Event()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", at))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                fault = self.plans.pop(0) if self.plans else self.default
            try:
                if self.refusing:
                    self.refused += 1
                    raise ConnectionRefusedError
                server = socket.create_connection(self.target, 5)
                server.settimeout(None)
            except OSError:
                client.close()
                continue
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.links = [link for link in self.links if not link.over.is_set()]
                self.links.append(Link(self, client, server, fault))

    def plan(self, *faults):
        """The fates of the next connections, in order; those after them are well."""
        with self.lock:
            self.plans = list(faults)

    def stall(self):
        self.stalled.set()

    def flow(self):
        self.stalled.clear()

    def cut(self):
        with self.lock:
            links = list(self.links)
        for link in links:
            link.end()

    def bytes(self):
        """What went through the last connection: (up, down)."""
        with self.lock:
            return (self.links[-1].bytes["up"], self.links[-1].bytes["down"]) if self.links else (0, 0)

    def close(self):
        # shutdown() wakes the thread in accept(); close() alone does not
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.flow()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
