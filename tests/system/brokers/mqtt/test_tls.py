# SPDX-License-Identifier: Apache-2.0
"""The certificate matrix: only the good one connects, and TLS is neither stripped nor taken on quietly."""
import socket
import ssl
import threading

import pytest
import rig
import certificates  # rig has its folder on the path


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return certificates.matrix(tmp_path_factory.mktemp("pki"))


def tls(pki, name, more=""):
    return f"certfile {pki}/{name}.pem\nkeyfile {pki}/{name}.key\ntls_version tlsv1.2\n{more}"


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
def test_only_good_certificates_connect(pki, server, probe, certificate_name, host, status, words):
    broker = server(tls(pki, certificate_name))
    out = probe(f"mqtts://{host}:{broker.port}/x?ca={pki}/ca.pem")
    assert out.startswith(f"connect {status} ") and words in out, out


def test_verify_no_is_the_only_way_around(pki, server, probe):
    broker = server(tls(pki, "self"))
    assert probe(f"mqtts://localhost:{broker.port}/x?verify=no").startswith("connect ok")
    # without ca= the system's authorities count
    assert probe(f"mqtts://localhost:{broker.port}/x").startswith("connect auth")


def test_a_plain_broker_is_refused(server, probe):
    out = probe(f"mqtts://127.0.0.1:{server().port}/x", 1, 5)
    assert not out.startswith("connect ok"), out


def test_mqtt_does_not_switch_to_tls(pki, server, probe):
    out = probe(f"mqtt://localhost:{server(tls(pki, 'good')).port}/x", 1, 5)
    assert not out.startswith("connect ok"), out


def test_client_certificates(pki, server, probe):
    broker = server(tls(pki, "good", f"cafile {pki}/ca.pem\nrequire_certificate true"))
    url = f"mqtts://localhost:{broker.port}/x?ca={pki}/ca.pem"
    assert not probe(url).startswith("connect ok")
    ours = f"{url}&cert={pki}/client.pem&key={pki}/client.key"
    assert "publish ok acked 1 " in probe(ours)
    # whom we trust does not change who we are
    assert probe(f"{ours}&verify=no").startswith("connect ok")
    assert not probe(f"{url}&cert={pki}/unknown.pem&key={pki}/unknown.key").startswith("connect ok")
    out = probe(f"{url}&cert={pki}/client.pem&key={pki}/ca.key")
    assert out.startswith("connect config ") and "cannot use the certificate" in out, out


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_the_urls_name_is_asked_for(pki, probe, host):
    """SNI: a name, and nothing for an address. The stand-in says what it heard by the certificate that it shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki / "good.pem", pki / "good.key")
    heard = []
    context.sni_callback = lambda _socket, name, _context: heard.append(name)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            client, _ = listener.accept()
            context.wrap_socket(client, server_side=True).close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        out = probe(f"mqtts://{host}:{listener.getsockname()[1]}/x?verify=no")
        thread.join(rig.PATIENCE)
    assert out.startswith("connect conn"), out
    assert heard == [host if host == "localhost" else None]


def test_a_handshake_without_an_end(probe):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        out = probe(f"mqtts://127.0.0.1:{listener.getsockname()[1]}/x?verify=no", 1, 1)
    assert out.startswith("connect timedout"), out


def test_a_handshake_that_is_reset(probe):
    """The library takes a reset for "try again": the driver must not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            client, _ = listener.accept()
            client.recv(1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            client.close()

        threading.Thread(target=serve, daemon=True).start()
        out = probe(f"mqtts://127.0.0.1:{listener.getsockname()[1]}/x?verify=no", 1, 50)
    assert out.startswith("connect conn"), out


def test_messages_go_through_tls(pki, server, probe, witness):
    plain = rig.free_port()
    broker = server(tls(pki, "good", f"listener {plain} 127.0.0.1\nallow_anonymous true"))
    reader = witness(plain)
    url = f"mqtts://localhost:{broker.port}/{{type}}?ca={pki}/ca.pem"
    assert "publish ok acked 2000 " in probe(url, 2000, 10, 30)
    assert "publish ok acked 3 " in probe(f"{url}&qos=2", 3, 10, 30, "t", 500000)
    assert len(reader.read()) == 2003


def test_nothing_listens(probe):
    """The next address of the name, or the next host, is tried; with TLS, too."""
    out = probe(f"mqtts://localhost:{rig.free_port()}/x")
    assert out.startswith("connect conn") and "nothing listens there" in out, out
