/* SPDX-License-Identifier: Apache-2.0 */

/* PostgreSQL takes a message of 1 GB and copies its parts a few times. */
#include "store/postgres/insert.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "core/message.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

#include <stdlib.h>
#include <string.h>

#define PAYLOADS_MAX ((size_t)256 << 20)

/* In the order of the function's parameters. */
enum column {
	ID,
	TYPE,
	KEY,
	KIND,
	PUBLISHED,
	PRIORITY,
	EVENT_TIME,
	DUE_AT,
	EXPIRES_AT,
	CONTENT_TYPE,
	SOURCE,
	SUBJECT,
	TOPIC,
	CORRELATION_ID,
	CAUSATION_ID,
	TRACEPARENT,
	HEADERS,
	PAYLOAD,
	PAYLOAD_BIN,
	GIVEN, /* the id is the caller's */
	COLUMNS
};

static const struct {
	enum pg_type type;
	size_t size;
} elements[COLUMNS] = {
	[ID] = { PG_TEXTS, sizeof(char *) },
	[TYPE] = { PG_TEXTS, sizeof(char *) },
	[KEY] = { PG_TEXTS, sizeof(char *) },
	[KIND] = { PG_TEXTS, sizeof(char *) },
	[PUBLISHED] = { PG_BOOLS, sizeof(bool) },
	[PRIORITY] = { PG_INT4S, sizeof(int32_t) },
	[EVENT_TIME] = { PG_TIMES, sizeof(outbox_time) },
	[DUE_AT] = { PG_TIMES, sizeof(outbox_time) },
	[EXPIRES_AT] = { PG_TIMES, sizeof(outbox_time) },
	[CONTENT_TYPE] = { PG_TEXTS, sizeof(char *) },
	[SOURCE] = { PG_TEXTS, sizeof(char *) },
	[SUBJECT] = { PG_TEXTS, sizeof(char *) },
	[TOPIC] = { PG_TEXTS, sizeof(char *) },
	[CORRELATION_ID] = { PG_TEXTS, sizeof(char *) },
	[CAUSATION_ID] = { PG_TEXTS, sizeof(char *) },
	[TRACEPARENT] = { PG_TEXTS, sizeof(char *) },
	[HEADERS] = { PG_TEXTS, sizeof(char *) },
	[PAYLOAD] = { PG_SPANS, sizeof(struct pg_bytes) },
	[PAYLOAD_BIN] = { PG_BYTESS, sizeof(struct pg_bytes) },
	[GIVEN] = { PG_BOOLS, sizeof(bool) },
};

_Static_assert(COLUMNS == ARRAY_SIZE(((struct pg_insert *)0)->columns), "a place for each column");

int pg_insert_init(struct pg_insert *insert, size_t count, struct outbox_error *err)
{
	struct pg_insert made = { .count = count };

	for (size_t i = 0; i < COLUMNS; i++) {
		made.columns[i] = calloc(count ? count : 1, elements[i].size);
		if (!made.columns[i]) {
			pg_insert_deinit(&made);
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		}
	}
	*insert = made;
	return OUTBOX_OK;
}

void pg_insert_deinit(struct pg_insert *insert)
{
	char **headers = insert->columns[HEADERS];

	for (size_t i = 0; i < insert->count && headers; i++)
		free(headers[i]);
	for (size_t i = 0; i < COLUMNS; i++)
		free(insert->columns[i]);
	*insert = (struct pg_insert){ 0 };
}

static void set_text(struct pg_insert *insert, enum column column, size_t i, const char *text)
{
	((const char **)insert->columns[column])[i] = text;
}

static void set_time(struct pg_insert *insert, enum column column, size_t i, outbox_time time)
{
	((outbox_time *)insert->columns[column])[i] = time;
}

static int put_headers(struct pg_insert *insert, size_t i, const struct outbox_message *m,
		       struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(HEADERS_TEXT_MAX);
	char *copy;
	int r;

	if (!m->n_headers)
		return OUTBOX_OK;
	r = headers_format(m->headers, m->n_headers, &text, err);
	if (r != OUTBOX_OK)
		return r;
	copy = strdup(buf_str(&text));
	if (!copy)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	((char **)insert->columns[HEADERS])[i] = copy;
	return OUTBOX_OK;
}

