// SPDX-License-Identifier: Apache-2.0
// Compiled, not run: the types that a caller sees.
import { InvalidMessage, accept, handling, once, publish, publishAll, published, verify } from "outbox-client";
import type { KnexTransaction, PostgresConnection, SqliteConnection } from "outbox-client";
import type { Knex } from "knex";

declare const db: SqliteConnection, client: PostgresConnection, trx: Knex.Transaction;
const id: string = publish(db, { type: "order.placed", key: "42", data: { id: 42 }, dueAt: new Date() });
const later: Promise<string> = publish(client, { type: "order.placed", payloadBin: new Uint8Array(1) }, { schema: "outbox" });
const ids: Promise<string[]> = publishAll(trx, [{ type: "order.placed", payload: "{}" }]);
const first: boolean = accept(db, "billing", id);
const billing = once("billing", async (conn: KnexTransaction, event: { id: string; data: { id: number } }) => event.data.id);
const key: string | null | undefined = published(db, { type: "order.placed" })[0]?.key;
handling({ id: "e", correlationid: "c" }, () => [later, ids, first, billing, key]);
verify(["whsec_x"], new Headers(), "{}", { tolerance: 10 });
new InvalidMessage satisfies { field: string };
// @ts-expect-error: a kind that is none
publish(db, { type: "order.placed", data: 1, kind: "query" });
// @ts-expect-error: not known before the promise is
const wrong: string = publish(client, { type: "order.placed", data: 1 });
// @ts-expect-error: an event without an id
handling({}, () => wrong);
