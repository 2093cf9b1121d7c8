// SPDX-License-Identifier: Apache-2.0
// The caller's connection: better-sqlite3's or node:sqlite's database, a client of pg, a transaction of Knex.

/** No transaction is open. */
export class NoTransaction extends Error {
  constructor(remedy) {
    super(`not in a transaction: your rows could be committed without the outbox's, or those without yours; ${remedy}`);
    this.name = "NoTransaction";
  }
}

/** Go on with what a call returned: at once where the driver is synchronous. */
export const then = (value, next) => (typeof value?.then === "function" ? value.then(next) : next(value));

/**
 * { sqlite, open, remedy, run(sql, args) }: SQLite or PostgreSQL? Is a transaction open? Run a statement with a ? for each
 * argument; it returns, or promises, { rows, changes }.
 */
export function connectionOf(conn) {
  if (typeof conn?.prepare === "function") return sqlite(conn);
  if (typeof conn?.raw === "function") return knex(conn);
  if (typeof conn?.getTransactionStatus === "function") return postgres(conn);
  if (typeof conn?.connect === "function" && "totalCount" in conn) {
    throw new NoTransaction("a pool runs each statement on another connection: take a client from it, and BEGIN");
  }
  throw new TypeError("this is no connection of better-sqlite3, node:sqlite, pg (8.21 or newer) or Knex");
}

/** The same, of a connection on which a transaction is open. */
export function transactionOf(conn) {
  const connection = connectionOf(conn);
  if (!connection.open) throw new NoTransaction(connection.remedy);
  return connection;
}

// Parsing an INSERT into the log takes several times as long as running it. Batches differ in length: only short ones stay.
const statements = new WeakMap();

function prepare(db, sql) {
  if (!statements.has(db)) statements.set(db, new Map());
  const prepared = statements.get(db);
  const statement = prepared.get(sql) ?? db.prepare(sql);
  if (sql.length < 500 && prepared.size < 50) prepared.set(sql, statement);
  return statement;
}

function sqlite(db) {
  return {
    sqlite: true, open: db.inTransaction ?? db.isTransaction, remedy: "run it inside db.transaction(), or BEGIN first", file: db,
    run(sql, args) {
      const statement = prepare(db, sql);
      return sql.startsWith("INSERT") ? statement.run(...args) : { rows: statement.all(...args) };
    },
  };
}

function postgres(client) {
  return {
    sqlite: false, open: client.getTransactionStatus() !== "I", remedy: "await client.query('BEGIN') first",
    run(sql, args) {
      let n = 0;
      return client.query(sql.replace(/\?/g, () => `$${++n}`), args).then(({ rows, rowCount }) => ({ rows, changes: rowCount }));
    },
  };
}

function knex(trx) {
  const isSqlite = /sqlite/.test(trx.client.dialect);
  return {
    sqlite: isSqlite, open: trx.isTransaction === true && !trx.isCompleted(), remedy: "give the transaction, not knex itself",
    run: (sql, args) => trx.raw(sql, args).then((made) =>
      (isSqlite ? { rows: made, changes: made.changes } : { rows: made.rows, changes: made.rowCount })),
  };
}

export const qualified = (schema, name) => (schema ? `"${schema.replaceAll('"', '""')}".${name}` : name);
