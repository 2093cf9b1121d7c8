# SPDX-License-Identifier: Apache-2.0
"""Programs that are compiled with liboutbox-dev, and what they load."""
import re

from built import ROOT

BROKERS = re.compile(r"rabbitmq|rdkafka|nats|hiredis|mosquitto|proton|curl")
EXAMPLES = "/usr/share/doc/liboutbox-dev/examples"


def compile_with(root, source, *libraries):
    root.run("sh", "-ec", f"gcc -Wall -Werror -o /debs/program {source} $(pkg-config --cflags --libs {' '.join(libraries)})")
    loaded = root.run("ldd", "/debs/program")
    assert "not found" not in loaded
    return loaded


def test_the_library_brings_no_library_of_a_broker(root):
    root.install("liboutbox1")
    assert [p for p in root.installed() if BROKERS.search(p)] == []


def test_a_publisher_loads_no_library_of_a_broker(root):
    root.install("outbox", "liboutbox1", "liboutbox-brokers1", "liboutbox-testing1", "liboutbox-dev")
    root.apt("install", "gcc", "libc6-dev", "pkg-config")
    loaded = compile_with(root, f"{EXAMPLES}/minimal.c", "outbox", "sqlite3")
    assert "liboutbox.so.1 => /lib/" in loaded and not BROKERS.search(loaded), loaded
    root.run("outbox", "init", "--store", "sqlite:/debs/app.db")
    assert 'order.placed, key 42: {"id":42' in root.run("/debs/program", "/debs/app.db")


def test_a_relay_loads_the_drivers(root):
    loaded = compile_with(root, f"{EXAMPLES}/relay_to_broker.c", "outbox-brokers")
    assert "liboutbox-brokers.so.1" in loaded and "librdkafka" in loaded


def test_an_application_tests_in_memory(root):
    root.copy_in(ROOT / "tests" / "system" / "headers" / "testing_test.c", "/debs/testing_test.c")
    assert not BROKERS.search(compile_with(root, "/debs/testing_test.c", "outbox-testing"))
    root.run("/debs/program")
