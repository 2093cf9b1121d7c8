/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres/insert.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* PostgreSQL accepts at most 1 GB in one protocol message and copies parts of it several times: stay well below. */
#define PAYLOADS_MAX ((size_t)256 << 20)

/* In the order of the function's parameters; those that are not a field of the message as it is have no place. */
enum { ID = 0, KIND = 3, PUBLISHED = 4, HEADERS = 16, PAYLOAD, PAYLOAD_BIN, GIVEN, COLUMNS };

#define FIELD(name) .place = offsetof(struct outbox_message, name), .is_field = true

static const struct column {
	enum pg_type type;
	size_t size;   /* of an element */
	bool is_field; /* the message has it as it is, */
	size_t place;  /* here */
} columns[COLUMNS] = {
	[ID] = { PG_TEXTS, sizeof(char *) },
	{ PG_TEXTS, sizeof(char *), FIELD(type) },
	{ PG_TEXTS, sizeof(char *), FIELD(key) },
	[KIND] = { PG_TEXTS, sizeof(char *) },
	[PUBLISHED] = { PG_BOOLS, sizeof(bool) },
	{ PG_INT4S, sizeof(int32_t), FIELD(priority) },
	{ PG_TIMES, sizeof(outbox_time), FIELD(event_time) },
	{ PG_TIMES, sizeof(outbox_time), FIELD(due_at) },
	{ PG_TIMES, sizeof(outbox_time), FIELD(expires_at) },
	{ PG_TEXTS, sizeof(char *), FIELD(content_type) },
	{ PG_TEXTS, sizeof(char *), FIELD(source) },
	{ PG_TEXTS, sizeof(char *), FIELD(subject) },
	{ PG_TEXTS, sizeof(char *), FIELD(topic) },
	{ PG_TEXTS, sizeof(char *), FIELD(correlation_id) },
	{ PG_TEXTS, sizeof(char *), FIELD(causation_id) },
	{ PG_TEXTS, sizeof(char *), FIELD(traceparent) },
	[HEADERS] = { PG_TEXTS, sizeof(char *) },
	[PAYLOAD] = { PG_SPANS, sizeof(struct pg_bytes) },
	[PAYLOAD_BIN] = { PG_BYTESS, sizeof(struct pg_bytes) },
	[GIVEN] = { PG_BOOLS, sizeof(bool) }, /* the id is the caller's */
};

_Static_assert(COLUMNS == ARRAY_SIZE(((struct pg_insert *)0)->columns), "a place for each column");

int pg_insert_init(struct pg_insert *insert, size_t count, struct outbox_error *err)
{
	struct pg_insert made = { .count = count };

	for (size_t i = 0; i < COLUMNS; i++) {
		made.columns[i] = calloc(count ? count : 1, columns[i].size);
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
	int payload = message_is_text(m) ? PAYLOAD : PAYLOAD_BIN;

	for (size_t c = 0; c < COLUMNS; c++) {
		if (columns[c].is_field)
			memcpy((char *)insert->columns[c] + i * columns[c].size,
			       (const char *)m + columns[c].place, columns[c].size);
	}
	((const char **)insert->columns[ID])[i] = id;
	((bool *)insert->columns[GIVEN])[i] = m->id != NULL;
	((const char **)insert->columns[KIND])[i] =
		m->kind == OUTBOX_KIND_COMMAND ? kind_name(m->kind) : NULL;
	((bool *)insert->columns[PUBLISHED])[i] = m->published != 0;
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
			ARG_ARRAY(columns[i].type, insert->columns[i], insert->count);
	insert->args.values[COLUMNS] = ARG_BOOL(lock_keys);
	insert->args.values[COLUMNS + 1] = now;
	insert->args.count = COLUMNS + 2;
	return OUTBOX_OK;
}

/* ---- the store's own op ------------------------------------------------------------------------ */

int pg_append(struct outbox_store *store, const struct outbox_message *messages, size_t n_messages,
	      int64_t *ret_seqs, bool *ret_repeated, struct outbox_error *err)
{
	_cleanup_(pg_insert_deinit) struct pg_insert insert = { 0 };
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	_cleanup_(cleanup_free) char(*ids)[37] = NULL;
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
