# SPDX-License-Identifier: Apache-2.0
"""SQS and SNS played by a stand-in: every row of the page's table, both for a request and for one message of it."""
import json
import time

import pytest
from conftest import KEYS, message, page_codes
from peer import closed_port, refused, stored

BOTH = pytest.mark.parametrize("service", ["sqs", "sns"])
STATUS = {"EAUTH": "auth", "EFULL": "full", "ECONN": "conn", "-": "ok"}


def example(code):
    """A code that fits the row, and the status of its answer."""
    if code.startswith("http "):
        return "", int(code[5:].replace("3*", "302").replace("4*", "418"))
    return {"*": ("NobodyKnowsThis", 500)}.get(code, (code.replace("*", "SomethingException"), 400))


@BOTH
def test_every_row_as_the_answer_to_one_message(peer, probe, service):
    said = []
    server = peer(lambda request: refused(request, *said))
    p = probe(server.url(service))
    for code, verdict, target, remedy in page_codes():
        said[:] = example(code)
        answer = p.publish([message("m-1")])
        # what is the service's fault may have been stored
        expected = "UNKNOWN" if verdict == "RETRY" and target == "ECONN" else {"-": "UNSET"}.get(verdict, verdict)
        assert answer.verdicts == [expected] and answer.status == STATUS[target], (code, answer)
        if target == "EAUTH":
            assert remedy in answer.text, (code, answer)
        p.ask("disconnect")
        assert p.connect().status == "ok"


@BOTH
def test_every_row_as_the_answer_to_several(peer, probe, service):
    said = []
    p = probe(peer(lambda request: refused(request, *said)).url(service))
    for code, verdict, target, _ in page_codes():
        said[:] = example(code)
        answer = p.publish([message(f"m-{i}") for i in range(3)])
        expected = "UNSET" if verdict == "-" else "UNKNOWN"
        assert answer.verdicts == [expected] * 3 and answer.status == STATUS[target], (code, answer)
        p.ask("disconnect")
        assert p.connect().status == "ok"


@BOTH
def test_every_row_as_the_verdict_of_one_of_three(peer, probe, service):
    said = []
    p = probe(peer(lambda request: stored(request, {1: tuple(said)})).url(service))
    for code, verdict, target, _ in page_codes():
        if code.startswith("http ") and code != "http 4*":
            continue  # of a whole answer alone
        said[:] = ["NobodyKnowsThis" if code == "http 4*" else example(code)[0], code == "http 4*"]
        answer = p.publish([message(f"m-{i}") for i in range(3)])
        assert answer.verdicts == ["ACKED", {"-": "UNSET"}.get(verdict, verdict), "ACKED"], (code, answer)
        # it is about the target only if it says nothing of the message
        assert answer.status == (STATUS[target] if verdict == "-" else "ok"), (code, answer)
        if verdict != "-":
            assert '<so> & "so"' in answer.items[1][2]


@BOTH
@pytest.mark.parametrize("count", [1, 3])
def test_all_failed_by_the_service_is_an_outage(peer, probe, service, count):
    """Each named as failed, nothing stored: nobody is charged for that."""
    server = peer(lambda request: stored(request, {n: ("InternalError", False) for n in range(count)}))
    answer = probe(server.url(service)).publish([message(f"m-{i}") for i in range(count)])
    assert answer.status == "conn" and answer.verdicts == ["UNKNOWN"] * count, answer
    assert "InternalError" in answer.text and "InternalError" in answer.items[0][2]


@BOTH
@pytest.mark.parametrize("head", [0, 200, 280, 299, 340])
def test_no_half_of_a_secret_is_shown(peer, probe, service, head):
    """AWS answers a wrong signature with what it has signed itself, the session's token included."""
    said = "a" * head + "IQoJ" * 90 + " and more"
    text = (json.dumps({"__type": "InvalidParameterValue", "message": said}) if service == "sqs" else
            f"<ErrorResponse><Error><Code>InvalidParameter</Code><Message>{said}</Message></Error></ErrorResponse>")
    p = probe(peer(lambda _: (400, text)).url(service), env={**KEYS, "AWS_SESSION_TOKEN": "IQoJ" * 90})
    answer = p.publish([message("m-1")])
    assert answer.verdicts == ["REJECTED"] and "IQoJ" not in answer.items[0][2], answer
    assert "IQoJ" not in p.ask("check 5000").lines[0]


