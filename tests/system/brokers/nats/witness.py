# SPDX-License-Identifier: Apache-2.0
"""Reads a stream with nats-py, the ordinary client of another language: witness.py URL STREAM COUNT. JSON lines."""
import asyncio
import base64
import json
import sys

import nats


async def read(url, stream, count):
    connection = await nats.connect(url)
    subscription = await connection.jetstream().subscribe(f"{stream}.>", ordered_consumer=True)
    for _ in range(count):
        message = await subscription.next_msg(timeout=20)
        print(json.dumps({"subject": message.subject, "headers": message.headers,
                          "data": base64.b64encode(message.data).decode()}))
    await connection.close()

asyncio.run(read(sys.argv[1], sys.argv[2], int(sys.argv[3])))
