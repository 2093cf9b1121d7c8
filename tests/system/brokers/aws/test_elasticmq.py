# SPDX-License-Identifier: Apache-2.0
"""SQS against ElasticMQ, read by AWS' own client."""
import json
import os
import signal
import subprocess

import pytest
from conftest import PORT, message

FOLDER = os.environ.get("ELASTICMQ_FOLDER")


@pytest.fixture(scope="module")
def sqs(boto):
    if not PORT:
        pytest.skip("run it by tests/support/with-elasticmq")
    return boto.client("sqs", PORT)


def url(queue, options=""):
    return f"sqs+http://127.0.0.1:{PORT}/000000000000/{queue}?region=elasticmq{options}"


def read(boto, sqs, queue):
    return boto.read(sqs, f"http://127.0.0.1:{PORT}/000000000000/{queue}")


def attributes(one):
    return {name: value["StringValue"] for name, value in one["MessageAttributes"].items()}


def test_structured(boto, sqs, probe):
    assert probe(url("q1")).publish([message("m-ä", key="größe", headers="note=a <b> & \"c\"")]).verdicts == ["ACKED"]
    one, = read(boto, sqs, "q1")
    event = json.loads(one["Body"])
    assert (event["id"], event["partitionkey"], event["data"]) == ("m-ä", "größe", "x" * 20)
    assert event["note"] == "a <b> & \"c\""
    assert attributes(one) == {"content-type": "application/cloudevents+json", "ce-type": "order.placed"}


def test_binary_and_native(boto, sqs, probe):
    assert probe(url("q2"), 2).publish([message("m-1", headers="tenant=größe")]).verdicts == ["ACKED"]
    assert probe(url("q2"), 3).publish([message("m-2")]).verdicts == ["ACKED"]
    first, second = read(boto, sqs, "q2")
    assert first["Body"] == second["Body"] == "x" * 20
    assert attributes(first)["tenant"] == "größe" and attributes(first)["ce-id"] == "m-1"
    assert attributes(first)["content-type"] == attributes(second)["content-type"] == "text/plain"
    assert attributes(second)["outbox-id"] == "m-2"


def test_fifo_has_groups_order_and_no_repeats(boto, sqs, probe):
    p = probe(url("f90.fifo"))
    sent = [message(f"{key}-{i}", key=key) for i in range(20) for key in ("a", "b", "größe")]
    assert p.publish(sent).verdicts == ["ACKED"] * 60
    assert p.publish(sent[:5]).verdicts == ["ACKED"] * 5
    arrived = read(boto, sqs, "f90.fifo")
    assert len(arrived) == 60
    for key, group in (("a", "a"), ("b", "b"), ("größe", None)):
        mine = [one for one in arrived if json.loads(one["Body"])["partitionkey"] == key]
        assert [json.loads(one["Body"])["id"] for one in mine] == [f"{key}-{i}" for i in range(20)]
        groups = {one["Attributes"]["MessageGroupId"] for one in mine}
        assert len(groups) == 1 and (groups == {group} if group else groups.pop().startswith("sha256:"))


def test_a_queue_that_is_not_there(sqs, probe):
    answer = probe(url("nobody")).publish([message("m-1"), message("m-2")])
    assert answer.status == "auth" and answer.verdicts == ["UNSET"] * 2 and "create it" in answer.text, answer


@pytest.mark.parametrize("queue,words", [("q3", ["standard queue", "no dead-letter queue", "not AWS itself"]),
                                         ("f91.fifo", ["FIFO", "no dead-letter queue"])])
def test_doctor(sqs, probe, queue, words):
    level, text = probe(url(queue)).ask("check 5000").lines[0].split(" ", 1)
    assert level == ("2" if queue == "q3" else "1") and all(word in text for word in words), text


def test_doctor_misses_the_queue(sqs, probe):
    level, text = probe(url("nobody")).ask("check 5000").lines[0].split(" ", 1)
    assert level == "3" and "create it" in text, text


def test_a_killed_server_is_an_outage(sqs, probe):
    p = probe(url("q4"))
    assert p.publish([message("before")]).verdicts == ["ACKED"]
    with open(f"{FOLDER}/pid", encoding="utf-8") as pid:
        os.kill(int(pid.read()), signal.SIGKILL)
    answer = p.publish([message("during")])
    assert answer.status == "conn" and answer.verdicts in (["UNSET"], ["UNKNOWN"]), answer
    p.ask("disconnect")
    assert p.connect(2000).status == "conn"
    subprocess.run([f"{FOLDER}/start"], check=True, timeout=120)
    assert p.connect().status == "ok"
    assert p.publish([message("after")]).verdicts == ["ACKED"]
