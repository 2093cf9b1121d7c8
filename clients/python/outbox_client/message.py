# SPDX-License-Identifier: Apache-2.0
"""A message, and what the outbox demands of it: told before anything is written, with the name of the field."""
from __future__ import annotations

import contextlib
import contextvars
import datetime
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]

UNSET: Any = type("Unset", (), {"__repr__": lambda self: "UNSET"})()
LIMITS = {"type": 500, "key": 255, "id": 255, "content_type": 2048, "source": 2048, "subject": 2048, "topic": 2048,
          "correlation_id": 2048, "causation_id": 2048, "traceparent": 2048}
TIMES = ("event_time", "due_at", "expires_at")
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
MEDIA_TYPE = re.compile(r"[ -.0-~]+/[!-:<-~][ -~]*")
HEADER_NAME = re.compile(r"(?!outbox-|ce[-_]|content-type$)[!#$%&'*+\-.^_`|~0-9a-z]+", re.I | re.A)
TRACEPARENT = re.compile(r"(?!ff)(?!00-.{53})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_handled: contextvars.ContextVar[Mapping[str, Any]] = contextvars.ContextVar("outbox_handled", default={})


class InvalidMessage(ValueError):
    """The outbox does not take this message. field: its name."""

    def __init__(self, name: str, problem: str):
        super().__init__(f"{name}: {problem}")
        self.field = name


@dataclass(frozen=True)
class Message:
    """Exactly one payload: data (a value, written as JSON), payload (text, as it is) or payload_bin (bytes)."""
    type: str
    data: Any = UNSET
    key: str | None = None
    payload: str | None = field(default=None, repr=False)
    payload_bin: bytes | None = field(default=None, repr=False)
    id: str | None = None
    content_type: str | None = None
    headers: Mapping[str, str] | None = None
    kind: str | None = None
    published: bool = False
    priority: int = 0
    event_time: datetime.datetime | None = None
    due_at: datetime.datetime | None = None
    expires_at: datetime.datetime | None = None
    source: str | None = None
    subject: str | None = None
    topic: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    traceparent: str | None = None

    def columns(self) -> dict[str, Any]:
        """The row: every column that is not NULL. Raises InvalidMessage."""
        row = {name: value for given in (_inherited(), vars(self)) for name, value in given.items() if value is not None}
        for name, most in LIMITS.items():
            if name in row or name == "type":
                _check_text(name, row.get(name), most)
        if self.content_type and not MEDIA_TYPE.fullmatch(self.content_type):
            raise InvalidMessage("content_type", f"{self.content_type!r} is not a media type; write one such as "
                                                 "application/json")
        if "traceparent" in row and not TRACEPARENT.fullmatch(row["traceparent"]):
            raise InvalidMessage("traceparent", f"{row['traceparent']!r} is not a W3C trace context; write "
                                                "00-<32 hex digits>-<16 hex digits>-<2 hex digits>")
        _check_headers(self.headers or {}, "traceparent" in row)
        if self.kind not in (None, "event", "command"):
            raise InvalidMessage("kind", f"{self.kind!r} is unknown; use 'event' or 'command'")
        if not -100 <= self.priority <= 100:
            raise InvalidMessage("priority", f"{self.priority} is out of range; use -100 to 100, 0 is normal")
        _check_times(row)
        column, value = _payload(self)
        row["data"], row[column] = None, value
        row.setdefault("id", uuid7())
        row["headers"] = json.dumps(dict(self.headers), ensure_ascii=False) if self.headers else None
        row["kind"] = "command" if self.kind == "command" else None
        row["published"], row["priority"] = self.published or None, self.priority or None
        return {name: value for name, value in row.items() if value is not None}


@contextlib.contextmanager
def handling(event: Mapping[str, Any]) -> Iterator[None]:
    """What is published inside was caused by this CloudEvent: its id, correlationid and traceparent are inherited."""
    token = _handled.set(event)
    try:
        yield
    finally:
        _handled.reset(token)


def uuid7() -> str:
    number = time.time_ns() // 1_000_000 << 80 | int.from_bytes(os.urandom(10), "big")
    text = f"{number & ~(0xf << 76 | 3 << 62) | 7 << 76 | 2 << 62:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _inherited() -> dict[str, Any]:
    event = _handled.get()
    span = trace.get_current_span().get_span_context() if trace else None
    traceparent = f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}" if span and span.is_valid else None
    return {"causation_id": event.get("id"), "correlation_id": event.get("correlationid") or event.get("id"),
            "traceparent": traceparent or event.get("traceparent")}


