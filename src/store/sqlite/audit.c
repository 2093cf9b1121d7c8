/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/audit.h"

#include "base/cleanup.h"
#include "store/sqlite/ops.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 1000

int sqlite_audit_write(struct sqlite_store *s, const struct sqlite_audit_entry *e,
		       struct outbox_error *err)
{
	return sqlite_run(s, SQL_AUDIT_ADD,
			  ARGS(ARG_INT(e->at ? e->at : sqlite_now(s)), ARG_TEXT(e->actor),
			       ARG_TEXT(e->action), ARG_TEXT(e->target), ARG_TEXT(e->id),
			       ARG_TIME(e->seq), ARG_TEXT(e->reason), ARG_TEXT(e->detail)),
			  NULL, err);
}

static int read_entry(sqlite3_stmt *q, struct outbox_arena *arena, struct outbox_audit *entry,
		      struct outbox_error *err)
{
	const char **const texts[] = { &entry->actor, &entry->action, &entry->target,
				       &entry->id,    &entry->reason, &entry->detail };
	int r = OUTBOX_OK;

	entry->number = sqlite3_column_int64(q, 0);
	entry->at = sqlite3_column_int64(q, 1);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = sqlite_text(q, (int)i + 2, arena, texts[i], err);
	return r;
}

static int read_all(struct sqlite_store *s, const char *id, size_t limit, struct outbox_arena *arena,
		    struct outbox_audit *rows, size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	size_t n = 0;
	bool row;
	int r;

	r = sqlite_query(s, id ? SQL_AUDIT_OF : SQL_AUDIT_ALL,
			 ARGS(ARG_INT((int64_t)limit), ARG_TEXT(id)), &q, err);
	while (r == OUTBOX_OK) {
		r = sqlite_step(s, q, &row, err);
		if (r != OUTBOX_OK || !row || n == limit)
			break;
		r = read_entry(q, arena, &rows[n++], err);
	}
	if (r == OUTBOX_OK)
		*ret_count = n;
	return r;
}

int sqlite_audit(struct outbox_store *store, const char *id, size_t limit,
		 struct outbox_arena *arena, struct outbox_audit **ret_rows, size_t *ret_count,
		 struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_audit *rows;
	size_t count = 0;
	int r;

	if (limit == 0)
		limit = LIMIT_DEFAULT;
	if (limit > LIMIT_MAX)
		limit = LIMIT_MAX;
	rows = outbox_arena_alloc(arena, limit * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, read_all(s, id, limit, arena, rows, &count, err), err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}

int sqlite_audit_add(struct outbox_store *store, const struct outbox_audit *row,
		     struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct sqlite_audit_entry entry = { .actor = row->actor,
					    .action = row->action,
					    .target = row->target,
					    .reason = row->reason,
					    .detail = row->detail };
	int r = sqlite_enter(s, DB_WRITE, err);

	return r ? r : sqlite_end(s, sqlite_audit_write(s, &entry, err), err);
}
