# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with one message, one topic, or the broker's process; through the transport itself."""
import glob
import os
import signal
import time


def url(broker, path):
    return f"kafka://127.0.0.1:{broker.port}/{path}"


def batch(prefix, count, keys=5, topic=None, size=100):
    return [(f"{prefix}-{i}", f"key-{i % keys}", topic, size) for i in range(count)]


def stop(pid):
    """On a busy machine a thread may go on for a moment after the signal, and answer."""
    os.kill(pid, signal.SIGSTOP)

    def running():
        for path in glob.glob(f"/proc/{pid}/task/*/stat"):
            with open(path, encoding="utf-8") as stat:
                if stat.read().rpartition(")")[2].split()[0] != "T":
                    return True
        return False
    deadline = time.monotonic() + 60
    while running():
        assert time.monotonic() < deadline, "the broker does not stop"
        time.sleep(.01)


def test_headers_and_keys_arrive(broker, probe):
    topic = broker.topic("plain", partitions=4)
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    messages = batch("a", 200, keys=20) + [(f"none-{i}", None, None, 5) for i in range(50)]
    answer, items = transport.publish(messages)
    assert answer.status == "ok" and {i.verdict for i in items.values()} == {"ACKED"}
    records = {r.id: r for r in broker.read(topic)}
    assert set(records) == set(items)
    for ident, key, _, size in messages:
        record = records[ident]
        assert record.key == key and record.value == b"x" * size
        assert record.headers["ce_specversion"] == "1.0" and record.headers["ce_type"] == "order.placed"
        assert record.headers["ce_source"] == "/probe" and record.headers["content-type"] == "text/plain"
    # A key has one partition, and its messages lie there in order.
    for key in {m[1] for m in messages if m[1]}:
        mine = sorted((r for r in records.values() if r.key == key), key=lambda r: r.offset)
        assert len({r.partition for r in mine}) == 1
        assert [r.id for r in mine] == [m[0] for m in messages if m[1] == key]


def test_keys_go_where_java_sends_them(broker, probe):
    """murmur2, as in Java: the partitions that Java's client gives to these keys of eight."""
    topic = broker.topic("java", partitions=8)
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    keys = ["21", "foobar", "a-little-bit-long-string", "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"]
    # org.apache.kafka.common.utils.UtilsTest.testMurmur2
    hashes = [-973932308, -790332482, -985981536, -58897971]
    transport.publish([(f"j-{i}", key, None, 1) for i, key in enumerate(keys)])
    partitions = {r.key: r.partition for r in broker.read(topic)}
    assert partitions == {key: (h & 0x7FFFFFFF) % 8 for key, h in zip(keys, hashes)}


def test_missing_topic_among_good_ones(broker, probe):
    broker.topic("shop.orders")
    transport = probe(url(broker, "shop.{topic}"))
    assert transport.connect().status == "ok"
    messages = [(f"m-{i}", f"k-{i}", "missing" if i % 7 == 0 else "orders", 10) for i in range(100)]
    answer, items = transport.publish(messages)
    assert answer.status == "ok"
    for i in range(100):
        assert items[f"m-{i}"].verdict == ("RETRY" if i % 7 == 0 else "ACKED")
    assert items["m-0"].native == "3" and "shop.missing" in items["m-0"].reason
    assert {r.id for r in broker.read("shop.orders")} == {f"m-{i}" for i in range(100) if i % 7}
    # Made meanwhile, it is found; nothing made it by accident before.
    broker.topic("shop.missing")
    _, items = transport.publish([("m-0", "k-0", "missing", 10)])
    assert items["m-0"].verdict == "ACKED"
    # Names that no topic can have, and a message without one.
    _, items = transport.publish([("bad", "k", "a/b", 1), ("none", "k", None, 1), ("good", "k", "orders", 1)])
    assert [items[i].verdict for i in ("bad", "none", "good")] == ["REJECTED", "REJECTED", "ACKED"]


def test_missing_topic_alone_is_an_outage(broker, probe):
    transport = probe(url(broker, "nowhere"))
    answer = transport.connect()
    assert answer.status == "config" and "nowhere" in answer.message and "create it" in answer.message


def test_topic_deleted_while_running(broker, probe):
    topic = broker.topic("deleted")
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    assert transport.publish([("a", "k", None, 1)])[0].status == "ok"
    broker.drop(topic)
    _, items = transport.publish([("b", "k", None, 1), ("c", "k", None, 1)])
    assert all(i.verdict != "ACKED" for i in items.values())


def test_too_large_among_small_ones(broker, probe):
    """The broker refuses message sets: only the guilty one may pay, and order stays."""
    topic = broker.topic("small", max_message_bytes=20000)
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    messages = batch("s", 300, keys=3)
    messages[150] = ("huge", "key-0", None, 100000)
    answer, items = transport.publish(messages)
    assert answer.status == "ok"
    assert items["huge"].verdict == "REJECTED" and items["huge"].native == "10"
    assert all(i.verdict == "ACKED" for i in items.values() if i.id != "huge")
    assert [r.id for r in broker.read(topic)] == [m[0] for m in messages if m[0] != "huge"]


def test_keyless_message_on_a_compacted_topic(broker, probe):
    topic = broker.topic("compacted", cleanup_policy="compact")
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    answer, items = transport.publish([("a", "k", None, 1), ("b", None, None, 1), ("c", "k", None, 1)])
    assert answer.status == "ok"
    assert [items[i].verdict for i in "abc"] == ["ACKED", "REJECTED", "ACKED"]


def test_stopped_broker(broker, probe):
    """SIGSTOP: the deadline holds, nothing is ACKED, and afterwards everything arrives."""
    topic = broker.topic("stopped")
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    assert transport.publish(batch("before", 50))[0].status == "ok"
    stop(broker.pid())
    try:
        answer, items = transport.publish(batch("during", 50), ms=1500)
        assert answer.status == "timedout"
        assert {i.verdict for i in items.values()} == {"UNKNOWN"}
        assert transport.connect(1500).status == "timedout"
    finally:
        os.kill(broker.pid(), signal.SIGCONT)
    assert transport.connect().status == "ok"
    answer, items = transport.publish(batch("during", 50))
    assert answer.status == "ok"
    assert {f"during-{i}" for i in range(50)} <= {r.id for r in broker.read(topic)}


def test_check_says_what_an_acknowledgement_means(broker, probe):
    topic = broker.topic("checked")
    transport = probe(url(broker, topic))
    assert transport.connect().status == "ok"
    (line,) = transport.say("check").lines
    assert line.startswith("2 ") and "one replica of topic checked" in line
    template = probe(url(broker, "{topic}"))
    assert template.connect().status == "ok"
    (line,) = template.say("check").lines
    assert line.startswith("2 ") and "new topics" in line
