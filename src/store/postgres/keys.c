/* SPDX-License-Identifier: Apache-2.0 */

/* Keys that wait: outbox_blocked_keys(), sql/postgres/keys.sql. */
#include "base/cleanup.h"
#include "store/postgres/look.h"
#include "store/postgres/ops.h"
#include "store/store.h"

#define AFTER_DELIVERY 16 /* the first column behind LOOK_COLUMNS */

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the keys asked for");
}

static int make_page(const PGresult *result, size_t limit, struct outbox_arena *arena,
		     struct outbox_keys_page *page, struct outbox_error *err)
{
	size_t found = (size_t)PQntuples(result), count = found < limit ? found : limit;
	int r = OUTBOX_OK;

	page->rows = outbox_arena_alloc(arena, (count ? count : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	for (int i = 0; (size_t)i < count && r == OUTBOX_OK; i++) {
		r = pg_look_load(result, i, 0, arena, &page->rows[i].front, err);
		page->rows[i].since = pg_time(result, i, AFTER_DELIVERY);
		page->rows[i].parked = pg_int(result, i, AFTER_DELIVERY + 1);
	}
	if (r != OUTBOX_OK)
		return r;
	page->count = count;
	if (found > limit) {
		page->cursor = store_cursor_after(&page->rows[count - 1].front, arena);
		if (!page->cursor)
			return no_room(err);
	}
	return OUTBOX_OK;
}

int pg_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
	    struct outbox_arena *arena, struct outbox_keys_page *ret_page, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	size_t limit = store_page_limit(filter->limit);
	char after_target[OUTBOX_TARGET_NAME_MAX + 1] = "";
	struct pg_store *s = pg_of(store);
	struct outbox_keys_page page = { 0 };
	int64_t after_seq = 0;
	int r = OUTBOX_OK;

	if (filter->cursor)
		r = store_cursor_parse(filter->cursor, &after_seq, after_target, err);
	if (r == OUTBOX_OK)
		r = pg_op(s, PG_READ,
			  "SELECT " LOOK_COLUMNS
			  ", since, parked FROM @outbox_blocked_keys($1, $2, $3, $4, $5,"
			  " @outbox_now($6))",
			  ARGS(ARG_TEXT(filter->target), ARG_INT8(after_seq),
			       ARG_TEXT(after_target), ARG_INT8((int64_t)limit + 1),
			       ARG_INT8(OUTBOX_COUNT_CAP + 1), pg_now(s)),
			  &result, err);
	if (r == OUTBOX_OK)
		r = make_page(result, limit, arena, &page, err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}
