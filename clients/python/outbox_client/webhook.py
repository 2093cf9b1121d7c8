# SPDX-License-Identifier: Apache-2.0
"""Who sent this webhook, and did nobody change it? Standard Webhooks, v1 (HMAC-SHA256) and v1a (Ed25519)."""
from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Mapping


class InvalidSignature(ValueError):
    """The request is not from the holder of a key, was changed, or is too old."""


def verify(keys: str | Iterable[str], headers: Mapping[str, str], body: bytes | str, *, tolerance: float = 300,
           now: float | None = None) -> None:
    """Raises InvalidSignature unless one of the keys has signed the request, at most tolerance seconds ago. Keys: whsec_...
    (v1) and whpk_... (v1a, with the package cryptography); give the former one as well while the sender changes its own."""
    values = {name.lower(): value for name, value in headers.items()}
    id, sent, signatures = (values.get(f"webhook-{name}") or "" for name in ("id", "timestamp", "signature"))
    if not id or "." in id or not re.fullmatch("[0-9]{1,12}", sent, re.A) or not signatures:
        raise InvalidSignature("webhook-id, webhook-timestamp or webhook-signature is missing, or is none")
    if abs((time.time() if now is None else now) - int(sent)) > tolerance:
        raise InvalidSignature(f"webhook-timestamp {sent} is too far from now; are both clocks right?")
    signed = f"{id}.{sent}.".encode() + (body.encode() if isinstance(body, str) else body)
    given = [signature.partition(",")[::2] for signature in signatures.split()]
    if not any([_signed_by(key, signed, given) for key in ([keys] if isinstance(keys, str) else keys)]):
        raise InvalidSignature("no signature was made with one of the keys")


def _signed_by(key: str, signed: bytes, given: list[tuple[str, str]]) -> bool:
    kind, _, text = key.partition("_")
    try:
        secret = base64.b64decode(text, validate=True)
    except ValueError:
        secret = b""
    if kind == "whsec" and len(secret) >= 24:
        wanted = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest())
        return any([hmac.compare_digest(wanted, text.encode()) for version, text in given if version == "v1"])
    if kind == "whpk" and len(secret) == 32:
        return any([_verify_ed25519(secret, signed, text) for version, text in given if version == "v1a"])
    raise ValueError("a key is neither whsec_ and base64 of 24 bytes or more, nor whpk_ and base64 of 32 bytes")


def _verify_ed25519(key: bytes, signed: bytes, text: str) -> bool:
    from cryptography.exceptions import InvalidSignature as Wrong
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(text, validate=True), signed)
    except (Wrong, ValueError):
        return False
    return True
