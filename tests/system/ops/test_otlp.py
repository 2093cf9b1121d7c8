# SPDX-License-Identifier: Apache-2.0
"""What a collector gets: metrics and one span per batch, linked to those who published; and what one that is away costs."""
import re

import pytest
from collector import Collector, judge
from console import Console, free_port
from shell import until

JUDGE, PARSE_METRICS, PARSE_TRACES = judge()
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "planted-otlp-secret"


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.close()


def run(folder, endpoint, more=""):
    return Console(folder, more=f"otlp:\n  endpoint: '{endpoint}'\n  interval: 1s\n"
                                f"  headers: 'authorization=Bearer%20{SECRET},x-org=7'\n{more}")


def stop(console):
    console.down()
    text = (console.folder / "relay.log").read_text()
    assert SECRET not in text
    return text


def spans(collector):
    found = []
    for _, _, body, _ in collector.got("/v1/traces"):
        if PARSE_TRACES:
            request = PARSE_TRACES(body)
        else:
            pytest.skip(JUDGE)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                found += scope.spans
    return found


def points(collector, name):
    """The points of a family in the last request, and the family."""
    requests = collector.got("/v1/metrics")
    if not requests:
        return None, []
    if not PARSE_METRICS:
        pytest.skip(JUDGE)
    request = PARSE_METRICS(requests[-1][2])
    for metric in request.resource_metrics[0].scope_metrics[0].metrics:
        if metric.name == name:
            return metric, getattr(metric, metric.WhichOneof("data")).data_points
    return None, []


def attribute(item, key):
    for a in item.attributes:
        if a.key == key:
            return getattr(a.value, a.value.WhichOneof("value"))
    return None


def test_a_span_for_each_batch_linked_to_its_publishers(tmp_path, collector):
    print(f"judged by: {JUDGE}")
    console = run(tmp_path, collector.url).up()
    console.insert(traceparent=PARENT, key="a")
    console.insert(key="b")
    until(lambda: sum(attribute(s, "outbox.delivered") for s in spans(collector)) >= 2, "the spans")
    assert "otlp" not in stop(console)
    found = spans(collector)
    assert sum(attribute(s, "outbox.delivered") for s in found) == 2
    links = [link for s in found for link in s.links]
    assert [(link.trace_id.hex(), link.span_id.hex(), link.flags) for link in links] == [
        ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 1)]
    for span in found:
        assert span.name == "send events" and span.kind == span.SPAN_KIND_CLIENT
        assert len(span.trace_id) == 16 and len(span.span_id) == 8 and any(span.trace_id)
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        assert attribute(span, "outbox.source") == "shop"
        assert attribute(span, "messaging.destination.name") == "events"
        assert span.status.code == span.status.STATUS_CODE_UNSET
    assert len({s.span_id for s in found}) == len(found)


def test_metrics_are_those_of_the_page(tmp_path, collector):
    print(f"judged by: {JUDGE}")
    console = run(tmp_path, collector.url).up()
    for i in range(5):
        console.insert(key=str(i))

    def delivered():
        _, values = points(collector, "outbox_delivered_total")
        return [p.as_int for p in values] == [5]
    until(delivered, "the count")
    text = console.ask("GET", "/metrics").body.decode()
    sent = PARSE_METRICS(collector.got("/v1/metrics")[-1][2]).resource_metrics[0]
    names = {m.name for m in sent.scope_metrics[0].metrics}
    assert names == set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert {a.key: a.value.string_value for a in sent.resource.attributes}["service.name"] == "outbox"
    metric, values = points(collector, "outbox_delivered_total")
    assert metric.sum.is_monotonic and metric.sum.aggregation_temporality == 2
    assert attribute(values[0], "source") == "shop" and values[0].start_time_unix_nano < values[0].time_unix_nano
    metric, values = points(collector, "outbox_delivery_latency_seconds")
    assert metric.unit == "s" and values[0].count == 5 and sum(values[0].bucket_counts) == 5
    assert len(values[0].bucket_counts) == len(values[0].explicit_bounds) + 1
    assert 0 < values[0].sum < 3600 and list(values[0].explicit_bounds) == sorted(values[0].explicit_bounds)
    headers = collector.got("/v1/metrics")[0][1]
    assert headers["authorization"] == f"Bearer {SECRET}" and headers["x-org"] == "7"
    assert headers["Content-Type"] == "application/json"
    stop(console)


