// SPDX-License-Identifier: Apache-2.0
// Nothing is published but what is committed, with what it is about; nothing is handled twice.
import assert from "node:assert/strict";
import events from "node:events";
import test from "node:test";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import pg from "pg";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import { InvalidMessage, NoTransaction, accept, handling, publish, publishAll, published } from "outbox-client";
import { DRIVER_NAMES, makePlace } from "./places.js";

const PLACED = { type: "order.placed", key: "42", data: { id: 42 } };
const typesOf = async (rows) => (await rows).map((row) => row.type);

for (const driver of DRIVER_NAMES) {
  const check = (name, act) => test(`${driver}: ${name}`, async (t) => {
    const place = await makePlace(driver, t);
    await act(place, await place.connect());
  });

  check("without a transaction it is refused", async (place, one) => {
    assert.throws(() => publish(one.bare, PLACED, place.options), NoTransaction);
    assert.throws(() => accept(one.bare, "billing", "order-42", place.options), NoTransaction);
    await one.begin();
    const transaction = one.conn;
    await publish(transaction, PLACED, place.options);
    await one.end("COMMIT");
    assert.throws(() => publish(transaction, PLACED, place.options), NoTransaction);
    assert.deepEqual(await place.types(), ["order.placed"]);
  });

  check("a rollback publishes nothing", async (place, one) => {
    await one.begin();
    await one.execute("INSERT INTO notes (note) VALUES ('lost')");
    await publish(one.conn, PLACED, place.options);
    await one.end("ROLLBACK");
    assert.deepEqual(await place.types(), []);
  });

  check("a savepoint that is rolled back publishes nothing", async (place, one) => {
    await one.begin();
    await publish(one.conn, { type: "before", data: 1 }, place.options);
    await one.execute("SAVEPOINT one");
    await publish(one.conn, { type: "inside", data: 1 }, place.options);
    assert.deepEqual(await typesOf(published(one.conn, place.options)), ["before", "inside"]);
    await one.execute("ROLLBACK TO SAVEPOINT one");
    await publish(one.conn, { type: "behind", data: 1 }, place.options);
    assert.deepEqual(await typesOf(published(one.conn, place.options)), ["before", "behind"]);
    await one.end("COMMIT");
    assert.deepEqual(await place.types(), ["before", "behind"]);
  });

  check("a batch is all or none and in order", async (place, one) => {
    const messages = Array.from({ length: 2500 }, (_, n) => ({ type: "t", data: n, subject: `s${n}`, key: n % 2 ? `${n % 7}` : null }));
    await one.begin();
    assert.throws(() => publishAll(one.conn, [...messages, { type: "t", data: 1, key: "" }], place.options),
      (error) => error instanceof InvalidMessage && error.field === "key" && error.message.startsWith("message 2500: key: is empty"));
    assert.deepEqual(await published(one.conn, place.options), []);
    const ids = await publishAll(one.conn, messages, place.options);
    assert.deepEqual(await publishAll(one.conn, [], place.options), []);
    await one.end("COMMIT");
    const rows = await place.rows();
    assert.deepEqual(rows.map((row) => row.id), ids);
    assert.deepEqual(rows.map((row) => row.subject), messages.map((message) => message.subject));
    assert.equal(new Set(ids).size, 2500);
    assert.match(ids[0], /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  check("an id of one's own is published once", async (place, one) => {
    const mine = { type: "t", data: 1, id: `${driver}-${place.before}` };
    for (let i = 0; i < 2; i++) {
      await one.begin();
      assert.equal(await publish(one.conn, mine, place.options), mine.id);
      await publishAll(one.conn, [mine, { type: "other", data: 1 }], place.options);
      await one.end("COMMIT");
    }
    assert.deepEqual(await place.types(), ["t", "other", "other"]);
  });

  check("published() sees its own transaction alone", async (place, one) => {
    const other = await place.connect();
    const commit = async (type) => {
      await other.begin();
      await publish(other.conn, { type, key: "42", data: 1 }, place.options);
      await other.end("COMMIT");
    };
    await commit("committed.before");
    await one.begin();
    assert.deepEqual(await published(one.conn, place.options), []);
    await publish(one.conn, { ...PLACED, headers: { tenant: "7" }, dueAt: new Date("2030-01-01") }, place.options);
    if (place.schema) await commit("committed.meanwhile"); // SQLite has one writer
    await publish(one.conn, { type: "order.noted", payload: "text", contentType: "text/plain" }, place.options);
    assert.deepEqual(await typesOf(published(one.conn, place.options)), ["order.placed", "order.noted"]);
    const [row, ...others] = await published(one.conn, { ...place.options, type: "order.placed", key: "42" });
    assert.deepEqual([row.data, row.headers, others], [{ id: 42 }, { tenant: "7" }, []]);
    assert.deepEqual(await published(one.conn, { ...place.options, key: "43" }), []);
    await one.end("COMMIT");
    await one.begin();
    assert.deepEqual(await published(one.conn, place.options), []);
    await one.end("ROLLBACK");
  });

  check("a storm of duplicates is handled once", async (place) => {
    // Each of 40 messages three times, to four consumers at once; every fifth handler fails the first time.
    const name = `storm ${driver} ${place.before}`;
    const workerData = { driver, file: place.file, schema: place.schema, name, messages: 40 };
    const handled = await Promise.all(Array.from({ length: 4 }, async () => {
      const consumer = new Worker(new URL("consumer.js", import.meta.url), { workerData });
      return (await events.once(consumer, "message"))[0];
    }));
    const wanted = Array.from({ length: 40 }, (_, n) => String(n)).sort();
    const notes = await place.look.execute("SELECT note FROM notes WHERE note LIKE ?", `${name}%`);
    assert.deepEqual(notes.map((row) => row.note.slice(name.length)).sort(), wanted);
    assert.deepEqual(handled.flat().sort(), wanted);
    const rows = await place.rows();
    assert.deepEqual(rows.map((row) => row.causation_id).sort(), wanted);
    assert.deepEqual(new Set(rows.map((row) => row.correlation_id)), new Set(["all"]));
  });
}

test("values that no JSON, text or table has", () => {
  const db = new Database(":memory:");
  db.exec("BEGIN");
  for (const [field, message] of Object.entries({
    key: { type: "t", data: 1, key: 42 }, headers: { type: "t", data: 1, headers: { n: 1 } }, due_at: { type: "t", data: 1, dueAt: 1 },
    event_time: { type: "t", data: 1, eventTime: new Date("none") }, subject: { type: "t", data: 1, subject: "\ud800" },
    payload: { type: "t", data: () => 1 }, correlationID: { type: "t", data: 1, correlationID: "x" },
  })) {
    assert.throws(() => publish(db, message), (error) => error instanceof InvalidMessage && error.field === field, field);
  }
  db.close();
});

test("what is no transaction of a known driver", () => {
  assert.throws(() => publish({}, PLACED), /^TypeError: this is no connection of better-sqlite3/);
  assert.throws(() => publish(new pg.Pool(), PLACED), /take a client from it/);
  const memory = new Database(":memory:");
  assert.throws(() => published(memory), /test with a file/);
  memory.close();
});

test("the current span is the trace", async (t) => {
  const place = await makePlace("better-sqlite3", t);
  const one = await place.connect();
  const other = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const span = new BasicTracerProvider().getTracer("t").startSpan("s");
  await one.begin();
  context.with(trace.setSpan(context.active(), span), () => handling({ id: "e", traceparent: other }, () => {
    publish(one.conn, { type: "span", data: 1 });
    publish(one.conn, { type: "argument", data: 1, traceparent: other });
  }));
  handling({ id: "e", traceparent: other }, () => publish(one.conn, { type: "handled", data: 1 }));
  publish(one.conn, { type: "none", data: 1 });
  await one.end("COMMIT");
  const { traceId, spanId } = span.spanContext();
  assert.deepEqual((await place.rows()).map((row) => row.traceparent), [`00-${traceId}-${spanId}-01`, other, other, undefined]);
});
