/* SPDX-License-Identifier: Apache-2.0 */

/* What operators read page by page. */
#include "base/cleanup.h"
#include "base/text.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/select.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory for the rows asked for");
}

/* Up to the selection's limit; without the cursor. */
static int make_page(const struct selection *sel, struct outbox_page *page, struct outbox_error *err)
{
	size_t count = sel->count < sel->limit ? sel->count : sel->limit;

	page->rows = outbox_arena_alloc(sel->arena, (count ? count : 1) * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	for (size_t i = 0; i < count; i++)
		page->rows[i] = sel->rows[i].d;
	page->count = count;
	return OUTBOX_OK;
}

static int list_in(struct sqlite_store *s, const struct outbox_filter *filter,
		   struct outbox_arena *arena, struct outbox_page *page, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	_cleanup_(select_deinit) struct selection sel = {
		.targets = &targets,
		.filter = filter,
		.arena = arena,
		.states = SELECT_ALL_STATES,
		.limit = filter->limit,
	};
	int r = targets_load(s, filter->target, &targets, err);

	if (r == OUTBOX_OK)
		r = select_deliveries(&sel, err);
	if (r == OUTBOX_OK)
		r = make_page(&sel, page, err);
	if (r == OUTBOX_OK && sel.count > sel.limit) {
		page->cursor = store_cursor_after(&page->rows[page->count - 1], arena);
		if (!page->cursor)
			r = no_room(err);
	}
	return r;
}

int sqlite_list(struct outbox_store *store, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_page page = { 0 };
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, list_in(s, filter, arena, &page, err), err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

static int get_in(struct sqlite_store *s, const char *id, struct outbox_arena *arena,
		  struct outbox_claimed *message, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *source;
	int r = message_find(s, SQL_LOOK_MESSAGE, id, &q, err);

	if (r != OUTBOX_OK)
		return r;
	source = outbox_arena_text(arena, s->source);
	return source ? message_load(q, arena, source, false, message, err) : no_room(err);
}

int sqlite_get(struct outbox_store *store, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_claimed message;
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, get_in(s, id, arena, &message, err), err);
	if (r == OUTBOX_OK)
		*ret_message = message;
	return r;
}

/* ---- keys that wait ----------------------------------------------------------------------------- */

/*
 * What is in the way of a key is the first of its deliveries that is not finished; those
 * are found by the index of their state, the oldest first, so that a million of parked or failed ones
 * behind them are not read.
 */

#define AFTER_DELIVERY 15 /* the first column behind DETOUR_COLUMNS */

struct key_search {
	struct targets *targets;
	struct outbox_arena *arena;
	size_t limit;
	int64_t after_seq;
	char after_target[OUTBOX_TARGET_NAME_MAX + 1];
	struct outbox_blocked_key *rows;
	size_t count, capacity;
};

static int add_key(struct key_search *l, const struct target_info *target, sqlite3_stmt *q,
		   struct outbox_error *err)
{
	struct outbox_blocked_key *row;
	int r = sqlite_grow(&l->rows, &l->capacity, l->count, sizeof(*row), err);

	if (r != OUTBOX_OK)
		return r;
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

static int find_blocked(struct key_search *l, const struct target_info *target, int state,
			struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = l->targets->s;
	/* of the seq where the page before ended, only targets behind that one's name are left */
	int64_t behind = l->after_seq - (strcmp(target->name, l->after_target) > 0);
	int r = sqlite_query(s, SQL_KEYS_BLOCKED,
			     ARGS(ARG_TEXT(target->name), ARG_TEXT(outbox_state_name(state)),
				  ARG_INT(behind), ARG_INT(l->targets->now), ARG_INT(target->hold),
				  ARG_INT((int64_t)l->limit + 1), ARG_INT(OUTBOX_COUNT_CAP + 1)),
			     &q, err);

	while (sqlite_next(q, &r, err))
		r = add_key(l, target, q, err);
	return r;
}

static int compare_keys(const void *a, const void *b)
{
	const struct outbox_delivery *x = &((const struct outbox_blocked_key *)a)->front,
				     *y = &((const struct outbox_blocked_key *)b)->front;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return strcmp(x->target, y->target);
}

static int make_keys_page(struct key_search *l, struct outbox_keys_page *page,
			  struct outbox_error *err)
{
	size_t count = l->count < l->limit ? l->count : l->limit;

	if (l->count)
		qsort(l->rows, l->count, sizeof(*l->rows), compare_keys);
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
		   struct key_search *l, struct outbox_keys_page *page, struct outbox_error *err)
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
		r = find_blocked(l, target, OUTBOX_PENDING, err);
		if (r == OUTBOX_OK)
			r = find_blocked(l, target, OUTBOX_SENDING, err);
		if (r == OUTBOX_OK && target->hold)
			r = find_blocked(l, target, OUTBOX_FAILED, err);
	}
	return r == OUTBOX_OK ? make_keys_page(l, page, err) : r;
}

