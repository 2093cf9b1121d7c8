/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_MESSAGE_H
#define STORE_SQLITE_MESSAGE_H

/* Rows of the log as messages. */

#include "store/sqlite/db.h"
#include "store/sqlite/route.h"

/* The columns of SQL_LOG_ROWS and of every other statement that reads messages. */
enum message_column {
	COL_SEQ = 0,
	COL_ID,
	COL_TYPE,
	COL_KEY,
	COL_KIND,
	COL_PUBLISHED,
	COL_PRIORITY,
	COL_CREATED_AT, /* statements that only look end here */
	COL_EVENT_TIME,
	COL_DUE_AT,
	COL_EXPIRES_AT,
	COL_CONTENT_TYPE,
	COL_SOURCE,
	COL_SUBJECT,
	COL_TOPIC,
	COL_CORRELATION_ID,
	COL_CAUSATION_ID,
	COL_TRACEPARENT,
	COL_HEADERS,
	COL_PAYLOAD,
	COL_PAYLOAD_BIN
};

/* The row that sql finds for an id; ENOTFOUND when there is none. */
int message_find(struct sqlite_store *store, enum sqlite_statement sql, const char *id,
		 sqlite3_stmt **ret_row, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The row's lane, when a target has this many. *r becomes ENOMEM when there is no memory to read it. */
int message_lane(sqlite3_stmt *row, int lanes, int *r, struct outbox_error *err);

/* *r as above. */
bool message_routed(sqlite3_stmt *row, const struct sqlite_route *route, int *r,
		    struct outbox_error *err);

/* Only what the route wants of headers; it must ask for some. */
bool message_headers_routed(int64_t seq, const struct sqlite_route *route, int *r,
			    struct outbox_error *err);

/* What it costs of a budget for bytes, without loading it: payload and headers. */
size_t message_size(sqlite3_stmt *row);

/*
 * The whole message, in the arena, defaults filled in. source is the default one, from the same arena.
 * A row that is not a valid message comes with `malformed`. ENOMEM when the arena is full; with `alone` a
 * payload that does not fit makes the message malformed instead: or it would stop its lane for ever.
 */
int message_load(sqlite3_stmt *row, struct outbox_arena *arena, const char *source, bool alone,
		 struct outbox_claimed *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Only what decides and tells: seq, id, type, key, times. For messages that are not sent now. */
int message_load_head(sqlite3_stmt *row, struct outbox_arena *arena,
		      struct outbox_claimed *ret_message, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
