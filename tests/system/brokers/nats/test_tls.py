# SPDX-License-Identifier: Apache-2.0
"""The certificate matrix: only the good one connects, and TLS is neither stripped nor taken on quietly."""
import socket
import ssl
import threading

import pytest

import natsd
import certificates  # natsd has its folder on the path


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return certificates.matrix(tmp_path_factory.mktemp("pki"))


def tls(pki, name, more=""):
    return f'tls {{ cert_file: "{pki}/{name}.pem", key_file: "{pki}/{name}.key" {more} }}'


MATRIX = [
    ("good", "localhost", "ok", ""),
    ("ip", "127.0.0.1", "ok", ""),
    ("good", "127.0.0.1", "auth", "IP address mismatch"),
    ("ip", "localhost", "auth", "ostname mismatch"),
    ("wrong", "localhost", "auth", "ostname mismatch"),
    ("expired", "localhost", "auth", "expired"),
    ("unknown", "localhost", "auth", "unable to get local issuer"),
    ("self", "localhost", "auth", "self"),
]


@pytest.mark.parametrize("certificate_name,host,status,words", MATRIX)
def test_only_good_certificates_connect(pki, servers, probe, certificate_name, host, status, words):
    server = servers(tls(pki, certificate_name))
    natsd_url = f"tls://{host}:{server.port}/S.{{type}}"
    out = probe(f"{natsd_url}?ca={pki}/ca.pem")
    assert out.startswith(f"connect {status} ") and words in out, out


def test_verify_no_is_the_only_way_around(pki, servers, probe):
    server = servers(tls(pki, "self"))
    assert probe(f"tls://localhost:{server.port}/x?verify=no").startswith("connect ok")
    # without ca= the system's authorities count
    assert probe(f"tls://localhost:{server.port}/x").startswith("connect auth")


def test_a_plain_server_is_refused_by_tls(servers, probe):
    server = servers()
    out = probe(f"tls://127.0.0.1:{server.port}/x")
    assert out.startswith("connect config") and "does not offer TLS" in out, out


def test_nats_does_not_switch_to_tls(pki, servers, probe):
    server = servers(tls(pki, "good"))
    # though the system would trust it
    out = probe(f"nats://localhost:{server.port}/x", SSL_CERT_FILE=f"{pki}/ca.pem")
    assert out.startswith("connect config") and "write tls://" in out, out


def test_client_certificates(pki, servers, probe):
    server = servers(tls(pki, "good", f', ca_file: "{pki}/ca.pem", verify: true'))
    url = f"tls://localhost:{server.port}/x?ca={pki}/ca.pem"
    assert not probe(url).startswith("connect ok")
    ours = f"{url}&cert={pki}/client.pem&key={pki}/client.key"
    assert probe(ours).startswith("connect ok")
    # whom we trust does not change who we are
    assert probe(f"{ours}&verify=no").startswith("connect ok")


def test_the_reason_is_the_servers(pki, probe):
    """It is not the certificate that nobody verifies which fails."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(pki / "self.pem", pki / "self.key")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(pki / "ca.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            client, _ = listener.accept()
            client.sendall(b'INFO {"tls_required":true,"headers":true,"max_payload":1048576}\r\n')
            with pytest.raises(ssl.SSLError):
                context.wrap_socket(client, server_side=True)

        threading.Thread(target=serve, daemon=True).start()
        out = probe(f"tls://127.0.0.1:{listener.getsockname()[1]}/x?verify=no")
    assert out.startswith("connect auth") and "handshake failure" in out and "self" not in out, out


def test_messages_go_through_tls(pki, servers, probe):
    server = servers(tls(pki, "good"))
    # the witness speaks plain text only: make the stream before, without TLS
    server.kill()
    server.configure("")
    server.start()
    natsd.Witness(server.port).create("S")
    server.kill()
    server.configure(tls(pki, "good"))
    server.start()
    out = probe(f"tls://localhost:{server.port}/S.{{type}}?ca={pki}/ca.pem&stream=S", 2000)
    assert "publish ok acked 2000 " in out, out
    server.kill()
    server.configure("")
    server.start()
    assert natsd.Witness(server.port).count("S") == 2000
