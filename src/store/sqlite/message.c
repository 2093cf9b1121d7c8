/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/message.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "core/key_hash.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "core/routing.h"
#include "store/store.h"

#include <string.h>

int message_find(struct sqlite_store *store, enum sqlite_statement sql, const char *id,
		 sqlite3_stmt **ret_row, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(store, sql, ARGS(ARG_TEXT(id)), &q, err);

	if (!sqlite_next(q, &r, err))
		return r == OUTBOX_OK ? store_no_message(id, err) : r;
	*ret_row = q;
	q = NULL;
	return OUTBOX_OK;
}

int message_lane(sqlite3_stmt *row, int lanes, int *r, struct outbox_error *err)
{
	const char *text;

	if (lanes == 1)
		return 0;
	text = sqlite_look(row, COL_KEY, r, err);
	if (!text && *r == OUTBOX_OK)
		text = sqlite_look(row, COL_ID, r, err);
	return text ? key_hash(text) % lanes : 0;
}

static int kind_of(sqlite3_stmt *row, int *r, struct outbox_error *err)
{
	return kind_parse(sqlite_peek(row, COL_KIND, r, err), OUTBOX_KIND_EVENT);
}

/* By a statement of its own: few routes ask for headers, and rows that are only looked at do not have them. */
bool message_headers_routed(int64_t seq, const struct sqlite_route *route, int *r,
			    struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct outbox_header *headers = NULL;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	const char *json = NULL;
	size_t n = 0;
	int status = OUTBOX_OK;

	if (*r != OUTBOX_OK)
		return false;
	*r = sqlite_query(route->store, SQL_HEADERS_OF, ARGS(ARG_INT(seq)), &q, err);
	if (sqlite_next(q, r, err))
		json = sqlite_look(q, 0, r, err);
	if (*r == OUTBOX_OK)
		status = headers_parse(json, route->scratch, &headers, &n, &why);
	if (status == OUTBOX_ENOMEM)
		*r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	/* headers that are none fit nothing */
	if (*r != OUTBOX_OK || status != OUTBOX_OK)
		n = 0;
	status = route_match_headers(&route->route, headers, n);
	outbox_arena_reset(route->scratch);
	return *r == OUTBOX_OK && status;
}

bool message_routed(sqlite3_stmt *row, const struct sqlite_route *route, int *r,
		    struct outbox_error *err)
{
	if (route->everything)
		return true;
	return route_match_fields(&route->route, sqlite_peek(row, COL_TYPE, r, err),
				  kind_of(row, r, err),
				  sqlite3_column_int(row, COL_PUBLISHED) != 0) &&
	       band_plan_takes(&route->bands, sqlite3_column_int(row, COL_PRIORITY),
			       sqlite3_column_int64(row, COL_SEQ)) &&
	       (!route->route.n_headers ||
		message_headers_routed(sqlite3_column_int64(row, COL_SEQ), route, r, err));
}

static int payload_column(sqlite3_stmt *row)
{
	return sqlite3_column_type(row, COL_PAYLOAD) != SQLITE_NULL ? COL_PAYLOAD : COL_PAYLOAD_BIN;
}

size_t message_size(sqlite3_stmt *row)
{
	return (size_t)sqlite3_column_bytes(row, payload_column(row)) +
	       (size_t)sqlite3_column_bytes(row, COL_HEADERS);
}

static int no_memory(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the messages asked for");
}

/* One text column. A text that is not UTF-8 or has a NUL inside can only come from a careless CAST. */
static int load_text(sqlite3_stmt *row, int column, struct outbox_arena *arena,
		     struct outbox_claimed *m, const char **ret_text, struct outbox_error *err)
{
	int r = sqlite_text(row, column, arena, ret_text, err);
	size_t size;

	if (r != OUTBOX_OK || !*ret_text)
		return r;
	size = (size_t)sqlite3_column_bytes(row, column);
	if (memchr(*ret_text, '\0', size) || !utf8_valid(*ret_text, size))
		m->malformed = "a text of the stored row is not UTF-8, or has a NUL in it";
	return OUTBOX_OK;
}

int message_load_head(sqlite3_stmt *row, struct outbox_arena *arena,
		      struct outbox_claimed *ret_message, struct outbox_error *err)
{
	struct outbox_claimed m = { .seq = sqlite3_column_int64(row, COL_SEQ),
				    .created_at = sqlite3_column_int64(row, COL_CREATED_AT),
				    .message = OUTBOX_MESSAGE_INIT };
	int r = load_text(row, COL_ID, arena, &m, &m.message.id, err);

