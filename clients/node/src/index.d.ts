// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />

/** better-sqlite3's Database or node:sqlite's DatabaseSync: what they do is done when they return. */
export interface SqliteConnection {
  prepare(sql: string): { run(...args: any[]): unknown; all(...args: any[]): unknown[] };
  exec(sql: string): unknown;
}
/** A Client of pg (8.21 or newer), or one that a Pool has handed out. */
export interface PostgresConnection {
  query(sql: string, args?: any[]): Promise<{ rows: any[]; rowCount: number | null }>;
  getTransactionStatus(): string | null;
}
/** A transaction of Knex. */
export interface KnexTransaction {
  raw(sql: string, ...args: any[]): PromiseLike<any>;
  isTransaction?: boolean;
}
export type AsyncConnection = PostgresConnection | KnexTransaction;
export type Connection = SqliteConnection | AsyncConnection;
/** At once on SQLite's own drivers, else a promise. */
export type Result<C extends Connection, T> = C extends SqliteConnection ? T : Promise<T>;

/** Exactly one payload: `data` (a value, written as JSON), `payload` (text, as it is) or `payloadBin` (bytes). */
export interface Message {
  type: string;
  data?: unknown;
  payload?: string;
  payloadBin?: Uint8Array;
  key?: string | null;
  id?: string | null;
  contentType?: string | null;
  headers?: Record<string, string> | null;
  kind?: "event" | "command" | null;
  published?: boolean | null;
  priority?: number | null;
  /** A Date, or microseconds since 1970. */
  eventTime?: Date | bigint | null;
  dueAt?: Date | bigint | null;
  expiresAt?: Date | bigint | null;
  source?: string | null;
  subject?: string | null;
  topic?: string | null;
  correlationId?: string | null;
  causationId?: string | null;
  traceparent?: string | null;
}
/** A CloudEvent that is handled. */
export interface HandledEvent {
  id: string;
  correlationid?: string;
  traceparent?: string;
  [attribute: string]: any;
}
export interface Options {
  /** Where the outbox has a schema of its own. */
  schema?: string;
}

export class InvalidMessage extends TypeError {
  /** The column that is wrong. */
  field: string;
}
export class NoTransaction extends Error {}
export class InvalidSignature extends Error {}

export function publish<C extends Connection>(conn: C, message: Message, options?: Options): Result<C, string>;
export function publishAll<C extends Connection>(conn: C, messages: Message[], options?: Options): Result<C, string[]>;
export function accept<C extends Connection>(conn: C, consumer: string, id: string, options?: Options): Result<C, boolean>;
export function once<C extends Connection, E extends HandledEvent, T>(consumer: string, handler: (conn: C, event: E) => T,
  options?: Options): (conn: C, event: E) => Result<C, T | undefined>;
export function handling<T>(event: HandledEvent, act: () => T): T;
export function published<C extends Connection>(conn: C, filter?: Options & { type?: string; key?: string }):
  Result<C, Array<Message & { id: string }>>;
export function verify(keys: string | string[], headers: Headers | Record<string, string | string[] | undefined>,
  body: string | Uint8Array, options?: { tolerance?: number; now?: number }): void;
