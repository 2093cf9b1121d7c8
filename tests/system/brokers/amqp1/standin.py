# SPDX-License-Identifier: Apache-2.0
"""A scripted peer in place of a broker that cannot be had, above all Azure Service Bus: Qpid Proton as a server, in a thread.

It is a stand-in: it does what the documentation of the service says, and nothing proves that the service does the same.
"""
import pathlib
import queue
import sys
import threading
import time

from proton import Condition, Delivery, Message, Terminus, int32
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, Container, EventInjector

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "support"))
from ports import free_port  # noqa: E402  pylint: disable=wrong-import-position

OUTCOMES = {"rejected": Delivery.REJECTED, "released": Delivery.RELEASED, "modified": Delivery.MODIFIED,
            "accepted": Delivery.ACCEPTED, "received": Delivery.RECEIVED}


def condition(name, text="as the script says"):
    return Condition(name, text)


class StandIn(MessagingHandler):
    """Accepts everything, unless a test says otherwise:

    script(address, message) -> "accepted", ("rejected", "amqp:not-found"), "settled", "silence", ("detach", condition),
    ("end", condition), ("close", condition), "drop". refused: {address: condition} of attaches. token(properties, body)
    -> a status for $cbs.
    """

    def __init__(self, tls=None, credit=100, properties=None):
        super().__init__(prefetch=0, auto_accept=False, auto_settle=False)
        self.script = lambda address, message: "accepted"
        self.token = None
        self.refused, self.silent, self.max_size, self.credit, self.properties = {}, set(), 0, credit, properties
        self.messages, self.attached, self.detached, self.tokens, self.hostnames = [], [], [], [], []
        self.links, self.replies = [], {}
        self.port, self.tls = free_port(), tls
        self.started, self.injector, self.done = threading.Event(), EventInjector(), queue.Queue()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.started.wait(20)

    def run(self):
        container = Container(self)
        container.container_id = "stand-in"
        if self.tls:
            container.ssl.server.set_credentials(str(self.tls[0]), str(self.tls[1]), None)
        container.selectable(self.injector)
        container.run()

    def url(self, rest="q", scheme="amqp1"):
        return f"{scheme}://127.0.0.1:{self.port}/{rest}"

    # ---- from a test's thread

    def do(self, act):
        """Run act() in the peer's thread, and wait for it."""
        event = ApplicationEvent("act")
        event.act = act
        self.injector.trigger(event)
        assert self.done.get(timeout=20) is None

    def do_and_send(self, act):
        """The same, and what comes of it has left: two turns of its loop later."""
        self.do(act)
        for _ in range(2):
            self.do(lambda: None)
        time.sleep(0.1)

    def on_act(self, event):
        event.act()
        self.done.put(None)

    def stop(self):
        def end():
            self.acceptor.close()
            for link in self.links:
                link.connection.close()
        self.do(end)
        self.injector.close()

    def detach(self, name, text="idle"):
        """Close all links of messages, as the service does with idle ones."""
        def act():
            for link in list(self.links):
                link.condition = condition(name, text)
                link.close()
            self.links.clear()
        self.do_and_send(act)

    # ---- in the peer's own

    def on_start(self, event):
        self.acceptor = event.container.listen(f"{'amqps' if self.tls else 'amqp'}://127.0.0.1:{self.port}")
        self.started.set()

    def on_connection_opening(self, event):
        self.hostnames.append(event.connection.remote_hostname)
        if self.properties:
            event.connection.properties = self.properties

    def on_link_opening(self, event):
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if link.is_sender:
            self.replies[link.remote_target.address] = link
            return
        address = link.remote_target.address
        if address in self.silent:
            time.sleep(3)  # and with it everything else: the library would answer by itself
        if address != "$cbs":
            self.attached.append((address, str(link.remote_target.capabilities.get_object() or "")
                                  if link.remote_target.capabilities.next() else ""))
        if address in self.refused:
            link.target.type = Terminus.UNSPECIFIED
            link.open()  # and on_link_local_open() closes it
            return
        if self.max_size:
            link.max_message_size = self.max_size
        link.open()
        link.flow(100 if address == "$cbs" else self.credit)
        if address != "$cbs":
            self.links.append(link)

    def on_link_local_open(self, event):
        if event.link.is_receiver and event.link.remote_target.address in self.refused:
            event.link.condition = condition(self.refused[event.link.remote_target.address])
            event.link.close()

    def on_link_closing(self, event):
        if event.link.is_receiver:
            self.detached.append(event.link.remote_target.address)
            self.links = [link for link in self.links if link != event.link]

    def on_message(self, event):
        address = event.link.remote_target.address
        if address == "$cbs":
            self.answer_token(event)
            return
        self.messages.append((address, event.message))
        self.act(event, self.script(address, event.message))
        if self.credit >= 100 and event.link.credit < 50:
            event.link.flow(50)

    def answer_token(self, event):
        properties = dict(event.message.properties)
        self.tokens.append((properties, event.message.body))
        status = self.token(properties, event.message.body) if self.token else 202
        self.settle(event.delivery, "accepted")
        if status is None:
            return
        reply = self.replies[event.message.reply_to]
        reply.send(Message(correlation_id=event.message.id, body=None, properties={
            "status-code": int32(status), "status-description": f"status {status}"}))

    @staticmethod
    def settle(delivery, outcome, name=None):
        if name:
            delivery.local.condition = condition(name)
        if outcome != "settled":
            delivery.update(OUTCOMES[outcome])
        if outcome != "received":
            delivery.settle()

    def act(self, event, what):
        word, name = what if isinstance(what, tuple) else (what, None)
        if word == "silence":
            return
        if word in ("detach", "end", "close"):
            place = {"detach": event.link, "end": event.session, "close": event.connection}[word]
            if name:
                place.condition = condition(name)
            place.close()
        elif word == "drop":
            event.transport.close_tail()
            event.transport.close_head()
        else:
            self.settle(event.delivery, word, name)