int pg_insert_put(struct pg_insert *insert, size_t i, const struct outbox_message *m,
		  const char *id, struct outbox_error *err)
{
	enum column payload = message_is_text(m) ? PAYLOAD : PAYLOAD_BIN;

	set_text(insert, ID, i, id);
	((bool *)insert->columns[GIVEN])[i] = m->id != NULL;
	set_text(insert, TYPE, i, m->type);
	set_text(insert, KEY, i, m->key);
	set_text(insert, KIND, i, m->kind == OUTBOX_KIND_COMMAND ? "command" : NULL);
	((bool *)insert->columns[PUBLISHED])[i] = m->published != 0;
	((int32_t *)insert->columns[PRIORITY])[i] = m->priority;
	set_time(insert, EVENT_TIME, i, m->event_time);
	set_time(insert, DUE_AT, i, m->due_at);
	set_time(insert, EXPIRES_AT, i, m->expires_at);
	set_text(insert, CONTENT_TYPE, i, m->content_type);
	set_text(insert, SOURCE, i, m->source);
	set_text(insert, SUBJECT, i, m->subject);
	set_text(insert, TOPIC, i, m->topic);
	set_text(insert, CORRELATION_ID, i, m->correlation_id);
	set_text(insert, CAUSATION_ID, i, m->causation_id);
	set_text(insert, TRACEPARENT, i, m->traceparent);
	((struct pg_bytes *)insert->columns[payload])[i] =
		(struct pg_bytes){ .data = m->size ? m->data : "", .size = m->size };
	return put_headers(insert, i, m, err);
}

int pg_insert_finish(struct pg_insert *insert, bool lock_keys, struct pg_arg now,
		     struct outbox_error *err)
{
	const struct pg_bytes *texts = insert->columns[PAYLOAD],
			      *bins = insert->columns[PAYLOAD_BIN];
	size_t bytes = 0;

	for (size_t i = 0; i < insert->count && bytes <= PAYLOADS_MAX; i++)
		bytes += texts[i].size + bins[i].size;
	if (bytes > PAYLOADS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "publish: the payloads of one batch have more than %zu bytes together; "
				   "publish fewer at a time",
				   PAYLOADS_MAX);
	for (size_t i = 0; i < COLUMNS; i++)
		insert->args.values[i] =
			ARG_ARRAY(elements[i].type, insert->columns[i], insert->count);
	insert->args.values[COLUMNS] = ARG_BOOL(lock_keys);
	insert->args.values[COLUMNS + 1] = now;
	insert->args.count = COLUMNS + 2;
	return OUTBOX_OK;
}

/* ---- the store's own op ------------------------------------------------------------------------ */

static void free_ids(char (**ids)[37])
{
	free(*ids);
}

int pg_append(struct outbox_store *store, const struct outbox_message *messages, size_t n_messages,
	      int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	_cleanup_(pg_insert_deinit) struct pg_insert insert = { 0 };
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	_cleanup_(free_ids) char(*ids)[37] = NULL;
	struct pg_store *s = pg_of(store);
	int r;

	ids = calloc(n_messages ? n_messages : 1, sizeof(*ids));
	if (!ids)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = pg_insert_init(&insert, n_messages, err);
	for (size_t i = 0; i < n_messages && r == OUTBOX_OK; i++) {
		struct outbox_message m = message_view(&messages[i]);

		if (!m.id)
			outbox_uuid(s->clock, s->random, ids[i]);
		r = pg_insert_put(&insert, i, &m, m.id ? m.id : ids[i], err);
	}
	if (r == OUTBOX_OK)
		r = pg_insert_finish(&insert, false, pg_now(s), err);
	if (r == OUTBOX_OK)
		r = pg_op(s, PG_WRITE, PG_INSERT_SQL("@"), &insert.args, &rows, err);
	for (size_t i = 0; i < n_messages && r == OUTBOX_OK; i++) {
		if (ret_seqs)
			ret_seqs[i] = pg_int(rows, (int)i, PG_INSERTED_SEQ);
		if (ret_repeated)
			ret_repeated[i] = pg_bool(rows, (int)i, PG_INSERTED_REPEATED);
	}
	return r;
}
