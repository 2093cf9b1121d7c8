# SPDX-License-Identifier: Apache-2.0
"""SNS against moto: topics with queues behind them, read by AWS' own client."""
import json
import os
import subprocess
import sys
import time
import urllib.request

import pytest
from conftest import message

import fetch
from ports import free_port

ACCOUNT = "123456789012"
RAW = {"RawMessageDelivery": "true"}


@pytest.fixture(scope="module")
def moto(tmp_path_factory):
    """Its port."""
    package = fetch.fetch("moto[server]==5.2.5", "moto")
    if not package:
        pytest.skip("moto could not be had with pip")
    port, log = free_port(), tmp_path_factory.mktemp("moto") / "log"
    command = [sys.executable, "-c", "import sys; from moto.server import main; main(sys.argv[1:])",
               "-H", "127.0.0.1", "-p", str(port)]
    with open(log, "wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env={
            **os.environ, "PYTHONPATH": str(package), "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}) as server:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/moto-api/", timeout=5).read()
                break
            except OSError:
                assert server.poll() is None, log.read_text()
                time.sleep(0.1)
        yield port
        server.kill()


@pytest.fixture(scope="module")
def topics(boto, moto):
    """topics(name) makes a topic and a queue behind it, and gives the queue's URL."""
    sns, sqs = boto.client("sns", moto), boto.client("sqs", moto)

    def make(name):
        fifo = {"FifoTopic": "true"} if name.endswith(".fifo") else {}
        topic = sns.create_topic(Name=name, Attributes=fifo)["TopicArn"]
        queue = sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if fifo else {})["QueueUrl"]
        sns.subscribe(TopicArn=topic, Protocol="sqs", Attributes=RAW,
                      Endpoint=f"arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
        return lambda: boto.read(sqs, queue)

    return make


def url(moto, name, options=""):
    return f"sns+http://127.0.0.1:{moto}/{ACCOUNT}/{name}?region=us-east-1{options}"


def test_structured(moto, topics, probe):
    read = topics("orders")
    sent = [message(f"m-{i}", key=f"größe {i}", headers="note=a <b> & \"c\" + d=") for i in range(25)]
    assert probe(url(moto, "orders")).publish(sent).verdicts == ["ACKED"] * 25
    arrived = read()
    events = {event["id"]: event for event in (json.loads(one["Body"]) for one in arrived)}
    assert sorted(events) == sorted(f"m-{i}" for i in range(25))
    assert events["m-7"]["partitionkey"] == "größe 7" and events["m-7"]["note"] == 'a <b> & "c" + d='
    assert arrived[0]["MessageAttributes"]["ce-type"]["StringValue"] == "order.placed"


def test_binary(moto, topics, probe):
    read = topics("binary")
    assert probe(url(moto, "binary"), 2).publish([message("m-1", headers="tenant=größe")]).verdicts == ["ACKED"]
    one, = read()
    assert one["Body"] == "x" * 20
    assert one["MessageAttributes"]["tenant"]["StringValue"] == "größe"
    assert one["MessageAttributes"]["ce-id"]["StringValue"] == "m-1"


def test_fifo(moto, topics, probe):
    read = topics("orders.fifo")
    p = probe(url(moto, "orders.fifo"))
    sent = [message(f"{key}-{i}", key=key) for i in range(5) for key in "ab"]
    assert p.publish(sent).verdicts == ["ACKED"] * 10
    arrived = read()
    for key in "ab":
        mine = [one for one in arrived if one["Attributes"]["MessageGroupId"] == key]
        assert [json.loads(one["Body"])["id"] for one in mine] == [f"{key}-{i}" for i in range(5)]
        assert [one["Attributes"]["MessageDeduplicationId"] for one in mine] == [f"{key}-{i}" for i in range(5)]


def test_a_topic_that_is_not_there(moto, probe):
    answer = probe(url(moto, "nobody")).publish([message("m-1")])
    assert answer.status == "auth" and answer.verdicts == ["UNSET"] and "create it" in answer.text, answer


def test_what_is_too_large_is_rejected(moto, topics, probe):
    read = topics("small")
    answer = probe(url(moto, "small")).publish([message("large", size=300000), message("m-1")])
    assert answer.verdicts == ["REJECTED", "ACKED"], answer
    assert [json.loads(one["Body"])["id"] for one in read()] == ["m-1"]


def test_doctor(boto, moto, topics, probe):
    boto.client("sns", moto).create_topic(Name="lonely")
    topics("heard.fifo")  # moto always says that nobody has subscribed: the peer plays somebody who has
    level, text = probe(url(moto, "lonely")).ask("check 5000").lines[0].split(" ", 1)
    assert level == "2" and "nobody has subscribed" in text and "standard topic" in text, text
    level, text = probe(url(moto, "heard.fifo")).ask("check 5000").lines[0].split(" ", 1)
    assert level == "2" and "FIFO" in text, text
    level, text = probe(url(moto, "nobody")).ask("check 5000").lines[0].split(" ", 1)
    assert level == "3" and "create it" in text, text
