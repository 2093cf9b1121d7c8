/* SPDX-License-Identifier: Apache-2.0 */

/* The history of failed attempts: sql/postgres/attempt.sql. settle_and_claim.c writes it. */
#include "base/cleanup.h"
#include "core/lifecycle.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

static int read_attempt(const PGresult *result, int row, struct outbox_arena *arena,
			struct outbox_attempt *attempt, struct outbox_error *err)
{
	int r = pg_text(result, row, 0, arena, &attempt->target, err);

	attempt->at = pg_time(result, row, 1);
	attempt->attempt = (int)pg_int(result, row, 2);
	attempt->verdict = verdict_parse(pg_peek(result, row, 3));
	attempt->native = (int)pg_int(result, row, 4);
	if (r == OUTBOX_OK)
		r = pg_text(result, row, 5, arena, &attempt->reason, err);
	return r == OUTBOX_OK ? pg_text(result, row, 6, arena, &attempt->answer, err) : r;
}

int pg_attempts(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct outbox_attempt *rows;
	size_t count;
	int r = pg_op(pg_of(store), PG_READ, "SELECT * FROM @outbox_read_attempts($1)",
		      ARGS(ARG_TEXT(id)), &result, err);

	if (r != OUTBOX_OK)
		return r;
	count = (size_t)PQntuples(result);
	rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count && r == OUTBOX_OK; i++)
		r = read_attempt(result, (int)i, arena, &rows[i], err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}