def _size(name: str, text: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidMessage(name, f"{text[:40]!r} cannot be written as UTF-8; remove what is not a character") from None


def _check_text(name: str, text: Any, most: int) -> None:
    if not isinstance(text, str):
        raise InvalidMessage(name, f"{text!r} is not text" if text is not None else "is missing; name what happened")
    if not text:
        raise InvalidMessage(name, "is empty; give it a value or leave it unset")
    if len(text) > most:
        raise InvalidMessage(name, f"{text[:40]!r}... has {len(text)} characters, at most {most}; shorten it")
    if CONTROL.search(text):
        raise InvalidMessage(name, f"{text[:40]!r} has a control character; remove it")
    _size(name, text)


def _check_headers(headers: Mapping[str, str], traced: bool) -> None:
    if len(headers) > 64:
        raise InvalidMessage("headers", f"{len(headers)} of them, at most 64; remove some")
    taken = {"traceparent"} if traced else set()
    for name, value in headers.items():
        if not isinstance(name, str) or not HEADER_NAME.fullmatch(name):
            raise InvalidMessage("headers", f"name {name!r} is reserved, or has a character that headers cannot have; "
                                            "use letters, digits and - . _")
        if not isinstance(value, str) or any(c in value for c in "\0\r\n"):
            raise InvalidMessage("headers", f"the value {value!r} of {name!r} is not text, or has a line break or a NUL")
        if name.lower() in taken:
            raise InvalidMessage("headers", f"{name!r} is given twice; keep one of them")
        taken.add(name.lower())
    size = sum(_size("headers", name) + _size("headers", value) for name, value in headers.items())
    if size > 32768:
        raise InvalidMessage("headers", f"{size} bytes in all, at most 32768; shorten them")


def _check_times(row: dict[str, Any]) -> None:
    for name in TIMES:
        when = row.get(name, EPOCH)
        if not isinstance(when, datetime.datetime) or when.tzinfo is None:
            raise InvalidMessage(name, f"{when!r} is not a datetime with a time zone; use datetime.now(timezone.utc)")
        if when <= EPOCH and name in row:
            raise InvalidMessage(name, f"{when} is before 1970")
    if "expires_at" in row and row["expires_at"] <= row.get("due_at", EPOCH):
        raise InvalidMessage("expires_at", f"{row['expires_at']} is not after due_at; it could never be delivered")


def is_json(content_type: str | None) -> bool:
    media = (content_type or "application/json").split(";")[0].strip(" \t").lower()
    return media.endswith(("/json", "+json")) and "/" in media


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _payload(message: Message) -> tuple[str, str | bytes]:
    """The column and what stands in it."""
    text, data = message.payload, message.payload_bin
    if (message.data is not UNSET) + (text is not None) + (data is not None) != 1:
        raise InvalidMessage("payload", "give data, payload or payload_bin, exactly one of them")
    try:
        if message.data is not UNSET:
            text = json.dumps(message.data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        elif text and is_json(message.content_type):
            json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage("payload", f"{error}; repair it, or give payload and another content_type") from None
    if text is not None and "\0" in text:
        raise InvalidMessage("payload", "has a NUL, which no text column takes; give payload_bin")
    size = len(data or b"") if text is None else _size("payload", text)
    if size > 16 << 20:
        raise InvalidMessage("payload", f"has {size} bytes, at most {16 << 20}; store it elsewhere and send a reference")
    return ("payload_bin", data or b"") if text is None else ("payload", text)
