// SPDX-License-Identifier: Apache-2.0
// Each message once for each consumer, although it is delivered at least once.
import { qualified, then, transactionOf } from "./connection.js";
import { handling } from "./message.js";

/** True the first time this consumer accepts this id. Commit it with what the handler writes, or roll both back. */
export function accept(conn, consumer, id, { schema } = {}) {
  const connection = transactionOf(conn);
  if (connection.sqlite) {
    return then(connection.run(`INSERT INTO ${qualified(schema, "outbox_inbox")} (consumer, id) VALUES (?, ?) ` +
      "ON CONFLICT DO NOTHING", [consumer, id]), ({ changes }) => Number(changes) === 1);
  }
  return then(connection.run(`SELECT ${qualified(schema, "outbox_inbox_accept")}(?, ?) AS first`, [consumer, id]),
    ({ rows }) => rows[0].first);
}

/**
 * Wraps handler(conn, event), of a CloudEvent: a repeat does not reach it, and undefined is returned. What it publishes
 * names the event as its cause.
 */
export function once(consumer, handler, options) {
  return (conn, event) => then(accept(conn, consumer, event.id, options),
    (first) => (first ? handling(event, () => handler(conn, event)) : undefined));
}
