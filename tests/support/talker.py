# SPDX-License-Identifier: Apache-2.0
"""A server that says to each who connects what a test wants it to say."""
import socket
import threading


class Talker(threading.Thread):
    """Accepts connections and lets `behave` talk on each, in threads of their own."""

    def __init__(self, behave, port=0):
        super().__init__(daemon=True)
        self.behave, self.listener, self.sockets = behave, socket.socket(), []
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(16)
        self.port = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.sockets.append(client)
            threading.Thread(target=self.talk, args=(client,), daemon=True).start()

    def talk(self, client):
        try:
            self.behave(client)
        except OSError:
            pass
        finally:
            client.close()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.sockets:
            one.close()