@BOTH
def test_a_key_stops_at_what_fails(peer, probe, service):
    server = peer(lambda request: stored(request, {n: ("InternalError", False) for n, ident in enumerate(request.ids())
                                                   if ident == "a-1"}))
    p = probe(server.url(service, "1/orders.fifo"))
    answer = p.publish([message(f"{key}-{i}", key=key) for i in range(4) for key in "ab"])
    assert answer.status == "ok"
    assert answer.verdicts == ["ACKED", "ACKED", "RETRY", "ACKED", "UNSET", "ACKED", "UNSET", "ACKED"]
    sent = [ident for request in server.requests for ident in request.ids()]
    assert [ident for ident in sent if ident[0] == "a"] == ["a-0", "a-1"]
    assert [ident for ident in sent if ident[0] == "b"] == ["b-0", "b-1", "b-2", "b-3"]
    # never two of a key in one request
    for request in server.requests:
        keys = [ident[0] for ident in request.ids()]
        assert len(keys) == len(set(keys))


@BOTH
def test_what_is_rejected_does_not_stop_its_key(peer, probe, service):
    server = peer(lambda request: stored(request, {0: ("InvalidMessageContents", True)}
                                         if request.ids()[0] == "a-0" else {}))
    answer = probe(server.url(service)).publish([message(f"a-{i}", key="a") for i in range(2)])
    assert answer.verdicts == ["REJECTED", "ACKED"] and answer.status == "ok"


@BOTH
def test_a_request_has_ten_messages_and_256_kib(peer, probe, service):
    server = peer()
    p = probe(server.url(service))
    answer = p.publish([message(f"m-{i}", size=30000) for i in range(25)] + [message("large", size=900000)])
    assert answer.verdicts == ["ACKED"] * 26
    assert sorted(ident for request in server.requests for ident in request.ids()) == \
        sorted([f"m-{i}" for i in range(25)] + ["large"])
    for request in server.requests:
        assert len(request.entries()) <= 8 and (request.ids() == ["large"] or len(request.body) < 300000)
    server.requests.clear()
    assert p.publish([message(f"s-{i}") for i in range(25)]).verdicts == ["ACKED"] * 25
    assert sorted(len(request.entries()) for request in server.requests) == [5, 10, 10]


@BOTH
def test_groups_and_ids_of_fifo(peer, probe, service):
    server = peer()
    p = probe(server.url(service, "1/orders.fifo"))
    long, strange = "k" * 129, "größe 1"
    assert p.publish([message("m-1", key="42"), message("m-2", key=long), message("m-3", key=strange), message("m-4"),
                      message("i" * 200)]).verdicts == ["ACKED"] * 5
    entries = [entry for request in server.requests for entry in request.entries()]
    groups = [entry["MessageGroupId"] for entry in entries]
    ids = [entry["MessageDeduplicationId"] for entry in entries]
    assert groups[0] == "42" and groups[3] == "m-4" and ids[:4] == ["m-1", "m-2", "m-3", "m-4"]
    for text in (groups[1], groups[2], ids[4]):
        assert text.startswith("sha256:") and len(text) == 71
    assert len(set(groups)) == 5
    server.requests.clear()
    assert probe(server.url(service)).publish([message("m-1", key="42")]).verdicts == ["ACKED"]
    assert not {"MessageGroupId", "MessageDeduplicationId"} & set(server.requests[-1].entries()[0])


@BOTH
def test_binary_where_it_fits(peer, probe, service):
    server = peer()
    p = probe(server.url(service), envelope=2)
    answer = p.publish([message("fits", headers="tenant=acme"),
                        message("ten", headers=";".join(f"h{i}=x" for i in range(10))),
                        message("empty", headers="tenant="), message("name", headers="aws.x=1"),
                        message("dots", headers="a..b=1"), message("control", headers="a=\x01"), message("none", size=0)])
    assert answer.verdicts == ["ACKED"] + ["REJECTED"] * 6, answer
    for item, words in zip(answer.items[1:], ["attributes", "empty", "name", "name", "U+0001", "empty"]):
        assert words in item[2], item
    assert server.requests[0].entries()[0]["MessageBody"] == "x" * 20


@BOTH
def test_a_message_that_the_answer_does_not_name_is_unknown(peer, probe, service):
    p = probe(peer(lambda request: stored(request, leave_out=[1])).url(service))
    answer = p.publish([message(f"m-{i}") for i in range(3)])
    assert answer.verdicts == ["ACKED", "UNKNOWN", "ACKED"] and answer.status == "ok"


@BOTH
@pytest.mark.parametrize("text", ["", "{}", "[]", "<html>", "{\"Successful\":", "<PublishBatchResult>", "\xff" * 70000,
                                  "{\"Successful\":[" + "{}," * 10**6, "<PublishBatchResult><Successful>" + "<member>" * 10**5],
                         ids=lambda text: text[:12].encode().hex() or "nothing")
def test_an_answer_of_somebody_else_is_an_outage(peer, probe, service, text):
    p = probe(peer(lambda _: (200, text)).url(service))
    answer = p.publish([message("m-1")])
    assert answer.verdicts == ["UNKNOWN"] and answer.status == "conn"


