# SPDX-License-Identifier: Apache-2.0
"""The certificate matrix against a real nginx, and HTTP/2."""
import pytest

from servers import LOOPBACK, probe, verdicts

MATRIX = [
    ("good", "localhost", "ok", ""),
    ("ip", "127.0.0.1", "ok", ""),
    ("good", "127.0.0.1", "auth", "no alternative certificate subject name"),
    ("ip", "localhost", "auth", "no alternative certificate subject name"),
    ("wrong", "localhost", "auth", "no alternative certificate subject name"),
    ("expired", "localhost", "auth", "expired"),
    ("unknown", "localhost", "auth", "unable to get local issuer"),
    ("self", "localhost", "auth", "self"),
]


def tls(pki, name, more=""):
    return f"listen PORT ssl http2; ssl_certificate {pki}/{name}.pem; ssl_certificate_key {pki}/{name}.key;" \
           f"access_log PLACE/{name}.log proto; {more} location / {{ return 204; }}"


@pytest.fixture(scope="module")
def server(nginx, pki, tmp_path_factory):
    place = tmp_path_factory.mktemp("logs")
    names = sorted({row[0] for row in MATRIX})
    blocks = [tls(pki, name) for name in names]
    blocks.append(tls(pki, "good", f"ssl_client_certificate {pki}/ca.pem; ssl_verify_client on;"))
    blocks.append(tls(pki, "good").replace("ssl http2", "ssl"))
    blocks.append("listen PORT; location / { return 204; }")
    ports = nginx(*[block.replace("PLACE", str(place)) for block in blocks]).ports
    return dict(zip(names + ["mutual", "old", "plain"], ports)), place


@pytest.mark.parametrize("name,host,status,words", MATRIX)
def test_only_good_certificates_connect(server, pki, name, host, status, words):
    said = probe(f"https://{host}:{server[0][name]}/#{LOOPBACK}&ca={pki}/ca.pem")
    assert said["connect"] == status and words in said["error"], said
    assert status != "ok" or verdicts(said) == ["ACKED"]


def test_verify_no_is_the_only_way_around(server):
    url = f"https://localhost:{server[0]['self']}/#{LOOPBACK}"
    assert verdicts(probe(f"{url}&verify=no")) == ["ACKED"]
    # without ca the system's authorities count
    assert probe(url)["connect"] == "auth"
    said = probe(f"{url}&verify=no", PROBE_CHECK="1")
    assert said["level"] == 2 and "verify=no" in said["check"]


def test_an_own_ca_is_the_only_one(server, pki):
    """With ca, those of the system do not count: a folder of its own that has the right one is not looked at."""
    said = probe(f"https://localhost:{server[0]['good']}/#{LOOPBACK}&ca={pki}/stranger.pem",
                 SSL_CERT_FILE=f"{pki}/ca.pem", SSL_CERT_DIR=str(pki))
    assert said["connect"] == "auth", said


def test_a_plain_server_is_refused_by_tls(server, pki):
    said = probe(f"https://127.0.0.1:{server[0]['plain']}/#{LOOPBACK}&ca={pki}/ca.pem")
    assert said["connect"] == "conn", said


def test_http_does_not_switch_to_tls(server):
    said = probe(f"http://localhost:{server[0]['good']}/#{LOOPBACK}")
    assert "ACKED" not in verdicts(said), said


def test_client_certificates(server, pki):
    url = f"https://localhost:{server[0]['mutual']}/#{LOOPBACK}&ca={pki}/ca.pem"
    assert verdicts(probe(f"{url}&cert={pki}/client.pem&key={pki}/client.key")) == ["ACKED"]
    said = probe(url)
    assert verdicts(said) == ["REJECTED"] and said["items"][0]["native"] == 400, said
    said = probe(f"{url}&cert={pki}/client.pem&key={pki}/good.key")
    assert said["connect"] == "config", said


def requests(place, name):
    return [line.split() for line in (place / f"{name}.log").read_text().splitlines()]


def test_http2_is_spoken_where_it_is_offered(server, pki):
    ports, place = server
    before = len(requests(place, "good"))
    said = probe(f"https://localhost:{ports['good']}/#{LOOPBACK}&ca={pki}/ca.pem&in_flight=20", 200)
    assert verdicts(said) == ["ACKED"] * 200
    lines = requests(place, "good")[before:]
    assert {line[0] for line in lines} == {"HTTP/2.0"} and len(lines) == 200
    # streams of one connection
    assert len({line[2] for line in lines}) == 1
    before = len(lines) + before
    said = probe(f"https://localhost:{ports['old']}/#{LOOPBACK}&ca={pki}/ca.pem&in_flight=4", 200)
    assert verdicts(said) == ["ACKED"] * 200
    lines = requests(place, "good")[before:]
    assert {line[0] for line in lines} == {"HTTP/1.1"} and 1 <= len({line[2] for line in lines}) <= 4