int sqlite_keys(struct outbox_store *store, const struct outbox_keys_filter *filter,
		struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets targets = { 0 };
	struct key_search l = { .targets = &targets, .arena = arena, .limit = filter->limit };
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_keys_page page = { 0 };
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, keys_in(s, filter, &l, &page, err), err);
	free(l.rows);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}

/* ---- messages by their key --------------------------------------------------------------------- */

static bool is_wanted(const struct outbox_key_search *search, const char *key)
{
	return key &&
	       (search->key ? strcmp(search->key, key) == 0 : glob_match(search->key_like, key));
}

static int find_key_in(struct sqlite_store *s, const struct outbox_key_search *search,
		       struct outbox_arena *arena, struct outbox_key_found *found,
		       struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, SQL_FIND_KEY,
			     ARGS(ARG_INT(search->after_seq), ARG_INT((int64_t)search->limit)), &q,
			     err);

	found->ids = outbox_arena_alloc(arena, search->limit * sizeof(*found->ids));
	if (r == OUTBOX_OK && !found->ids)
		return no_room(err);
	while (sqlite_next(q, &r, err)) {
		found->looked++;
		found->last_seq = sqlite3_column_int64(q, 0);
		if (is_wanted(search, sqlite_look(q, 2, &r, err)) && r == OUTBOX_OK)
			r = sqlite_text(q, 1, arena, &found->ids[found->count++], err);
	}
	found->more = found->looked == search->limit;
	return r;
}

int sqlite_find_key(struct outbox_store *store, const struct outbox_key_search *search,
		    struct outbox_arena *arena, struct outbox_key_found *ret_found,
		    struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_key_found found = { 0 };
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, find_key_in(s, search, arena, &found, err), err);
	if (r == OUTBOX_OK)
		*ret_found = found;
	return r;
}

/* ---- tail --------------------------------------------------------------------------------------- */

/*
 * What was settled, in the order of the receipts. A receipt's delivered log rows are its range without
 * the rows that have a detour; the detours it wrote bear its number. A detour that was settled again
 * since then appears with its later receipt only.
 *
 * Cursor "A:S": every receipt up to number A is told, and of the next one everything up to seq S.
 */

struct tailing {
	struct targets targets;
	struct selection sel; /* rows, sorted per receipt */
	struct target_info *target;
	int lane;
	struct receipt receipt;
	int64_t number;
	const char *owner;
	int64_t after; /* cursor: receipts told ... */
	int64_t seq;   /* ... and rows of the next one */
};

static void tailing_deinit(struct tailing *w)
{
	select_deinit(&w->sel);
	targets_deinit(&w->targets);
}

static int parse_cursor(struct tailing *w, const char *cursor, struct outbox_error *err)
{
	char *end = NULL, shown[80];

	if (cursor[0] >= '0' && cursor[0] <= '9') {
		w->after = strtoll(cursor, &end, 10);
		if (*end == ':' && end[1] >= '0' && end[1] <= '9') {
			w->seq = strtoll(end + 1, &end, 10);
			if (!*end)
				return OUTBOX_OK;
		}
	}
	return outbox_fail(err, OUTBOX_EINVAL,
			   "cursor: \"%s\" does not come from a tail of this store; leave it out",
			   text_shown(shown, sizeof(shown), cursor));
}

static int add_row(struct tailing *w, struct outbox_delivery *d, bool detour,
		   struct outbox_error *err)
{
	d->owner = w->owner;
	d->last_status_at = w->receipt.settled_at;
	return select_add(&w->sel, d, detour, err);
}

static int add_delivered(struct tailing *w, size_t room, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = w->sel.targets->s;
	int64_t from = w->seq > w->receipt.from_seq ? w->seq : w->receipt.from_seq;
	int r;

	if (!w->receipt.counts.delivered)
		return OUTBOX_OK;
	r = sqlite_query(s, SQL_LOOK_ROWS, ARGS(ARG_INT(from), ARG_INT(w->receipt.pos)), &q, err);
	while (room > 0 && sqlite_next(q, &r, err)) {
		struct outbox_delivery d;
		int64_t detour;

		r = delivery_of_row(w->sel.targets, w->target, q, &d, err);
		if (r != OUTBOX_OK || d.lane != w->lane || d.state != OUTBOX_DELIVERED)
			continue;
		r = sqlite_number(s, SQL_DETOUR_EXISTS, ARGS(ARG_TEXT(d.target), ARG_INT(d.seq)), 0,
				  &detour, err);
		if (r != OUTBOX_OK || detour)
			continue;
		r = add_row(w, &d, false, err);
		room--;
	}
	return r;
}

