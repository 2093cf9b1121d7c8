# SPDX-License-Identifier: Apache-2.0
"""ready.py PORT PID: wait until the broker at this port answers; fail when its process ends or after 120 s."""
import os
import sys
import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

port, pid = sys.argv[1], int(sys.argv[2])
quiet = {"bootstrap.servers": "127.0.0.1:" + port, "log_level": 0, "reconnect.backoff.max.ms": 200}
client = AdminClient(quiet)
end = time.monotonic() + 120
while time.monotonic() < end:
    try:
        if client.list_topics(timeout=1).brokers:
            sys.exit(0)
    except KafkaException:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        sys.exit("kafka: the broker's process ended")
sys.exit("kafka: the broker did not answer within 120 s")
