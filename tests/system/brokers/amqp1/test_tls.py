# SPDX-License-Identifier: Apache-2.0
"""The certificate matrix on Artemis: only the good one connects, and TLS is neither stripped nor taken on quietly."""
import os

import pytest
from conftest import FOLDER, message

TLS = f"{FOLDER}/tls"


def url(which, host, rest="", login="relay:relay-secret@"):
    return f"amqp1s://{login}{host}:{os.environ['ARTEMIS_TLS_' + which.upper()]}/tls?ca={TLS}/ca.crt{rest}"


@pytest.mark.parametrize("which,host,status,words", [
    ("good", "localhost", "ok", ""),
    ("by_address", "127.0.0.1", "ok", ""),
    ("good", "127.0.0.1", "auth", "IP address mismatch"),
    ("by_address", "localhost", "auth", "ostname mismatch"),
    ("wrong_name", "localhost", "auth", "ostname mismatch"),
    ("expired", "localhost", "auth", "expired"),
    ("unknown_ca", "localhost", "auth", "certificate"),
    ("self_signed", "localhost", "auth", "self"),
])
def test_only_good_certificates_connect(broker, probe, which, host, status, words):
    p = probe(url(which, host), connected=False)
    answer = p.connect()
    assert answer.status == status and words in answer.text, answer
    if status == "ok":
        assert p.publish([message(f"m-{i}", size=5000) for i in range(300)]).verdicts == ["ACKED"] * 300


def test_verify_no_is_the_only_way_around(broker, probe):
    port = os.environ["ARTEMIS_TLS_SELF_SIGNED"]
    login = "relay:relay-secret@"
    assert probe(f"amqp1s://{login}localhost:{port}/tls?verify=no", connected=False).connect().status == "ok"
    # without ca= the system's authorities count
    assert probe(f"amqp1s://{login}localhost:{port}/tls", connected=False).connect().status == "auth"


def test_plain_and_tls_do_not_mix(broker, probe):
    answer = probe(f"amqp1s://relay:relay-secret@localhost:{broker.port}/tls?verify=no", connected=False).connect(3000)
    assert answer.status != "ok" and "TLS" in answer.text, answer
    port = os.environ["ARTEMIS_TLS_GOOD"]
    assert probe(f"amqp1://relay:relay-secret@localhost:{port}/tls", connected=False).connect(3000).status != "ok"


def test_a_certificate_is_a_login(broker, probe):
    ours = f"&cert={TLS}/good.crt&key={TLS}/good.key"
    p = probe(url("external", "localhost", ours, login=""), connected=False)
    assert p.connect().status == "ok"
    assert p.publish([message("by-certificate")]).verdicts == ["ACKED"]
    assert "by-certificate" in broker.ids("tls")
    # without one, or with a stranger's, there is no way in; nor by a password where the broker wants a certificate
    assert probe(url("external", "localhost"), connected=False).connect().status in ("auth", "conn")
    stranger = f"&cert={TLS}/unknown_ca.crt&key={TLS}/unknown_ca.key"
    assert probe(url("external", "localhost", stranger, login=""), connected=False).connect().status in ("auth", "conn")
    answer = probe(url("external", "localhost", ours), connected=False).connect()
    assert answer.status == "auth" and "does not offer" in answer.text, answer