@BOTH
def test_half_an_answer_is_none(peer, probe, service):
    p = probe(peer(lambda request: (*stored(request), 10)).url(service))
    answer = p.publish([message("m-1")])
    assert answer.verdicts == ["UNKNOWN"] and answer.status == "conn"


@BOTH
def test_no_answer_is_unknown_after_its_time(peer, probe, service):
    p = probe(peer(lambda _: None).url(service, options="&timeout=300ms"))
    answer = p.publish([message("m-1")])
    assert answer.verdicts == ["UNKNOWN"] and answer.status == "timedout", answer


def test_elements_and_strings_of_strange_ids_are_left_out(peer, probe):
    strange = {"Successful": [{"Id": "10"}, {"Id": "a"}, {"Id": ""}, {}, {"Id": 0}], "Failed": 5}
    answer = probe(peer(lambda _: (200, json.dumps(strange))).url()).publish([message("m-1")])
    assert answer.verdicts == ["UNKNOWN"], answer


@BOTH
def test_signatures_hold(peer, probe, service):
    server = peer()
    for env in (KEYS, {**KEYS, "AWS_SESSION_TOKEN": "tok/en+=="}):
        assert probe(server.url(service), env=env).publish(
            [message("m-ä", key="größe", headers="note=a & b=c")]).verdicts == ["ACKED"]
        assert server.requests[-1].signature_holds(KEYS["AWS_SECRET_ACCESS_KEY"])
        assert not server.requests[-1].signature_holds("another")
        assert server.requests[-1].headers.get("x-amz-security-token") == env.get("AWS_SESSION_TOKEN")
    assert f"/eu-west-1/{service}/" in server.requests[-1].headers["authorization"]


def test_a_server_that_is_away_is_an_outage(probe, boto):
    p = probe(f"sqs+http://127.0.0.1:{closed_port()}/1/orders?region=x", connected=False)
    assert p.connect(2000).status == "conn"


@BOTH
def test_what_cannot_be_begun_in_time_is_not_sent(peer, probe, service):
    def slow(request):
        time.sleep(0.4)
        return stored(request)
    server = peer(slow)
    p = probe(server.url(service, options="&batch=1&in_flight=1"))
    answer = p.publish([message(f"m-{i}") for i in range(20)], ms=1500)
    assert answer.status == "ok" and answer.verdicts[0] == "ACKED" and answer.verdicts[-1] == "UNSET", answer
    assert len(server.requests) == len([v for v in answer.verdicts if v != "UNSET"])


def attributes(request, values):
    if request.sns:
        entries = "".join(f"<entry><key>{name}</key><value>{value}</value></entry>" for name, value in values.items())
        return 200, f"<R><GetTopicAttributesResult><Attributes>{entries}</Attributes></GetTopicAttributesResult></R>"
    assert request.headers["x-amz-target"] == "AmazonSQS.GetQueueAttributes"
    return 200, json.dumps({"Attributes": values})


@pytest.mark.parametrize("service,place,values,level,words,others", [
    ("sqs", "1/orders.fifo", {"RedrivePolicy": "{}", "SqsManagedSseEnabled": "true", "MaximumMessageSize": "1048576"}, "1",
     ["FIFO", "1048576"], ["encrypted", "dead-letter", "batch=1"]),
    ("sqs", "1/orders", {"KmsMasterKeyId": "alias/x", "MaximumMessageSize": "1024"}, "2",
     ["no order", "no dead-letter", "batch=1"], ["encrypted"]),
    ("sns", "1/orders.fifo", {"SubscriptionsConfirmed": "2", "KmsMasterKeyId": "alias/x"}, "1", ["FIFO"], ["nobody", "encrypted"]),
    ("sns", "1/orders", {"SubscriptionsConfirmed": "0"}, "2", ["no order", "nobody has subscribed", "not encrypted"], []),
])
def test_doctor(peer, probe, service, place, values, level, words, others):
    p = probe(peer(lambda request: attributes(request, values)).url(service, place))
    said, text = p.ask("check 5000").lines[0].split(" ", 1)
    assert said == level, text
    assert all(word in text for word in words) and not any(word in text for word in others), text


@BOTH
@pytest.mark.parametrize("code,level,words", [("AccessDenied", "1", "cannot be seen"), ("ExpiredToken", "3", "newer"),
                                              ("InternalError", "3", "InternalError")])
def test_doctor_that_may_not_ask(peer, probe, service, code, level, words):
    p = probe(peer(lambda request: refused(request, code)).url(service, "1/orders.fifo"))
    said, text = p.ask("check 5000").lines[0].split(" ", 1)
    assert said == level and words in text, text
