/* SPDX-License-Identifier: Apache-2.0 */

/* Corrections: outbox_amend(), sql/postgres/amend.sql; cancelling and redaction. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "core/message.h"
#include "core/redacted_key.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/store.h"

int pg_amend(struct outbox_store *store, const struct outbox_amend *amend,
	     struct outbox_amended *ret_amended, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf headers = BUF_INIT(HEADERS_TEXT_MAX);
	const struct outbox_message *m = amend->message;
	const char *data = m->size ? m->data : "";
	struct pg_store *s = pg_of(store);
	_cleanup_(pg_clearp) PGresult *row = NULL;
	bool text = message_is_text(m);
	int r;

	r = headers_format(m->headers, m->n_headers, &headers, err);
	if (r == OUTBOX_OK)
		r = pg_op(s, PG_WRITE,
			  "SELECT * FROM @outbox_amend($1, convert_from($2, 'UTF8'), $3, $4, $5, $6, $7, $8, $9)",
			  ARGS(ARG_TEXT(amend->id), ARG_BYTES(text ? data : NULL, m->size),
			       ARG_BYTES(text ? NULL : data, m->size), ARG_TEXT(m->content_type),
			       ARG_TEXT(m->n_headers ? buf_str(&headers) : NULL),
			       ARG_TEXT(amend->actor), ARG_TEXT(amend->reason), pg_new_token(s),
			       pg_now(s)),
			  &row, err);
	if (r == OUTBOX_OK && ret_amended)
		*ret_amended = (struct outbox_amended){ .requeued = pg_int(row, 0, 0),
							.parked = pg_int(row, 0, 1) };
	return r;
}

static int read_amendment(const PGresult *result, int row, struct outbox_arena *arena,
			  struct outbox_amendment *was, struct outbox_error *err)
{
	const char **const texts[] = { &was->actor, &was->reason, &was->content_type, &was->headers };
	int r = OUTBOX_OK, column;

	was->at = pg_time(result, row, 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = pg_text(result, row, (int)i + 1, arena, texts[i], err);
	if (r != OUTBOX_OK)
		return r;
	was->bytes = PQgetisnull(result, row, 5);
	column = was->bytes ? 6 : 5;
	was->size = (size_t)PQgetlength(result, row, column);
	was->data = outbox_arena_copy(arena, PQgetvalue(result, row, column), was->size);
	return OUTBOX_OK;
}

int pg_amendments(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		  struct outbox_amendment **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct outbox_amendment *rows;
	size_t count;
	int r;

	r = pg_op(pg_of(store), PG_READ,
		  "SELECT at, actor, reason, content_type, headers, payload, payload_bin"
		  " FROM @outbox_read_amended($1)",
		  ARGS(ARG_TEXT(id)), &result, err);
	if (r != OUTBOX_OK)
		return r;
	count = (size_t)PQntuples(result);
	rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count && r == OUTBOX_OK; i++)
		r = read_amendment(result, (int)i, arena, &rows[i], err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}

/* ---- cancelling: outbox_cancel_as(), sql/postgres/cancel.sql, which is done when this commits ------- */

int pg_cancel(struct outbox_store *store, const struct outbox_cancel *cancel, bool *ret_done,
	      struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	int r = pg_op(s, PG_WRITE, "SELECT @outbox_cancel_as($1, $2, $3, $4)",
		      ARGS(ARG_TEXT(cancel->id), ARG_TEXT(cancel->reason), ARG_TEXT(cancel->actor),
			   pg_now(s)),
		      &row, err);

	if (r == OUTBOX_OK && ret_done)
		*ret_done = pg_bool(row, 0, 0);
	return r;
}

/* ---- redaction: outbox_redact(), sql/postgres/redact.sql. What its key becomes is worked out here - */

/* One of those that have the id; all but the last are there with partitions only. */
static int redact_next(struct pg_store *s, const struct outbox_redact *redact, bool *ret_done,
		       struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *found = NULL, *row = NULL;
	char key[REDACTED_KEY_MAX] = "";
	int r;

	/* a key never changes but here, where it changes to what it is again */
	r = pg_op(s, PG_READ, "SELECT m.key FROM @outbox_redact_next($1) m",
		  ARGS(ARG_TEXT(redact->id)), &found, err);
	if (r != OUTBOX_OK)
		return r;
	if (PQntuples(found) > 0 && !PQgetisnull(found, 0, 0))
		redacted_key(pg_peek(found, 0, 0), key);
	r = pg_op(s, PG_WRITE, "SELECT @outbox_redact($1, $2, $3, $4, $5)",
		  ARGS(ARG_TEXT(redact->id), ARG_TEXT(key), ARG_TEXT(redact->actor),
		       ARG_TEXT(redact->reason), pg_now(s)),
		  &row, err);
	if (r == OUTBOX_OK)
		*ret_done = PQgetisnull(row, 0, 0);
	return r;
}

int pg_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
	      struct outbox_error *err)
{
	bool done = true, any = false;
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && done) {
		r = redact_next(pg_of(store), redact, &done, err);
		any |= r == OUTBOX_OK && done;
	}
	if (r == OUTBOX_OK && ret_done)
		*ret_done = any;
	return r;
}
