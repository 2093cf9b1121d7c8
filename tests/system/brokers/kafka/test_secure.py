# SPDX-License-Identifier: Apache-2.0
"""Who may connect to whom: every kind of certificate, passwords right, wrong and revoked, access lists."""
import os
import time

import pytest

if not os.environ.get("KAFKA_SASL"):
    pytest.skip("no SASL and TLS listeners; set KAFKA_SECURE=1 for with-kafka", allow_module_level=True)

SASL, SASL_TLS = os.environ["KAFKA_SASL"], os.environ["KAFKA_SASL_TLS"]
CA = os.environ["KAFKA_FOLDER"] + "/tls/ca.crt"


def tls(name, host="localhost", options=""):
    return f"kafkas://{host}:{os.environ['KAFKA_TLS_' + name.upper()]}/secured?ca={CA}{options}"


@pytest.fixture(scope="module", autouse=True)
def topic(broker):
    return broker.topic("secured")


def deliver(transport):
    assert transport.connect().status == "ok"
    answer, items = transport.publish([(f"m-{time.monotonic_ns()}", "k", None, 10)])
    assert answer.status == "ok", answer
    assert {i.verdict for i in items.values()} == {"ACKED"}


def test_good_certificates_connect(probe):
    deliver(probe(tls("good")))
    deliver(probe(tls("by_address", host="127.0.0.1")))


@pytest.mark.parametrize("name,host", [("wrong_name", "localhost"), ("good", "127.0.0.1"), ("by_address", "localhost"),
                                       ("expired", "localhost"), ("self_signed", "localhost"),
                                       ("unknown_ca", "localhost")])
def test_bad_certificates_do_not(probe, name, host):
    answer = probe(tls(name, host)).connect()
    # librdkafka says "transport" where its first look at the handshake already finds the server's answer, else "ssl".
    assert answer.status in ("auth", "conn") and "certificate" in answer.message, answer
    # The certificate was the only reason.
    if host == "localhost":
        deliver(probe(tls(name, host, "&verify=no")))


def test_plaintext_server_on_a_tls_port(broker, probe):
    answer = probe(f"kafkas://localhost:{broker.port}/secured?ca={CA}").connect(5000)
    assert answer.status in ("auth", "conn", "timedout"), answer
    assert answer.message


def test_tls_server_on_a_plaintext_port(probe):
    answer = probe(f"kafka://localhost:{os.environ['KAFKA_TLS_GOOD']}/secured").connect(5000)
    assert answer.status in ("conn", "timedout"), answer


def test_no_trust_without_the_ca(probe):
    answer = probe(f"kafkas://localhost:{os.environ['KAFKA_TLS_GOOD']}/secured").connect()
    assert answer.status == "auth", answer


@pytest.mark.parametrize("mechanism", ["plain", "scram-sha-256", "scram-sha-512"])
def test_passwords(probe, mechanism):
    deliver(probe(f"kafka://relay:relay-secret@127.0.0.1:{SASL}/secured?sasl={mechanism}"))
    deliver(probe(f"kafkas://relay:relay-secret@localhost:{SASL_TLS}/secured?sasl={mechanism}&ca={CA}"))
    for user in ("relay:wrong-secret", "nobody:relay-secret"):
        answer = probe(f"kafka://{user}@127.0.0.1:{SASL}/secured?sasl={mechanism}").connect()
        assert answer.status == "auth", answer
        assert "secret" not in answer.message


def test_no_password_where_one_is_needed(probe):
    answer = probe(f"kafka://127.0.0.1:{SASL}/secured").connect(5000)
    assert answer.status in ("auth", "conn", "timedout"), answer


def test_access_list(broker, probe):
    """A topic that the user may not write to: its messages fail, the others do not."""
    broker.topic("open")
    broker.topic("closed")
    broker.admin("kafka.admin.AclCommand", "--bootstrap-server", "127.0.0.1:" + broker.port, "--add",
                 "--deny-principal", "User:relay", "--operation", "Write", "--topic", "closed")
    transport = probe(f"kafka://relay:relay-secret@127.0.0.1:{SASL}/{{topic}}")
    assert transport.connect().status == "ok"
    answer, items = transport.publish([(f"acl-{i}", f"k-{i}", "closed" if i % 2 else "open", 10) for i in range(20)])
    assert answer.status == "ok", answer
    for i in range(20):
        assert items[f"acl-{i}"].verdict == ("RETRY" if i % 2 else "ACKED"), items[f"acl-{i}"]
    assert items["acl-1"].native == "29"


def test_the_only_topic_is_forbidden(broker, probe):
    """Nobody's attempt: every message would fail. And nothing is lost when the right is given back."""
    broker.topic("only")
    acl = ("--deny-principal", "User:relay", "--operation", "Write", "--topic", "only")
    server = ("--bootstrap-server", "127.0.0.1:" + broker.port)
    transport = probe(f"kafka://relay:relay-secret@127.0.0.1:{SASL}/only")
    deliver(transport)
    broker.admin("kafka.admin.AclCommand", *server, "--add", "--allow-principal", "User:relay", "--operation", "Describe",
                 "--topic", "only")  # it may look, and not write
    broker.admin("kafka.admin.AclCommand", *server, "--add", *acl)
    for _ in range(2):
        answer, items = transport.publish([(f"only-{i}", f"k-{i}", None, 10) for i in range(5)])
        assert answer.status == "auth" and "topic only" in answer.message, answer
        assert {i.verdict for i in items.values()} <= {"UNSET", "UNKNOWN"}
        assert transport.connect().status == "ok"
    broker.admin("kafka.admin.AclCommand", *server, "--remove", "--force", "--topic", "only")
    deliver(transport)


def test_password_revoked_while_running(broker, probe):
    transport = probe(f"kafka://relay:relay-secret@127.0.0.1:{SASL}/secured?sasl=scram-sha-512")
    deliver(transport)
    broker.admin("kafka.admin.ConfigCommand", "--bootstrap-server", "127.0.0.1:" + broker.port, "--alter",
                 "--delete-config", "SCRAM-SHA-512", "--entity-type", "users", "--entity-name", "relay")
    end = time.monotonic() + 60
    while True:
        answer, items = transport.publish([(f"r-{time.monotonic_ns()}", "k", None, 10)])
        if answer.status != "ok":
            break
        assert time.monotonic() < end, "the broker went on taking messages"
        time.sleep(0.2)
    assert answer.status == "auth", answer
    assert {i.verdict for i in items.values()} <= {"UNSET", "UNKNOWN"}
    assert transport.connect().status == "auth"
