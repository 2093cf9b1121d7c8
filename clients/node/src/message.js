// SPDX-License-Identifier: Apache-2.0
// A message, and what the outbox demands of it: told before anything is written, with the name of the field.
import { AsyncLocalStorage } from "node:async_hooks";
import { randomFillSync } from "node:crypto";

const otel = await import("@opentelemetry/api").catch(() => null);
const handled = new AsyncLocalStorage();

// the field, and the column
export const FIELDS = {
  id: "id", type: "type", key: "key", kind: "kind", published: "published", priority: "priority", eventTime: "event_time",
  dueAt: "due_at", expiresAt: "expires_at", contentType: "content_type", source: "source", subject: "subject",
  topic: "topic", correlationId: "correlation_id", causationId: "causation_id", traceparent: "traceparent",
  headers: "headers", data: "data", payload: "payload", payloadBin: "payload_bin",
};
const LIMITS = { type: 500, key: 255, id: 255, content_type: 2048, source: 2048, subject: 2048, topic: 2048,
  correlation_id: 2048, causation_id: 2048, traceparent: 2048 };
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const MEDIA_TYPE = /^[ -.0-~]+\/[!-:<-~][ -~]*$/;
const HEADER_NAME = /^(?!outbox-|ce[-_]|content-type$)[!#$%&'*+\-.^_`|~0-9a-z]+$/i;
const TRACEPARENT = /^(?!ff)(?!00-.{53})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;

/** The outbox does not take this message. `field`: the column's name. */
export class InvalidMessage extends TypeError {
  constructor(field, problem) {
    super(`${field}: ${problem}`);
    this.name = "InvalidMessage";
    this.field = field;
  }
}

/** What is published by `act` was caused by this CloudEvent: its id, correlationid and traceparent are inherited. */
export const handling = (event, act) => handled.run(event, act);

/** The row: every column that is not NULL. Times are still Dates or microseconds. */
export function columnsOf(message) {
  const row = { ...inherited() };
  for (const [field, value] of Object.entries(message)) {
    if (!Object.hasOwn(FIELDS, field)) throw new InvalidMessage(field, `is unknown; there are: ${Object.keys(FIELDS).join(", ")}`);
    if (value !== undefined && (value !== null || field === "data")) row[FIELDS[field]] = value;
  }
  for (const [name, most] of Object.entries(LIMITS)) if (name in row || name === "type") checkText(name, row[name], most);
  if ("content_type" in row && !MEDIA_TYPE.test(row.content_type)) {
    throw new InvalidMessage("content_type", `"${row.content_type}" is not a media type; write one such as application/json`);
  }
  if ("traceparent" in row && !TRACEPARENT.test(row.traceparent)) {
    throw new InvalidMessage("traceparent", `"${row.traceparent}" is not a W3C trace context; write ` +
      "00-<32 hex digits>-<16 hex digits>-<2 hex digits>");
  }
  checkHeaders(row.headers ?? {}, "traceparent" in row);
  if (![undefined, "event", "command"].includes(row.kind)) {
    throw new InvalidMessage("kind", `${shown(row.kind)} is unknown; use "event" or "command"`);
  }
  if (!Number.isInteger(row.priority ?? 0) || Math.abs(row.priority ?? 0) > 100) {
    throw new InvalidMessage("priority", `${row.priority} is out of range; use -100 to 100, 0 is normal`);
  }
  checkTimes(row);
  putPayload(row);
  row.id ??= uuid7();
  if (row.headers) row.headers = Object.keys(row.headers).length ? JSON.stringify(row.headers) : undefined;
  if (row.kind === "event") delete row.kind;
  for (const name of Object.keys(row)) if ([undefined, false, 0].includes(row[name])) delete row[name];
  return row;
}

function inherited() {
  const event = handled.getStore();
  const span = otel?.trace.getActiveSpan()?.spanContext();
  const row = {};
  if (event) Object.assign(row, { causation_id: event.id, correlation_id: event.correlationid ?? event.id });
  if (span && otel.isSpanContextValid(span)) {
    row.traceparent = `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, "0")}`;
  } else if (event?.traceparent) row.traceparent = event.traceparent;
  return row;
}

function uuid7() {
  const bytes = randomFillSync(Buffer.alloc(16));
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const shown = (value) => String(JSON.stringify(value)).slice(0, 40);

function size(name, text) {
  // what is no character becomes U+FFFD, silently: half of a pair, for example
  if (/\p{Surrogate}/u.test(text)) throw new InvalidMessage(name, `${shown(text)} has half a character; remove it`);
  return Buffer.byteLength(text);
}

function checkText(name, text, most) {
  if (text === undefined) throw new InvalidMessage(name, "is missing; name what happened, such as order.placed");
  if (typeof text !== "string") throw new InvalidMessage(name, `${shown(text)} is not text`);
  if (text === "") throw new InvalidMessage(name, "is empty; give it a value or leave it unset");
  if (text.length > most && [...text].length > most) {
    throw new InvalidMessage(name, `${shown(text)}... has ${[...text].length} characters, at most ${most}; shorten it`);
  }
  if (CONTROL.test(text)) throw new InvalidMessage(name, `${shown(text)} has a control character; remove it`);
  size(name, text);
}

function checkHeaders(headers, traced) {
  const taken = new Set(traced ? ["traceparent"] : []);
  const entries = Object.entries(headers);
  let bytes = 0;
  if (entries.length > 64) throw new InvalidMessage("headers", `${entries.length} of them, at most 64; remove some`);
  for (const [name, value] of entries) {
    if (!HEADER_NAME.test(name)) {
      throw new InvalidMessage("headers", `name ${shown(name)} is reserved, or has a character that headers cannot have; ` +
        "use letters, digits and - . _");
    }
    if (typeof value !== "string" || /[\0\r\n]/.test(value)) {
      throw new InvalidMessage("headers", `the value ${shown(value)} of "${name}" is not text, or has a line break or a NUL`);
    }
    if (taken.has(name.toLowerCase())) throw new InvalidMessage("headers", `"${name}" is given twice; keep one of them`);
    taken.add(name.toLowerCase());
    bytes += size("headers", name) + size("headers", value);
  }
  if (bytes > 32768) throw new InvalidMessage("headers", `${bytes} bytes in all, at most 32768; shorten them`);
}

/** A Date, or microseconds since 1970 as a bigint. */
export const microseconds = (time) => (time instanceof Date ? BigInt(time.getTime()) * 1000n : time);

function checkTimes(row) {
  for (const name of ["event_time", "due_at", "expires_at"].filter((name) => name in row)) {
    if (row[name] instanceof Date && Number.isNaN(row[name].getTime())) row[name] = undefined;
    const time = microseconds(row[name]);
    if (typeof time !== "bigint") throw new InvalidMessage(name, "is neither a Date nor a bigint of microseconds since 1970");
    if (time <= 0n) throw new InvalidMessage(name, "is before 1970");
    row[name] = time;
  }
  if (row.expires_at !== undefined && row.expires_at <= (row.due_at ?? 0n)) {
    throw new InvalidMessage("expires_at", "is not after due_at; it could never be delivered");
  }
}

export function isJson(contentType) {
  const media = (contentType ?? "application/json").split(";")[0].replace(/^[ \t]+|[ \t]+$/g, "").toLowerCase();
  return media.includes("/") && (media.endsWith("/json") || media.endsWith("+json"));
}

function putPayload(row) {
  if (("data" in row) + ("payload" in row) + ("payload_bin" in row) !== 1) {
    throw new InvalidMessage("payload", "give data, payload or payloadBin, exactly one of them");
  }
  try {
    if ("data" in row) row.payload = JSON.stringify(row.data);
    else if (row.payload && isJson(row.content_type)) JSON.parse(row.payload);
  } catch (error) {
    throw new InvalidMessage("payload", `${error.message}; repair it, or give payload and another contentType`);
  }
  delete row.data;
  const payload = row.payload_bin ?? row.payload;
  if ("payload_bin" in row ? !(payload instanceof Uint8Array) : typeof payload !== "string") {
    throw new InvalidMessage("payload", "is not a value that JSON has, not text, or not a Uint8Array");
  }
  if (typeof payload === "string" && payload.includes("\0")) {
    throw new InvalidMessage("payload", "has a NUL, which no text column takes; give payloadBin");
  }
  const bytes = typeof payload === "string" ? size("payload", payload) : payload.byteLength;
  if (bytes > 16 << 20) {
    throw new InvalidMessage("payload", `has ${bytes} bytes, at most ${16 << 20}; store it elsewhere and send a reference`);
  }
}