	if (r == OUTBOX_OK)
		r = load_text(row, COL_TYPE, arena, &m, &m.message.type, err);
	if (r == OUTBOX_OK)
		r = load_text(row, COL_KEY, arena, &m, &m.message.key, err);
	if (r == OUTBOX_OK)
		m.message.kind = kind_of(row, &r, err);
	if (r != OUTBOX_OK)
		return r;
	m.message.published = sqlite3_column_int(row, COL_PUBLISHED) != 0;
	m.message.event_time = m.created_at;
	*ret_message = m;
	return OUTBOX_OK;
}

static int load_texts(sqlite3_stmt *row, struct outbox_arena *arena, struct outbox_claimed *m,
		      struct outbox_error *err)
{
	const struct {
		int column;
		const char **text;
	} texts[] = {
		{ COL_CONTENT_TYPE, &m->message.content_type },
		{ COL_SOURCE, &m->message.source },
		{ COL_SUBJECT, &m->message.subject },
		{ COL_TOPIC, &m->message.topic },
		{ COL_CORRELATION_ID, &m->message.correlation_id },
		{ COL_CAUSATION_ID, &m->message.causation_id },
		{ COL_TRACEPARENT, &m->message.traceparent },
	};
	int r = OUTBOX_OK;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = load_text(row, texts[i].column, arena, m, texts[i].text, err);
	return r;
}

static int load_headers(sqlite3_stmt *row, struct outbox_arena *arena, struct outbox_claimed *m,
			struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct outbox_header *headers = NULL;
	const char *json;
	int r = load_text(row, COL_HEADERS, arena, m, &json, err);

	if (r != OUTBOX_OK || !json || m->malformed)
		return r;
	r = headers_parse(json, arena, &headers, &m->message.n_headers, &why);
	if (r == OUTBOX_ENOMEM)
		return no_memory(err);
	if (r != OUTBOX_OK) {
		m->message.n_headers = 0;
		m->malformed = outbox_arena_text(arena, why.message);
		return m->malformed ? OUTBOX_OK : no_memory(err);
	}
	m->message.headers = headers;
	return OUTBOX_OK;
}

static int load_payload(sqlite3_stmt *row, struct outbox_arena *arena, bool alone,
			struct outbox_claimed *m, struct outbox_error *err)
{
	int column = payload_column(row);
	const void *data = sqlite3_column_blob(row, column);
	size_t size = (size_t)sqlite3_column_bytes(row, column);
	void *copy;

	/* The blob of an empty payload is NULL; so is one that there is no memory for. */
	if (!data && (sqlite3_errcode(sqlite3_db_handle(row)) & 0xff) == SQLITE_NOMEM)
		return no_memory(err);
	copy = outbox_arena_copy(arena, data ? data : "", data ? size : 0);
	if (!copy && !alone)
		return no_memory(err);
	if (!copy) {
		m->malformed = "its payload is larger than the relay's memory for one batch";
		return OUTBOX_OK;
	}
	m->message.data = copy;
	m->message.size = data ? size : 0;
	return OUTBOX_OK;
}

int message_load(sqlite3_stmt *row, struct outbox_arena *arena, const char *source, bool alone,
		 struct outbox_claimed *ret_message, struct outbox_error *err)
{
	struct outbox_claimed m;
	int r = message_load_head(row, arena, &m, err);

	if (r == OUTBOX_OK)
		r = load_texts(row, arena, &m, err);
	if (r == OUTBOX_OK)
		r = load_headers(row, arena, &m, err);
	if (r == OUTBOX_OK)
		r = load_payload(row, arena, alone, &m, err);
	if (r != OUTBOX_OK)
		return r;
	m.message.priority = sqlite3_column_int(row, COL_PRIORITY);
	m.message.event_time = sqlite3_column_int64(row, COL_EVENT_TIME);
	m.message.due_at = sqlite3_column_int64(row, COL_DUE_AT);
	m.message.expires_at = sqlite3_column_int64(row, COL_EXPIRES_AT);
	if (!m.message.content_type)
		m.message.content_type = payload_column(row) == COL_PAYLOAD_BIN
						 ? DEFAULT_BYTES_TYPE
						 : DEFAULT_CONTENT_TYPE;
	if (!m.message.source)
		m.message.source = source;
	*ret_message = m;
	return OUTBOX_OK;
}