def test_nobody_there_costs_one_line_and_no_delivery(tmp_path):
    console = run(tmp_path, f"http://127.0.0.1:{free_port()}").up()
    failures = re.compile(r"^outbox_otlp_failures_total (\d+)$", re.M)
    for i in range(50):
        console.insert(key=str(i))
    until(lambda: int(failures.search(console.ask("GET", "/metrics").body.decode())[1]) >= 3, "several tries")
    assert console.states() == {"delivered": 50}
    text = stop(console)
    assert len(re.findall(r"otlp\.(?:away|back) ", text)) == 1, text
    assert "otlp.endpoint: " in text and "delivery is not affected" in text


def test_one_that_hangs_holds_nobody_up(tmp_path, collector):
    collector.answers = [None] * 50
    console = run(tmp_path, collector.url).up()
    console.insert(key="a")
    until(lambda: collector.got("/v1/traces", None) or collector.got("/v1/metrics", None), "a request that hangs")
    for i in range(20):
        console.insert(key=str(i))
    until(lambda: console.states() == {"delivered": 21}, "all delivered")
    stop(console)  # and it ends


def test_spans_wait_for_a_collector_that_comes_back(tmp_path, collector):
    collector.answers = [503, 503]
    console = run(tmp_path, collector.url, more="  metrics: false\n").up()
    for i in range(3):
        console.insert(key=str(i))
    until(lambda: sum(attribute(s, "outbox.delivered") for s in spans(collector)) == 3, "the spans, later")
    assert len(collector.got("/v1/traces", 503)) == 2
    text = stop(console)
    assert "it answered 503" in text and "answers again after" in text
    assert "\x1b" not in text


def test_what_a_collector_refuses_is_dropped_and_counted(tmp_path, collector):
    collector.answers = [400]
    console = run(tmp_path, collector.url, more="  metrics: false\n").up()
    console.insert(key="a")
    until(lambda: collector.got("/v1/traces", 400), "the refusal")
    until(lambda: 'outbox_otlp_spans_total{result="dropped"} 1\n' in console.ask("GET", "/metrics").body.decode(),
          "the count")
    console.insert(key="b")
    until(lambda: sum(attribute(s, "outbox.delivered") for s in spans(collector)) == 1, "the next span")
    stop(console)


def test_what_is_left_is_sent_at_the_end(tmp_path, collector):
    console = run(tmp_path, collector.url, more="  metrics: false\n").up()
    console.insert(key="a")
    until(lambda: console.states() == {"delivered": 1}, "the delivery")
    stop(console)
    assert sum(attribute(s, "outbox.delivered") for s in spans(collector)) == 1


def test_too_many_spans_are_dropped_and_counted(tmp_path):
    """A batch a message, nobody takes the spans: 1,024 wait in the ring and at most 256 at the sender, whatever comes."""
    console = run(tmp_path, f"http://127.0.0.1:{free_port()}", more="  metrics: false\nrelay: { batch: 1 }\n").up()

    def publish(n):
        with console.db() as db:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO outbox_message (type, payload) VALUES ('a', '{}')", [()] * n)
            db.execute("COMMIT")

    def number(name):
        text = console.ask("GET", "/metrics").body.decode()
        return int(re.search(rf"^{re.escape(name)} (\d+)$", text, re.M)[1])

    delivered = 'outbox_delivered_total{source="shop",target="events"}'
    dropped = 'outbox_otlp_spans_total{result="dropped"}'
    publish(1500)
    until(lambda: number(delivered) == 1500, "1,500 batches")
    full = number("process_resident_memory_bytes")
    publish(1500)
    until(lambda: number(delivered) == 3000, "3,000 batches")
    batches = number('outbox_batches_total{source="shop",target="events"}')
    assert batches - 1024 - 256 <= number(dropped) <= batches - 1024
    assert number("process_resident_memory_bytes") - full < 4 << 20
    assert len(re.findall(r"otlp\.away ", stop(console))) == 1
