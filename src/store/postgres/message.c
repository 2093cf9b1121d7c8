/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/message.h"

#include "base/cleanup.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <string.h>

/* Where a row is read from and to. */
struct loading {
	const struct pg_row *row;
	struct outbox_arena *arena;
	struct outbox_claimed *m;
};

static int no_memory(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the messages asked for");
}

static int load_texts(const struct loading *l, struct outbox_error *err)
{
	struct outbox_message *m = &l->m->message;
	const struct {
		int column;
		const char **text;
	} texts[] = {
		{ COL_ID, &m->id },
		{ COL_TYPE, &m->type },
		{ COL_KEY, &m->key },
		{ COL_CONTENT_TYPE, &m->content_type },
		{ COL_SOURCE, &m->source },
		{ COL_SUBJECT, &m->subject },
		{ COL_TOPIC, &m->topic },
		{ COL_CORRELATION_ID, &m->correlation_id },
		{ COL_CAUSATION_ID, &m->causation_id },
		{ COL_TRACEPARENT, &m->traceparent },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (pg_text(l->row->result, l->row->row, l->row->first + texts[i].column, l->arena,
			    texts[i].text, NULL) != OUTBOX_OK)
			return no_memory(err);
	}
	return OUTBOX_OK;
}

static int load_headers(const struct loading *l, struct outbox_error *err)
{
	const char *json = PQgetvalue(l->row->result, l->row->row, l->row->first + COL_HEADERS);
	struct outbox_error why = OUTBOX_ERROR_INIT;
	struct outbox_header *headers = NULL;
	struct outbox_claimed *m = l->m;
	int r;

	if (PQgetisnull(l->row->result, l->row->row, l->row->first + COL_HEADERS))
		return OUTBOX_OK;
	r = headers_parse(json, l->arena, &headers, &m->message.n_headers, &why);
	if (r == OUTBOX_ENOMEM)
		return no_memory(err);
	if (r != OUTBOX_OK) {
		m->message.n_headers = 0;
		m->malformed = outbox_arena_text(l->arena, why.message);
		return m->malformed ? OUTBOX_OK : no_memory(err);
	}
	m->message.headers = headers;
	return OUTBOX_OK;
}

static int load_payload(const struct loading *l, bool alone, struct outbox_error *err)
{
	bool bytes = PQgetisnull(l->row->result, l->row->row, l->row->first + COL_PAYLOAD);
	int column = l->row->first + (bytes ? COL_PAYLOAD_BIN : COL_PAYLOAD);
	size_t size = (size_t)PQgetlength(l->row->result, l->row->row, column);
	void *copy =
		outbox_arena_copy(l->arena, PQgetvalue(l->row->result, l->row->row, column), size);

	if (!copy && !alone)
		return no_memory(err);
	if (!copy) {
		l->m->malformed = "its payload is larger than the relay's memory for one batch";
		return OUTBOX_OK;
	}
	l->m->message.data = copy;
	l->m->message.size = size;
	if (!l->m->message.content_type)
		l->m->message.content_type = bytes ? DEFAULT_BYTES_TYPE : DEFAULT_CONTENT_TYPE;
	return OUTBOX_OK;
}

/* A time that is none: PostgreSQL's infinities. One that is never due waits, one that never expires does not. */
static const char *endless(const struct pg_row *at)
{
	static const struct {
		int column;
		int64_t value;
		const char *why;
	} wrong[] = {
		{ COL_CREATED_AT, INT64_MIN, "created_at: is -infinity; give a time or leave it out" },
		{ COL_CREATED_AT, INT64_MAX, "created_at: is infinity; give a time or leave it out" },
		{ COL_EVENT_TIME, INT64_MIN, "event_time: is -infinity; give a time or leave it out" },
		{ COL_EVENT_TIME, INT64_MAX, "event_time: is infinity; give a time or leave it out" },
		{ COL_EXPIRES_AT, INT64_MIN, "expires_at: is -infinity; give a time or leave it out" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		int column = at->first + wrong[i].column;

		if (!PQgetisnull(at->result, at->row, column) &&
		    pg_int(at->result, at->row, column) == wrong[i].value)
			return wrong[i].why;
	}
	return NULL;
}

int pg_message_load(const struct pg_row *at, struct outbox_arena *arena, const char *source,
		    bool alone, struct outbox_claimed *ret_message, struct outbox_error *err)
{
	const PGresult *result = at->result;
	int row = at->row, first = at->first;
	struct outbox_claimed m = { .seq = pg_int(result, row, first + COL_SEQ),
				    .created_at = pg_time(result, row, first + COL_CREATED_AT),
				    .message = OUTBOX_MESSAGE_INIT };
	struct loading l = { .row = at, .arena = arena, .m = &m };
	int r;

	r = load_texts(&l, err);
	if (r == OUTBOX_OK)
		r = load_headers(&l, err);
	if (r == OUTBOX_OK)
		r = load_payload(&l, alone, err);
	if (r != OUTBOX_OK)
		return r;
	m.message.kind = kind_parse(pg_peek(result, row, first + COL_KIND), OUTBOX_KIND_EVENT);
	m.message.published = pg_bool(result, row, first + COL_PUBLISHED);
	m.message.priority = (int)pg_int(result, row, first + COL_PRIORITY);
	m.message.event_time = pg_time(result, row, first + COL_EVENT_TIME);
	m.message.due_at = pg_time(result, row, first + COL_DUE_AT);
	m.message.expires_at = pg_time(result, row, first + COL_EXPIRES_AT);
	if (!m.malformed)
		m.malformed = endless(at);
	if (!m.message.source)
		m.message.source = source;
	if (!m.message.type) {
		m.message.type = "unknown";
		m.malformed = "its message is gone from the log";
	}
	*ret_message = m;
	return OUTBOX_OK;
}