static int add_detours(struct tailing *w, size_t room, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = w->sel.targets->s;
	int r = sqlite_query(s, SQL_TAIL_DETOURS,
			     ARGS(ARG_TEXT(w->target->name), ARG_INT(w->lane),
				  ARG_INT(w->receipt.n), ARG_INT(w->seq)),
			     &q, err);

	while (room > 0 && sqlite_next(q, &r, err)) {
		struct outbox_delivery d;

		r = delivery_of_detour(w->target, q, &d, err);
		if (r == OUTBOX_OK && d.state == OUTBOX_SENDING) {
			/* Claimed again meanwhile; this receipt left it pending. */
			d.state = OUTBOX_PENDING;
			d.why = outbox_why_parse(sqlite_peek(q, 6, &r, err));
		}
		if (r == OUTBOX_OK)
			r = add_row(w, &d, true, err);
		room--;
	}
	return r;
}

static int read_receipt(struct tailing *w, sqlite3_stmt *q, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	receipt_read(q, &w->receipt);
	w->number = sqlite3_column_int64(q, RECEIPT_FIELDS);
	w->target = targets_find(w->sel.targets, sqlite_peek(q, RECEIPT_FIELDS + 1, &r, err));
	w->lane = sqlite3_column_int(q, RECEIPT_FIELDS + 2);
	return r == OUTBOX_OK ? sqlite_text(q, RECEIPT_FIELDS + 3, w->sel.arena, &w->owner, err) : r;
}

/* The receipt's rows behind what is there already, cut to the limit. */
static int add_receipt(struct tailing *w, struct outbox_error *err)
{
	size_t had = w->sel.count, room = w->sel.limit - had + 1;
	struct selection part = w->sel;
	int r = add_delivered(w, room, err);

	if (r == OUTBOX_OK)
		r = add_detours(w, room, err);
	if (r != OUTBOX_OK)
		return r;
	if (w->sel.count > had) {
		part.rows = w->sel.rows + had;
		part.count = w->sel.count - had;
		select_sort(&part);
	}
	if (w->sel.count > w->sel.limit) {
		w->sel.count = w->sel.limit;
		w->seq = w->sel.rows[w->sel.limit - 1].d.seq;
	} else {
		w->after = w->number;
		w->seq = 0;
	}
	return OUTBOX_OK;
}

static int read_receipts(struct tailing *w, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = w->sel.targets->s;
	int r = sqlite_query(s, SQL_TAIL_RECEIPTS, ARGS(ARG_INT(w->after)), &q, err);

	while (w->sel.count < w->sel.limit && sqlite_next(q, &r, err)) {
		r = read_receipt(w, q, err);
		if (r == OUTBOX_OK && w->target)
			r = add_receipt(w, err);
	}
	return r;
}

static int make_tail_page(const struct tailing *w, struct outbox_page *page, struct outbox_error *err)
{
	char cursor[64];

	snprintf(cursor, sizeof(cursor), "%lld:%lld", (long long)w->after, (long long)w->seq);
	page->cursor = outbox_arena_text(w->sel.arena, cursor);
	return page->cursor ? make_page(&w->sel, page, err) : no_room(err);
}

static int tail_in(struct sqlite_store *s, const char *cursor, struct tailing *w,
		   struct outbox_page *page, struct outbox_error *err)
{
	int r;

	w->sel.targets = &w->targets;
	r = targets_load(s, NULL, &w->targets, err);
	if (r == OUTBOX_OK)
		r = cursor ? read_receipts(w, err)
			   : sqlite_number(s, SQL_TAIL_NOW, NULL, 0, &w->after, err);
	return r ? r : make_tail_page(w, page, err);
}

int sqlite_tail(struct outbox_store *store, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	_cleanup_(tailing_deinit) struct tailing w = { .sel = { .arena = arena, .limit = limit } };
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_page page = { 0 };
	int r = OUTBOX_OK;

	if (cursor)
		r = parse_cursor(&w, cursor, err);
	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, tail_in(s, cursor, &w, &page, err), err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}
