// SPDX-License-Identifier: Apache-2.0
// For tests: what will be published if this transaction commits?
import { connectionOf, qualified, then } from "./connection.js";
import { FIELDS, isJson } from "./message.js";

/**
 * The messages of the open transaction, of this type and key, in order: their columns that are not NULL, by the fields'
 * names, and JSON as data. What is committed already, whoever published it, is not among them.
 */
export function published(conn, { type, key, schema } = {}) {
  const connection = connectionOf(conn);
  const names = Object.entries(FIELDS).filter(([field]) => field !== "data");
  const columns = names.map(([field, column]) => `${column} AS "${field}"`).join(", ");
  const ask = (condition, args) => then(connection.run(`SELECT ${columns} FROM ${qualified(schema, "outbox_message")} ` +
    `WHERE ${condition} ORDER BY seq`, args), ({ rows }) => rows.map(given).filter((row) =>
    (type === undefined || row.type === type) && (key === undefined || row.key === key)));
  if (!connection.sqlite) return ask("xid = pg_current_xact_id_if_assigned()", []);
  return then(lastCommitted(conn, connection, schema), (seq) => ask("seq > ?", [seq]));
}

function given(row) {
  const found = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
  if (found.payload && isJson(found.contentType)) found.data = JSON.parse(found.payload);
  if (found.headers) found.headers = JSON.parse(found.headers);
  return found;
}

/** Another connection sees what is committed, and nobody else can commit while this one has written something. */
function lastCommitted(conn, connection, schema = "main") {
  return then(connection.run("PRAGMA database_list", []), ({ rows }) => {
    const file = rows.find(({ name }) => name === schema)?.file;
    if (!file) throw new Error("published: a database in memory has no committed state to compare with; test with a file");
    const Database = connection.file ? conn.constructor : conn.client.driver;
    const other = new Database(file);
    try {
      return other.prepare("SELECT coalesce(max(seq), 0) AS seq FROM outbox_message").get().seq;
    } finally {
      other.close();
    }
  });
}
