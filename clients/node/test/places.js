// SPDX-License-Identifier: Apache-2.0
// Places to publish to, for each driver: a SQLite file, or a schema on a PostgreSQL server.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import knex from "knex";
import pg from "pg";

const { OUTBOX_BIN, OUTBOX_SOURCE, OUTBOX_TEST_POSTGRES: POSTGRES } = process.env;
export const CASES = JSON.parse(readFileSync(join(OUTBOX_SOURCE, "clients/testdata/cases.json"), "utf8"));
export const outbox = (...args) => execFileSync(OUTBOX_BIN, args, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });
const nodeSqlite = await import("node:sqlite").catch(() => null); // Node.js 22 and newer have it
export const DRIVERS = { "better-sqlite3": sqlite(Database), ...(nodeSqlite && { "node:sqlite": sqlite(nodeSqlite.DatabaseSync) }),
  pg: postgres, "knex-sqlite": knexOn("better-sqlite3"), "knex-pg": knexOn("pg") };
export const DRIVER_NAMES = Object.keys(DRIVERS);

// Each has: connect(), and connections with begin(), end("COMMIT" | "ROLLBACK") and execute(sql, args); `conn` is what the
// client gets, inside of begin() and end().
function sqlite(Class) {
  return (file) => ({
    url: `sqlite:${file}`,
    connect() {
      const conn = new Class(file);
      conn.exec("PRAGMA busy_timeout = 60000");
      return { conn, bare: conn, begin: async () => conn.exec("BEGIN IMMEDIATE"), end: async (how) => conn.exec(how),
        execute: async (sql, ...args) => (/^(SELECT)/.test(sql) ? conn.prepare(sql).all(...args) : conn.prepare(sql).run(...args)),
        close: async () => conn.close() };
    },
  });
}

function postgres(_, schema) {
  return {
    url: `${POSTGRES}?schema=${schema}`, schema,
    async connect() {
      const conn = new pg.Client(POSTGRES);
      await conn.connect();
      const execute = async (sql, ...args) => {
        let n = 0;
        return (await conn.query(sql.replace(/\?/g, () => `$${++n}`), args)).rows;
      };
      return { conn, bare: conn, execute, begin: () => execute("BEGIN"), end: (how) => execute(how), close: () => conn.end() };
    },
  };
}

function knexOn(client) {
  return (file, schema) => ({
    url: client === "pg" ? `${POSTGRES}?schema=${schema}` : `sqlite:${file}`, schema: client === "pg" ? schema : undefined,
    connect() {
      const bare = knex({ client, connection: client === "pg" ? POSTGRES : { filename: file }, useNullAsDefault: true,
        pool: { min: 1, max: 1, afterCreate: (conn, done) => {
          if (client !== "pg") conn.exec("PRAGMA busy_timeout = 60000");
          done(null, conn);
        } } });
      const one = { conn: bare, bare,
        async close() {
          if (one.conn !== bare) await one.conn.rollback(); // of a test that failed; else the pool waits for it
          await bare.destroy();
        },
        begin: async () => { one.conn = await bare.transaction(); },
        end: async (how) => {
          await (how === "COMMIT" ? one.conn.commit() : one.conn.rollback());
          one.conn = bare;
        },
        execute: async (sql, ...args) => {
          const made = await one.conn.raw(sql, args);
          return made.rows ?? made;
        } };
      return one;
    },
  });
}

export async function makePlace(driver, t) {
  const folder = mkdtempSync(join(tmpdir(), "outbox-node-"));
  const file = join(folder, "shop.db");
  const place = DRIVERS[driver](file, `node_${driver.replaceAll("-", "_")}`);
  outbox("init", "--store", place.url);
  outbox("init", "--inbox", "--store", place.url);
  const made = [];
  const table = `${place.schema ? `${place.schema}.` : ""}outbox_message`;
  const look = await place.connect();
  await look.execute("CREATE TABLE IF NOT EXISTS notes (note TEXT)");
  const before = Number((await look.execute(`SELECT coalesce(max(seq), 0) AS seq FROM ${table}`))[0].seq);
  t.after(() => Promise.all([look, ...made].map((one) => one.close())));
  const number = place.schema ? (name) => `(extract(epoch FROM ${name}) * 1000000)::bigint AS ${name}` : (name) => name;
  const columns = ["id", "type", "key", "kind", "published", "priority", "content_type", "source", "subject", "topic",
    "correlation_id", "causation_id", "traceparent", "headers", "payload", "payload_bin",
    ...["event_time", "due_at", "expires_at"].map(number)].join(", ");
  return {
    ...place, file, folder, look, before,
    options: { schema: place.schema },
    async connect() {
      const one = await place.connect();
      made.push(one);
      return one;
    },
    async rows() {
      const rows = await look.execute(`SELECT ${columns} FROM ${table} WHERE seq > ? ORDER BY seq`, before);
      return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)));
    },
    async types() {
      return (await this.rows()).map((row) => row.type);
    },
  };
}
