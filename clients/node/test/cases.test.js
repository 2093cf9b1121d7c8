// SPDX-License-Identifier: Apache-2.0
// The cases that every client runs: clients/testdata.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { InvalidMessage, InvalidSignature, accept, handling, publish, verify } from "outbox-client";
import { CASES, DRIVER_NAMES, makePlace, outbox } from "./places.js";

const NAMES = { payload_base64: "payloadBin" };

function expand(value) {
  if (value === null || typeof value !== "object") return value;
  if (Object.keys(value).sort().join() === "repeat,times") return value.repeat.repeat(value.times);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, expand(one)]));
}

/** RFC 3339, to the microsecond. */
function microseconds(text) {
  const [, head, fraction = "", zone] = /^(.{19})(?:\.(\d+))?(.*)$/.exec(text);
  return BigInt(Date.parse(head + zone)) * 1000n + BigInt(fraction.padEnd(6, "0"));
}

function messageOf({ message }) {
  return Object.fromEntries(Object.entries(message).map(([column, value]) => {
    const name = NAMES[column] ?? column.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    if (/_time$|_at$/.test(column)) return [name, microseconds(value)];
    if (column === "payload_base64") return [name, Buffer.from(value, "base64")];
    return [name, column === "data" ? value : expand(value)];
  }));
}

function checkRow({ name, message, row: wanted }, found) {
  const row = { ...found };
  for (const column of ["id", "event_time"]) if (!(column in message)) delete row[column];
  if (row.payload_bin) row.payload_base64 = Buffer.from(row.payload_bin).toString("base64");
  delete row.payload_bin;
  if (row.headers) row.headers = JSON.parse(row.headers);
  for (const column of ["event_time", "due_at", "expires_at"]) if (column in row) row[column] = Number(row[column]);
  if (row.published) row.published = 1;
  const expected = expand(wanted);
  if ("data" in message) [row.payload, expected.payload] = [JSON.parse(row.payload), JSON.parse(expected.payload)];
  assert.deepEqual(row, expected, name);
}

function checkEvent({ name, event: wanted }, event) {
  const expected = { ...expand(wanted), data: wanted.data };
  if (!("data" in wanted)) delete expected.data;
  for (const attribute of ["id", "time", "source", "sequence"]) if (!(attribute in expected)) delete event[attribute];
  assert.deepEqual(event, expected, name);
}

for (const driver of DRIVER_NAMES) {
  test(`${driver}: rows and events`, async (t) => {
    const place = await makePlace(driver, t);
    const one = await place.connect();
    await one.begin();
    for (const it of CASES.publish) {
      const act = () => publish(one.conn, messageOf(it), place.options);
      const id = await (it.handling ? handling(it.handling, act) : act());
      assert.equal(id, expand(it.message.id) ?? id);
    }
    await one.end("COMMIT");
    const rows = await place.rows();
    assert.equal(rows.length, CASES.publish.length);
    CASES.publish.forEach((it, i) => checkRow(it, rows[i]));
    const out = join(place.folder, "events");
    outbox("relay", "--store", place.url, "--to", `events=file:${out}`, "--until-idle");
    const events = new Map(readFileSync(out, "utf8").trimEnd().split("\n").map((line) => [JSON.parse(line).id, JSON.parse(line)]));
    CASES.publish.forEach((it, i) => checkEvent(it, events.get(rows[i].id)));
  });

  test(`${driver}: what is refused`, async (t) => {
    const place = await makePlace(driver, t);
    const one = await place.connect();
    await one.begin();
    for (const it of CASES.refused) {
      assert.throws(() => publish(one.conn, messageOf(it), place.options),
        (error) => error instanceof InvalidMessage && error.field === it.field && error.message.startsWith(`${it.field}: `), it.name);
    }
    await one.end("COMMIT"); // the transaction goes on: nothing has reached the database
    assert.deepEqual(await place.types(), []);
  });

  test(`${driver}: the inbox`, async (t) => {
    const place = await makePlace(driver, t);
    const one = await place.connect();
    await one.begin();
    for (const it of CASES.inbox) {
      assert.equal(await accept(one.conn, it.consumer, it.id, place.options), it.first, JSON.stringify(it));
    }
    await one.end("ROLLBACK");
  });
}

test("webhooks", () => {
  for (const it of CASES.webhooks) {
    const act = () => verify(it.keys, new Headers(Object.entries(it.headers).filter(([, value]) => /^[ -~]*$/.test(value))),
      Buffer.from(it.body), { now: it.now });
    if (it.valid) assert.doesNotThrow(act, it.name);
    else assert.throws(act, InvalidSignature, it.name);
    if (!it.valid) assert.throws(() => verify(it.keys, it.headers, it.body, { now: it.now }), InvalidSignature, it.name);
  }
});

test("a key that is none is no wrong signature", () => {
  const [{ headers, body, now }] = CASES.webhooks;
  for (const key of ["", "whsec_", "whsec_c2hvcnQ=", "whpk_c2hvcnQ=", `whsk_${"A".repeat(43)}=`, "plain"]) {
    assert.throws(() => verify(key, headers, body, { now }), /^TypeError: a key is neither whsec_/);
  }
});
