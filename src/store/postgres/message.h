/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_MESSAGE_H
#define STORE_POSTGRES_MESSAGE_H

/* A message of the log out of a row that begins with these columns, in this order. */

#include "store/postgres/db.h"

enum pg_message_column {
	COL_SEQ,
	COL_ID,
	COL_TYPE,
	COL_KEY,
	COL_KIND,
	COL_PUBLISHED,
	COL_CREATED_AT,
	COL_EVENT_TIME,
	COL_DUE_AT,
	COL_EXPIRES_AT,
	COL_PRIORITY,
	COL_CONTENT_TYPE,
	COL_SOURCE,
	COL_SUBJECT,
	COL_TOPIC,
	COL_CORRELATION_ID,
	COL_CAUSATION_ID,
	COL_TRACEPARENT,
	COL_HEADERS,
	COL_PAYLOAD,
	COL_PAYLOAD_BIN,
	COL_MESSAGE_END
};

/* For a SELECT from outbox_message or outbox_kept AS m: what is small, and all. */
#define MESSAGE_ATTRIBUTES                                                                       \
	"m.seq, m.id, m.type, m.key, m.kind, m.published, m.created_at, m.event_time, m.due_at," \
	" m.expires_at, m.priority, m.content_type, m.source, m.subject, m.topic,"               \
	" m.correlation_id, m.causation_id, m.traceparent"
#define MESSAGE_COLUMNS MESSAGE_ATTRIBUTES ", m.headers, m.payload, m.payload_bin"

/* Which row of a result, and in which column its message begins. */
struct pg_row {
	const PGresult *result;
	int row, first;
};

/*
 * The row's message. What is wrong in it becomes `malformed`. source: the default, in the arena. alone: a payload
 * too large for the arena is malformed, not ENOMEM.
 */
int pg_message_load(const struct pg_row *at, struct outbox_arena *arena, const char *source,
		    bool alone, struct outbox_claimed *ret_message,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
