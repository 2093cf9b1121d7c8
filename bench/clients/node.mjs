// SPDX-License-Identifier: Apache-2.0
// What publish() of the Node.js client costs beside the same driver's plain INSERT. Each number is the median of five rounds,
// in which the ways take turns; messages a second. Run by `run`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { publish, publishAll } from "outbox-client";

const [MESSAGES, ROUNDS] = [2000, 5];
const ORDER = { id: 42, total: 99.5, lines: Array.from({ length: 5 }, (_, n) => ({ sku: `sku-${n}`, quantity: n })) };
const { OUTBOX_BIN, OUTBOX_TEST_POSTGRES: POSTGRES } = process.env;
const message = (n) => ({ type: "order.placed", key: String(n), data: ORDER });

function onSqlite(file) {
  const db = new Database(file, { nativeBinding: resolve("node_modules/better-sqlite3/build/Release/better_sqlite3.node") });
  const insert = db.prepare("INSERT INTO outbox_message (type, key, payload) VALUES (?, ?, ?)");
  return {
    begin: () => db.exec("BEGIN"), commit: () => db.exec("COMMIT"),
    plain(count) { for (let n = 0; n < count; n++) insert.run("order.placed", String(n), JSON.stringify(ORDER)); },
    client(count) { for (let n = 0; n < count; n++) publish(db, message(n)); },
    batch: (count) => publishAll(db, Array.from({ length: count }, (_, n) => message(n))),
    close: () => db.close(),
  };
}

async function onPostgres() {
  const client = new pg.Client(POSTGRES);
  const insert = "INSERT INTO outbox.outbox_message (type, key, payload) VALUES ($1, $2, $3)";
  await client.connect();
  return {
    begin: () => client.query("BEGIN"), commit: () => client.query("COMMIT"),
    async plain(count) { for (let n = 0; n < count; n++) await client.query(insert, ["order.placed", String(n), JSON.stringify(ORDER)]); },
    async client(count) { for (let n = 0; n < count; n++) await publish(client, message(n), { schema: "outbox" }); },
    batch: (count) => publishAll(client, Array.from({ length: count }, (_, n) => message(n)), { schema: "outbox" }),
    close: () => client.end(),
  };
}

async function perSecond(place, way, transactions, each) {
  const start = performance.now();
  for (let i = 0; i < transactions; i++) {
    await place.begin();
    await place[way](each);
    await place.commit();
  }
  return (transactions * each * 1000) / (performance.now() - start);
}

async function measure(name, place) {
  const found = [];
  for (let round = 0; round < ROUNDS; round++) {
    const row = [];
    for (const [way, transactions, each] of [["plain", 1, MESSAGES], ["client", 1, MESSAGES], ["batch", 1, MESSAGES],
      ["plain", 300, 1], ["client", 300, 1]]) row.push(await perSecond(place, way, transactions, each));
    found.push(row);
  }
  const [a, b, c, d, e] = found[0].map((_, i) => found.map((row) => row[i]).sort((x, y) => x - y)[Math.floor(ROUNDS / 2)]);
  const number = (value) => Math.round(value).toLocaleString("en");
  const part = (value, of) => `${number(value)} (${Math.round((value / of) * 100)}%)`;
  console.log(`| Node.js, ${name} | ${number(a)} | ${part(b, a)} | ${part(c, a)} | ${number(d)} | ${part(e, d)} |`);
  await place.close();
}

const folder = mkdtempSync(join(tmpdir(), "outbox-bench-"));
for (const url of [`sqlite:${folder}/bench.db`, `${POSTGRES}?schema=outbox`]) execFileSync(OUTBOX_BIN, ["init", "--store", url]);
await measure("better-sqlite3", onSqlite(join(folder, "bench.db")));
await measure("pg", await onPostgres());
rmSync(folder, { recursive: true });
