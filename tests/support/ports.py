#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Free ports on loopback for a test's servers: ports.py [COUNT]

Below those that the system gives to clients: a server that was killed must find its port free when it starts again.
"""
import random
import socket
import sys


def free_ports(count):
    taken = []
    while len(taken) < count:
        one = socket.socket()
        try:
            one.bind(("127.0.0.1", random.randrange(12000, 32000)))
            taken.append(one)
        except OSError:
            one.close()
    numbers = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return numbers


def free_port():
    return free_ports(1)[0]


if __name__ == "__main__":
    print(*free_ports(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
