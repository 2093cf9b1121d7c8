# SPDX-License-Identifier: Apache-2.0
"""Our signatures, verified by the official library of Standard Webhooks (v1) and by another implementation of Ed25519."""
import base64
import hashlib
import hmac
import subprocess
import sys

import pytest

from servers import LOOPBACK, probe, verdicts
from fetch import fetch
from recorder import Recorder

OLD, NEW = (f"whsec_{base64.b64encode(bytes([n]) * 32).decode()}" for n in (1, 2))
SEED = bytes(range(32))


@pytest.fixture(scope="module")
def library():
    folder = fetch("standardwebhooks==1.0.0", "standardwebhooks")
    if not folder:
        pytest.skip("the package standardwebhooks cannot be had")
    sys.path.insert(0, str(folder))
    from standardwebhooks.webhooks import Webhook, WebhookVerificationError  # pylint: disable=import-outside-toplevel
    return Webhook, WebhookVerificationError


def send(tmp_path, keys, options="", **how):
    (tmp_path / "keys").write_text("\n".join(keys) + "\n")
    (tmp_path / "keys").chmod(0o600)
    with Recorder() as receiver:
        said = probe(f"http://127.0.0.1:{receiver.port}/#{LOOPBACK}&secret_file={tmp_path}/keys{options}", **how)
    assert set(verdicts(said)) == {"ACKED"}, said
    return receiver.requests


def headers_of(request):
    return {name.lower(): value for name, value in request.headers.items()}


def test_the_official_library_verifies(library, tmp_path):
    webhook, wrong = library
    (request,) = send(tmp_path, [NEW])
    assert webhook(NEW).verify(request.body, headers_of(request))["id"] == "m-0"
    assert request.headers["webhook-id"] == "m-0"
    with pytest.raises(wrong):
        webhook(OLD).verify(request.body, headers_of(request))
    with pytest.raises(wrong):
        webhook(NEW).verify(request.body.replace(b"m-0", b"m-1"), headers_of(request))
    with pytest.raises(wrong):
        webhook(NEW).verify(request.body, {**headers_of(request), "webhook-id": "m-1"})


def test_rotation_signs_with_both(library, tmp_path):
    webhook, _ = library
    (request,) = send(tmp_path, [NEW, OLD, f"whsk_{base64.b64encode(SEED).decode()}"])
    signatures = request.headers["webhook-signature"].split()
    assert [s.split(",")[0] for s in signatures] == ["v1", "v1", "v1a"]
    for key in (OLD, NEW):
        webhook(key).verify(request.body, headers_of(request))


def test_a_batch_is_signed_as_a_whole(library, tmp_path):
    webhook, _ = library
    (request,) = send(tmp_path, [NEW], "&batch=10", count=5)
    assert len(webhook(NEW).verify(request.body, headers_of(request))) == 5


def test_an_id_with_a_dot_is_signed_unambiguously(library, tmp_path):
    webhook, _ = library
    (request,) = send(tmp_path, [NEW], PROBE_ID="order.42 ü")
    assert request.headers["webhook-id"] == "order%2E42%20%C3%BC"
    webhook(NEW).verify(request.body, headers_of(request))


def test_ed25519(tmp_path):
    """By the openssl program. No official library that is released knows v1a (looked at: Python 1.1.0, npm 1.1.1, Go v0.0.1,
    crates.io 1.0.1, Maven 1.2.0; in their repository issue 124, and drafts for Python, JavaScript and Go)."""
    (request,) = send(tmp_path, [f"whsk_{base64.b64encode(SEED).decode()}"])
    version, signature = request.headers["webhook-signature"].split(",")
    assert version == "v1a"
    der = bytes.fromhex("302e020100300506032b657004220420") + SEED
    (tmp_path / "key.der").write_bytes(der)
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    (tmp_path / "signed").write_bytes(signed)
    (tmp_path / "signature").write_bytes(base64.b64decode(signature))
    verify = ["openssl", "pkeyutl", "-verify", "-rawin", "-inkey", "key.der", "-keyform", "DER", "-in", "signed",
              "-sigfile", "signature"]
    assert subprocess.run(verify, cwd=tmp_path, check=False, capture_output=True).returncode == 0
    (tmp_path / "signed").write_bytes(signed + b" ")
    assert subprocess.run(verify, cwd=tmp_path, check=False, capture_output=True).returncode != 0


def test_hermodr(tmp_path):
    (request,) = send(tmp_path, ["any text"], "&sign=hermodr")
    signed = request.headers["X-Webhook-Timestamp"].encode() + b"." + request.body
    assert request.headers["X-Webhook-Signature"] == \
        "sha256=" + hmac.new(b"any text", signed, hashlib.sha256).hexdigest()
    assert request.headers["X-Webhook-Signature-Algorithm"] == "hmac-sha256"
    assert (request.headers["X-Webhook-Delivery"], request.headers["X-Webhook-Event"]) == ("m-0", "order.placed")
    assert "webhook-signature" not in request.headers
