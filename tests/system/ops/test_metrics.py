# SPDX-License-Identifier: Apache-2.0
"""/metrics as Prometheus reads it: promtool has nothing to say, the numbers are those of the deliveries, the documentation
names what is there and nothing else."""
import pathlib
import re
import shutil
import subprocess
import uuid

import pytest
from console import Console
from shell import until

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "metrics.md"
SAMPLE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)",?')


@pytest.fixture
def console(tmp_path):
    made = Console(tmp_path, sources=("shop", "bank"), targets=("events", "copy"),
                   more="otlp: { endpoint: 'http://127.0.0.1:9' }\n")
    made.run("init", "--inbox", "--config", "outbox.yaml", "--source", "shop")
    yield made
    made.down()


def read(console):
    """{(name, labels as a sorted tuple): number}, and the text."""
    answer = console.ask("GET", "/metrics", token="rob")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text, samples = answer.body.decode(), {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = SAMPLE.match(line)
        assert match, line
        labels = tuple(sorted(LABEL.findall(match[2] or "")))
        assert (match[1], labels) not in samples, f"twice: {line}"
        samples[match[1], labels] = float(match[3])
    return samples, text


def value(samples, name, **labels):
    return samples[name, tuple(sorted(labels.items()))]


def delivered(console, n):
    def look():
        samples, _ = read(console)
        at = ("outbox_delivered_total", (("source", "shop"), ("target", "events")))
        return samples.get(at) == n
    until(look, f"{n} delivered in /metrics")


def publish(console, n):
    rows = [("order.placed", f"customer-{uuid.uuid4()}", "{}") for _ in range(n)]
    with console.db() as db:
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?)", rows)
        db.execute("COMMIT")


def families(text):
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))


def test_the_numbers_are_those_of_the_deliveries(console):
    console.up()
    publish(console, 40)
    delivered(console, 40)
    samples, text = read(console)
    here = {"source": "shop", "target": "events"}
    assert value(samples, "outbox_delivery_latency_seconds_count", **here) == 40
    assert value(samples, "outbox_delivery_latency_seconds_bucket", le="+Inf", **here) == 40
    assert value(samples, "outbox_attempts_total", **here) == 40
    assert value(samples, "outbox_batch_size_sum", **here) == 40
    assert value(samples, "outbox_batch_size_count", **here) == value(samples, "outbox_batches_total", **here)
    assert value(samples, "outbox_failed_total", **here) == 0
    assert value(samples, "outbox_breaker_state", **here) == 0
    assert value(samples, "outbox_source_up", source="shop") == 1
    assert value(samples, "outbox_delivered_total", source="bank", target="events") == 0
    assert value(samples, "outbox_target_info", transport="file", **here) == 1
    assert value(samples, "process_resident_memory_bytes") > 1e6
    # bounds ascend, buckets do not fall
    buckets = [(float(dict(labels)["le"]), number) for (name, labels), number in samples.items()
               if name == "outbox_publish_seconds_bucket" and dict(labels).items() >= here.items()]
    assert len(buckets) > 5 and buckets == sorted(buckets) and [b for _, b in buckets] == sorted(b for _, b in buckets)
    assert buckets[-1][0] == float("inf")
    assert "customer-" not in text and "order.placed" not in text, "a key or a type in a label"


def test_promtool_has_nothing_to_say(console):
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed: scripts/install-packages test")
    console.up()
    publish(console, 3)
    delivered(console, 3)
    _, text = read(console)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_page_names_what_is_there_and_nothing_else(console):
    console.up()
    publish(console, 3)
    delivered(console, 3)
    console.run("pause", "events", "--config", "outbox.yaml", "--source", "shop", "--reason", "to have a finding")
    until(lambda: any(name == "outbox_finding" for name, _ in read(console)[0]), "a finding")
    _, text = read(console)
    there = families(text)
    page = dict(re.findall(r"^\| `(outbox_\w+|process_\w+)` \| (\w+) \|", PAGE.read_text(), re.M))
    assert page == there
    for name, kind in there.items():
        assert re.search(rf"^# HELP {name} \S", text, re.M), name
        assert (kind == "counter") == name.endswith("_total"), name


def test_expressions_of_the_page_name_what_is_there(console):
    console.up()
    publish(console, 3)
    delivered(console, 3)
    samples, text = read(console)
    names = {name for name, _ in samples} | set(families(text))
    words = re.findall(r"\boutbox_\w+", PAGE.read_text().split("## What to watch")[1].split("## Names")[0])
    assert words and {w for w in words if w not in names} == set()


class OneAway(Console):
    def running(self):
        return True  # not every source ever does


def test_a_store_that_is_away_has_no_numbers(tmp_path):
    console = OneAway(tmp_path, sources=("shop", "bank"), targets=("events",))
    (tmp_path / "bank.db").rename(tmp_path / "gone.db")
    console.up()
    try:
        until(lambda: [1 for name, labels in read(console)[0] if name == "outbox_pending"], "the other one's numbers")
        samples, _ = read(console)
        assert value(samples, "outbox_source_up", source="bank") == 0
        assert value(samples, "outbox_source_running", source="bank") == 0
        assert value(samples, "outbox_source_up", source="shop") == 1
        assert not [1 for name, labels in samples if name == "outbox_pending" and ("source", "bank") in labels]
        assert [1 for name, labels in samples if name == "outbox_pending" and ("source", "shop") in labels]
    finally:
        console.down()


def test_failed_and_refused_are_counted(tmp_path):
    console = Console(tmp_path, targets=("events",))
    console.up()
    try:
        publish(console, 2)
        delivered(console, 2)
        # text that claims to be JSON and is not fails at once, and stops nobody
        console.insert(payload="{broken mark-1", key="mark-2", type="mark.3", headers='{"h": "mark-4"}', subject="mark-5")
        until(lambda: value(read(console)[0], "outbox_failed_total", source="shop", target="events") == 1, "a failure")
        until(lambda: value(read(console)[0], "outbox_failed", source="shop", target="events") == 1, "it to be seen in the store")
        samples, text = read(console)
        assert "mark" not in text  # nothing of a message
        assert value(samples, "outbox_delivered_total", source="shop", target="events") == 2
        assert value(samples, "outbox_delivery_latency_seconds_count", source="shop", target="events") == 2
    finally:
        console.down()


def test_metrics_want_a_token_unless_they_are_opened(tmp_path):
    console = Console(tmp_path)
    console.up()
    assert console.ask("GET", "/metrics", token=None).status == 401
    console.down()
    console.config.write_text(console.config.read_text().replace("admin:\n", "admin:\n  open_metrics: true\n"))
    console.up()
    try:
        assert console.ask("GET", "/metrics", token=None).status == 200
    finally:
        console.down()
