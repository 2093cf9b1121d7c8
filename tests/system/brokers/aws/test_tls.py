# SPDX-License-Identifier: Apache-2.0
"""The certificate matrix: only the good one connects, and TLS is neither stripped nor taken on quietly."""
import pytest
from conftest import message


def url(server, host, pki, rest=""):
    return f"sqs://{host}:{server.port}/1/orders?region=x&ca={pki}/ca.crt{rest}"


@pytest.mark.parametrize("which,host,status", [
    ("good", "localhost", "ok"), ("by_address", "127.0.0.1", "ok"), ("good", "127.0.0.1", "auth"),
    ("by_address", "localhost", "auth"), ("wrong_name", "localhost", "auth"), ("expired", "localhost", "auth"),
    ("unknown_ca", "localhost", "auth"), ("self_signed", "localhost", "auth"),
])
def test_only_good_certificates_connect(peer, probe, pki, which, host, status):
    server = peer(certificate=pki / f"{which}.pem")
    p = probe(url(server, host, pki), connected=False)
    answer = p.connect()
    assert answer.status == status, answer
    if status == "ok":
        assert p.publish([message(f"m-{i}", size=5000) for i in range(300)]).verdicts == ["ACKED"] * 300
    assert status == "ok" or not server.requests


def test_verify_no_is_the_only_way_around(peer, probe, pki):
    server = peer(certificate=pki / "self_signed.pem")
    assert probe(url(server, "localhost", pki, "&verify=no"), connected=False).connect().status == "ok"
    # without ca= the system's authorities count
    assert probe(f"sqs://localhost:{server.port}/1/orders?region=x", connected=False).connect().status == "auth"


def test_plain_and_tls_do_not_mix(peer, probe, pki):
    assert probe(url(peer(), "localhost", pki, "&verify=no"), connected=False).connect(3000).status != "ok"
    server = peer(certificate=pki / "good.pem")
    p = probe(server.url(), connected=False)
    if p.connect(3000).status == "ok":
        assert p.publish([message("m")], ms=3000).status != "ok"
    assert not server.requests
