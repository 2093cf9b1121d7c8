// SPDX-License-Identifier: Apache-2.0
// Publishing is an INSERT into outbox_message, in the transaction of the rows that the message is about.
import { qualified, then, transactionOf } from "./connection.js";
import { InvalidMessage, columnsOf } from "./message.js";

const AT_ONCE = 1000; // SQLite takes 32,766 parameters, a message has up to 19 columns
const TIMES = new Set(["event_time", "due_at", "expires_at"]);

/** Publish a message when the transaction commits. Returns its id; with pg and Knex, a promise of it. */
export function publish(conn, message, options) {
  return then(publishAll(conn, [message], options), ([id]) => id);
}

/** Several in order, in one statement for each thousand. All are checked before the first is written. */
export function publishAll(conn, messages, { schema } = {}) {
  const connection = transactionOf(conn);
  const rows = messages.map((message, number) => {
    try {
      return columnsOf(message);
    } catch (error) {
      if (error instanceof InvalidMessage && messages.length > 1) error.message = `message ${number}: ${error.message}`;
      throw error;
    }
  });
  const ownIds = messages.some((message) => message.id != null);
  const insertFrom = (start) => (start >= rows.length ? rows.map((row) => row.id) :
    then(insert(connection, schema, rows.slice(start, start + AT_ONCE), ownIds), () => insertFrom(start + AT_ONCE)));
  return insertFrom(0);
}

function insert(connection, schema, rows, ownIds) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  // PostgreSQL's numbers have no bigint of microseconds: text, in a form that is exact
  const value = (name) => (TIMES.has(name) && !connection.sqlite ? "to_timestamp(0) + ?::text::interval" : "?");
  const argument = (row, name) => {
    if (row[name] === undefined) return null;
    if (TIMES.has(name)) return connection.sqlite ? row[name] : `${row[name]} microseconds`;
    return connection.sqlite && row[name] === true ? 1 : row[name];
  };
  const one = `(${columns.map(value).join(", ")})`;
  // An id that is there already is a repeat, which changes nothing.
  return connection.run(`INSERT INTO ${qualified(schema, "outbox_message")} (${columns.join(", ")}) VALUES ` +
    rows.map(() => one).join(", ") + (ownIds ? " ON CONFLICT (id) DO NOTHING" : ""),
  rows.flatMap((row) => columns.map((name) => argument(row, name))));
}
