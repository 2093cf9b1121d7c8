#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What lies at an address, read by another client: witness.py PORT ADDRESS [USER PASSWORD]

One JSON object a line; bytes are in base64. Nothing is taken away.
"""
import base64
import json
import sys

from proton import Array, Message
from proton.reactor import Copy
from proton.utils import BlockingConnection


def plain(value):
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Array):
        return [plain(v) for v in value.elements]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def connect(port, user, password):
    login = {"user": user, "password": password, "allowed_mechs": "PLAIN"} if user else {"allowed_mechs": "ANONYMOUS"}
    return BlockingConnection(f"amqp://127.0.0.1:{port}", timeout=20, allow_insecure_mechs=True, **login)


def ask(connection, resource, attribute):
    """Artemis' management answers; None where it cannot."""
    receiver = connection.create_receiver(None, dynamic=True)
    sender = connection.create_sender("activemq.management", name=receiver.remote_source.address)
    sender.send(Message(properties={"_AMQ_ResourceName": resource, "_AMQ_Attribute": attribute}, body="",
                        reply_to=receiver.remote_source.address))
    answer = receiver.receive(20)
    receiver.close()
    sender.close()
    return json.loads(answer.body)[0] if answer.properties.get("_AMQ_OperationSucceeded") else None


def read(port, address, user="reader", password="reader-secret"):
    """Everything in an Artemis queue, as it is; nothing is taken away."""
    connection = connect(port, user, password)
    try:
        expected = ask(connection, f"queue.{address}", "MessageCount") or 0
        receiver = connection.create_receiver(address, credit=min(expected, 1000), options=Copy()) if expected else None
        messages = []
        while len(messages) < expected:
            messages.append(receiver.receive(20))
            receiver.accept()
        return messages
    finally:
        connection.close()


def main(port, address, *login):
    for m in read(port, address, *login):
        body = m.body if isinstance(m.body, (bytes, memoryview)) else str(m.body).encode()
        print(json.dumps({
            "id": plain(m.id), "body": plain(body), "properties": plain(m.properties or {}),
            "annotations": plain({str(k): v for k, v in (m.annotations or {}).items()}), "durable": m.durable,
            "subject": m.subject, "group_id": m.group_id, "correlation_id": plain(m.correlation_id),
            "content_type": str(m.content_type) if m.content_type else None, "ttl": m.ttl,
            "creation_time": m.creation_time}))


if __name__ == "__main__":
    main(*sys.argv[1:])
