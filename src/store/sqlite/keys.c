/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Keys that wait. What is in the way of a key is the first of its deliveries that is not finished; those
 * are found by the index of their state, the oldest first, so that a million of parked or failed ones
 * behind them are not read.
 */
#include "base/cleanup.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/select.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define AFTER_DELIVERY 15 /* the first column behind DETOUR_COLUMNS */

struct looking {
	struct targets *targets;
	struct outbox_arena *arena;
	size_t limit;
	int64_t after_seq;
	char after_target[OUTBOX_TARGET_NAME_MAX + 1];
	struct outbox_blocked_key *rows;
	size_t count, capacity;
};

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the keys asked for");
}

static int add(struct looking *l, const struct target_info *target, sqlite3_stmt *q,
	       struct outbox_error *err)
{
	struct outbox_blocked_key *row;
	int r;

	if (l->count == l->capacity) {
		size_t capacity = l->capacity ? l->capacity * 2 : 64;

		row = realloc(l->rows, capacity * sizeof(*row));
		if (!row)
			return no_room(err);
		l->rows = row;
		l->capacity = capacity;
	}
	row = &l->rows[l->count];
	r = delivery_of_detour(target, q, &row->front, err);
	if (r == OUTBOX_OK)
		r = delivery_keep(&row->front, l->arena, err);
	if (r != OUTBOX_OK)
		return r;
	row->since = sqlite3_column_int64(q, AFTER_DELIVERY);
	row->parked = sqlite3_column_int64(q, AFTER_DELIVERY + 1);
	l->count++;
	return OUTBOX_OK;
}

static int look_at(struct looking *l, const struct target_info *target, int state,
		   struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = l->targets->s;
	/* of the seq where the page before ended, only targets behind that one's name are left */
	int64_t behind = l->after_seq - (strcmp(target->name, l->after_target) > 0);
	bool row;
	int r;

	r = sqlite_query(s, SQL_KEYS_BLOCKED,
			 ARGS(ARG_TEXT(target->name), ARG_TEXT(outbox_state_name(state)),
			      ARG_INT(behind), ARG_INT(l->targets->now), ARG_INT(target->hold),
			      ARG_INT((int64_t)l->limit + 1), ARG_INT(OUTBOX_COUNT_CAP + 1)),
			 &q, err);
	while (r == OUTBOX_OK) {
		r = sqlite_step(s, q, &row, err);
		if (r != OUTBOX_OK || !row)
			break;
		r = add(l, target, q, err);
	}
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct outbox_delivery *x = &((const struct outbox_blocked_key *)a)->front,
				     *y = &((const struct outbox_blocked_key *)b)->front;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return strcmp(x->target, y->target);
}

static int make_page(struct looking *l, struct outbox_keys_page *page, struct outbox_error *err)
{
	size_t count = l->count < l->limit ? l->count : l->limit;

	if (l->count)
		qsort(l->rows, l->count, sizeof(*l->rows), compare);
	page->rows = outbox_arena_alloc(l->arena, (count ? count : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	if (count)
		memcpy(page->rows, l->rows, count * sizeof(*page->rows));
	page->count = count;
	if (l->count > l->limit) {
		page->cursor = store_cursor_after(&page->rows[count - 1].front, l->arena);
		if (!page->cursor)
			return no_room(err);
	}
	return OUTBOX_OK;
}

static int keys_in(struct sqlite_store *s, const struct outbox_keys_filter *filter,
		   struct looking *l, struct outbox_keys_page *page, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (filter->cursor)
		r = store_cursor_parse(filter->cursor, &l->after_seq, l->after_target, err);
	if (r == OUTBOX_OK)
		r = targets_load(s, filter->target, l->targets, err);
	for (size_t i = 0; i < l->targets->count && r == OUTBOX_OK; i++) {
		const struct target_info *target = &l->targets->list[i];

		if (target->unordered)
			continue;
		r = look_at(l, target, OUTBOX_PENDING, err);
		if (r == OUTBOX_OK)
			r = look_at(l, target, OUTBOX_SENDING, err);
		if (r == OUTBOX_OK && target->hold)
			r = look_at(l, target, OUTBOX_FAILED, err);
	}
	return r == OUTBOX_OK ? make_page(l, page, err) : r;
}

int sqlite_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
		struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	struct looking l = { .targets = &targets,
			     .arena = arena,
			     .limit = store_page_limit(filter->limit) };
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_keys_page page = { 0 };
	int r;

	r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, keys_in(s, filter, &l, &page, err), err);
	free(l.rows);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}
