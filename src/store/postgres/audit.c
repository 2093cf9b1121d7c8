/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 1000

static int read_entry(const PGresult *result, int row, struct outbox_arena *arena,
		      struct outbox_audit *entry, struct outbox_error *err)
{
	const char **const texts[] = { &entry->actor, &entry->action, &entry->target,
				       &entry->id,    &entry->reason, &entry->detail };
	int r = OUTBOX_OK;

	entry->number = pg_int(result, row, 0);
	entry->at = pg_time(result, row, 1);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = pg_text(result, row, (int)i + 2, arena, texts[i], err);
	return r;
}

int pg_audit(struct outbox_store *store, const char *id, size_t limit, struct outbox_arena *arena,
	     struct outbox_audit **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct outbox_audit *rows;
	size_t count;
	int r;

	if (limit == 0)
		limit = LIMIT_DEFAULT;
	if (limit > LIMIT_MAX)
		limit = LIMIT_MAX;
	r = pg_op(pg_of(store), PG_READ,
		  "SELECT number, at, actor, action, target, id, reason, detail"
		  " FROM @outbox_read_audit($1, $2) ORDER BY number DESC",
		  ARGS(ARG_TEXT(id), ARG_INT8((int64_t)limit)), &result, err);
	if (r != OUTBOX_OK)
		return r;
	count = (size_t)PQntuples(result);
	rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < count && r == OUTBOX_OK; i++)
		r = read_entry(result, (int)i, arena, &rows[i], err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}

int pg_note(struct outbox_store *store, const struct outbox_audit *row, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct pg_store *s = pg_of(store);

	return pg_op(s, PG_WRITE,
		     "INSERT INTO @outbox_audit (at, actor, action, target, reason, detail)"
		     " VALUES (@outbox_now($1), $2, $3, $4, $5, $6)",
		     ARGS(pg_now(s), ARG_TEXT(row->actor), ARG_TEXT(row->action),
			  ARG_TEXT(row->target), ARG_TEXT(row->reason), ARG_TEXT(row->detail)),
		     &result, err);
}
