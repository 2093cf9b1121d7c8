# SPDX-License-Identifier: Apache-2.0
"""servicebus://: names, tokens and what a message looks like, at a scripted peer: it is a stand-in, not Azure Service Bus."""
import base64
import hashlib
import hmac
import subprocess
import time
import urllib.parse

import pytest
from conftest import message

HOST = "shop.servicebus.windows.net"


@pytest.fixture(scope="module", autouse=True)
def say_it():
    print("\na scripted peer (Qpid Proton) stands in for Azure Service Bus: no such service is at hand")


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pki")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    folder / "key", "-out", folder / "cert", "-days", "2", "-subj", "/CN=ca", "-addext",
                    f"subjectAltName=DNS:{HOST}"], check=True, capture_output=True)
    (folder / "sas").write_text("c2VjcmV0+/key==\n", encoding="utf-8")
    (folder / "sas").chmod(0o600)
    return folder


def url(peer, pki, rest="orders", host="shop", **options):
    options = {"auth": "cbs", "connect": f"localhost:{peer.port}", "ca": pki / "cert", "password_file": pki / "sas", **options}
    return f"servicebus://relay@{host}/{rest}?" + "&".join(f"{name}={value}" for name, value in options.items())


@pytest.fixture
def azure(standin, pki):
    return standin(tls=(pki / "cert", pki / "key"))


def expected_token(resource, expiry):
    """Computed by another library, as the service's documentation says: the key is not decoded."""
    resource = urllib.parse.quote_plus(resource)
    signature = base64.b64encode(hmac.new(b"c2VjcmV0+/key==", f"{resource}\n{expiry}".encode(), hashlib.sha256).digest())
    return f"SharedAccessSignature sr={resource}&sig={urllib.parse.quote_plus(signature)}&se={expiry}&skn=relay"


def test_a_token_is_put_before_the_address_is_used(azure, pki, probe):
    assert probe(url(azure, pki)).publish([message("a")]).verdicts == ["ACKED"]
    [(properties, body)] = azure.tokens
    assert properties == {"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": f"sb://{HOST}/orders"}
    expiry = int(dict(part.split("=", 1) for part in body.split(" ", 1)[1].split("&"))["se"])
    assert 3500 < expiry - time.time() < 3700
    assert body == expected_token(f"sb://{HOST}/orders", expiry)
    assert azure.hostnames == [HOST]


def test_each_address_has_a_token(azure, pki, probe):
    p = probe(url(azure, pki, "{type|kebab}"))
    assert not azure.tokens
    messages = [message("a", "OrderPlaced"), message("b", "order.paid"), message("c", "OrderPlaced")]
    assert p.publish(messages).verdicts == ["ACKED"] * 3
    assert p.publish(messages).verdicts == ["ACKED"] * 3
    assert [p["name"].rsplit("/", 1)[1] for p, _ in azure.tokens] == ["order-placed", "order-paid"]


def test_a_token_is_renewed_before_it_ends(azure, pki, probe):
    p = probe(url(azure, pki, token_ttl=10))
    assert p.publish([message("a")]).verdicts == ["ACKED"]
    assert len(azure.tokens) == 1
    time.sleep(7.6)  # its last quarter
    assert p.publish([message("b")]).verdicts == ["ACKED"]
    assert len(azure.tokens) == 2 and len(azure.hostnames) == 1 and len(azure.attached) == 1
    assert azure.tokens[0][1] != azure.tokens[1][1]


@pytest.mark.parametrize("status,expected", [(401, "auth"), (404, "auth"), (500, "conn"), (-5, "auth")])
def test_a_token_that_is_refused(azure, pki, probe, status, expected):
    azure.token = lambda properties, body: status
    answer = probe(url(azure, pki), connected=False).connect()
    assert answer.status == expected and f"({status})" in answer.text and "c2Vj" not in answer.text, answer
    assert not azure.attached


def test_a_token_without_an_answer_costs_the_deadline(azure, pki, probe):
    azure.token = lambda properties, body: None
    answer = probe(url(azure, pki), connected=False).connect(1500)
    assert answer.status == "timedout", answer


def test_one_address_whose_token_is_refused_is_an_outage(azure, pki, probe):
    azure.token = lambda properties, body: 401 if properties["name"].endswith("/secret") else 202
    answer = probe(url(azure, pki, "{topic}")).publish(
        [message("a", topic="orders"), message("b", topic="secret"), message("c", topic="orders")])
    assert answer.status == "auth" and answer.verdicts[:2] == ["ACKED", "UNSET"] and "(401)" in answer.text, answer
    assert answer.verdicts[2] in ("ACKED", "UNSET"), answer  # it may have been under way


def test_the_name_is_verified_wherever_it_connects(azure, pki, probe):
    answer = probe(url(azure, pki, host="other"), connected=False).connect()
    assert answer.status == "auth" and "ostname mismatch" in answer.text, answer
    assert not azure.tokens


def test_long_ids_are_hashed(azure, pki, probe):
    exact, long = "i" * 128, "i" * 129
    p = probe(url(azure, pki, partition="key"))
    assert p.publish([message(exact, key="k" * 128, correlation="c" * 128),
                      message(long, key="k" * 129, correlation="c" * 129)]).verdicts == ["ACKED"] * 2
    first, second = [m for _, m in azure.messages]
    assert (first.id, first.group_id, first.correlation_id) == (exact, "k" * 128, "c" * 128)
    digest = lambda text: "sha256:" + hashlib.sha256(text.encode()).hexdigest()  # noqa: E731
    assert (second.id, second.group_id, second.correlation_id) == (digest(long), digest("k" * 129), digest("c" * 129))
    assert second.annotations["x-opt-partition-key"] == digest("k" * 129)
    assert second.properties["cloudEvents:id"] == long


def test_annotations(azure, pki, probe):
    p = probe(url(azure, pki, partition="key"))
    when = "x-opt-scheduled-enqueue-time=2026-11-18T09:00:00Z"
    answer = p.publish([message("a", key="k"), message("b", key="k", headers=f"X-Opt-Partition-Key=own;{when};other=1"),
                        message("c", headers="x-opt-scheduled-enqueue-time=soon"), message("d")])
    assert answer.verdicts == ["ACKED", "ACKED", "REJECTED", "ACKED"], answer
    assert "x-opt-scheduled-enqueue-time" in answer.items[2][2]
    a, b, d = [m for _, m in azure.messages]
    assert a.annotations == {"x-opt-partition-key": "k"} and not d.annotations
    assert b.annotations["x-opt-partition-key"] == "own" and "own" not in b.properties.values()
    assert b.annotations["x-opt-scheduled-enqueue-time"] == 1794992400000
    assert type(b.annotations["x-opt-scheduled-enqueue-time"]).__name__ == "timestamp"
    assert b.properties["other"] == "1"


def test_the_service_is_trusted_to_store(azure, pki, probe):
    assert probe(url(azure, pki)).ask("check 5000").lines == ["0 accepted when stored by the service"]
