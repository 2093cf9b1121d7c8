/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What was settled, in the order of the receipts. A receipt's delivered log rows are its range without
 * the rows that have a detour; the detours it wrote bear its number. A detour that was settled again
 * since then appears with its later receipt only.
 *
 * Cursor "A:S": every receipt up to number A is told, and of the next one everything up to seq S.
 */
#include "base/cleanup.h"
#include "base/text.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/select.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tailing {
	struct targets targets;
	struct selection sel; /* rows, sorted per receipt */
	struct target_info *target;
	int lane;
	int64_t n, from_seq, pos, delivered, number;
	outbox_time settled_at;
	const char *owner;
	int64_t after; /* cursor: receipts told ... */
	int64_t seq;   /* ... and rows of the next one */
};

static void tailing_deinit(struct tailing *w)
{
	select_deinit(&w->sel);
	targets_deinit(&w->targets);
}

static int parse(struct tailing *w, const char *cursor, struct outbox_error *err)
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

static int add(struct tailing *w, struct outbox_delivery *d, bool detour, struct outbox_error *err)
{
	d->owner = w->owner;
	d->last_status_at = w->settled_at;
	return select_add(&w->sel, d, detour, err);
}

static int add_delivered(struct tailing *w, size_t room, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = w->sel.targets->s;
	int64_t from = w->seq > w->from_seq ? w->seq : w->from_seq;
	bool row;
	int r;

	if (!w->delivered)
		return OUTBOX_OK;
	r = sqlite_query(s, SQL_LOOK_ROWS, ARGS(ARG_INT(from), ARG_INT(w->pos)), &q, err);
	while (r == OUTBOX_OK && room > 0) {
		struct outbox_delivery d;
		int64_t detour;

		r = sqlite_step(s, q, &row, err);
		if (r != OUTBOX_OK || !row)
			break;
		r = delivery_of_row(w->sel.targets, w->target, q, &d, err);
		if (r != OUTBOX_OK || d.lane != w->lane || d.state != OUTBOX_DELIVERED)
			continue;
		r = sqlite_number(s, SQL_DETOUR_EXISTS, ARGS(ARG_TEXT(d.target), ARG_INT(d.seq)), 0,
				  &detour, err);
		if (r != OUTBOX_OK || detour)
			continue;
		r = add(w, &d, false, err);
		room--;
	}
	return r;
}

static int add_detours(struct tailing *w, size_t room, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = w->sel.targets->s;
	bool row;
	int r;

	r = sqlite_query(s, SQL_TAIL_DETOURS,
			 ARGS(ARG_TEXT(w->target->name), ARG_INT(w->lane), ARG_INT(w->n),
			      ARG_INT(w->seq)),
			 &q, err);
	while (r == OUTBOX_OK && room > 0) {
		struct outbox_delivery d;

		r = sqlite_step(s, q, &row, err);
		if (r != OUTBOX_OK || !row)
			break;
		r = delivery_of_detour(w->target, q, &d, err);
		if (r == OUTBOX_OK && d.state == OUTBOX_SENDING) {
			/* Claimed again meanwhile; this receipt left it pending. */
			d.state = OUTBOX_PENDING;
			d.why = outbox_why_parse(sqlite_peek(q, 6, &r, err));
		}
		if (r == OUTBOX_OK)
			r = add(w, &d, true, err);
		room--;
	}
	return r;
}

static struct target_info *find_target(struct targets *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++) {
		if (strcmp(t->list[i].name, name) == 0)
			return &t->list[i];
	}
	return NULL;
}

static int read_receipt(struct tailing *w, sqlite3_stmt *q, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	w->number = sqlite3_column_int64(q, 0);
	w->target = find_target(w->sel.targets, sqlite_peek(q, 1, &r, err));
	w->lane = sqlite3_column_int(q, 2);
	w->n = sqlite3_column_int64(q, 3);
	w->settled_at = sqlite3_column_int64(q, 4);
	w->from_seq = sqlite3_column_int64(q, 5);
	w->pos = sqlite3_column_int64(q, 6);
	w->delivered = sqlite3_column_int64(q, 7);
	return r == OUTBOX_OK ? sqlite_text(q, 8, w->sel.arena, &w->owner, err) : r;
}

/* The receipt's rows behind what is there already, cut to the limit. */
static int tell_receipt(struct tailing *w, struct outbox_error *err)
{
	size_t had = w->sel.count, room = w->sel.limit - had + 1;
	struct selection part = w->sel;
	int r;

	r = add_delivered(w, room, err);
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

static int tell(struct tailing *w, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = w->sel.targets->s;
	bool row;
	int r;

	r = sqlite_query(s, SQL_TAIL_RECEIPTS, ARGS(ARG_INT(w->after)), &q, err);
	while (r == OUTBOX_OK && w->sel.count < w->sel.limit) {
		r = sqlite_step(s, q, &row, err);
		if (r != OUTBOX_OK || !row)
			break;
		r = read_receipt(w, q, err);
		if (r == OUTBOX_OK && w->target)
			r = tell_receipt(w, err);
	}
	return r;
}

static int make_page(const struct tailing *w, struct outbox_page *page, struct outbox_error *err)
{
	struct outbox_arena *arena = w->sel.arena;
	char cursor[64];

	snprintf(cursor, sizeof(cursor), "%lld:%lld", (long long)w->after, (long long)w->seq);
	page->cursor = outbox_arena_text(arena, cursor);
	page->count = w->sel.count;
	page->rows =
		outbox_arena_alloc(arena, (page->count ? page->count : 1) * sizeof(*page->rows));
	if (!page->cursor || !page->rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < page->count; i++)
		page->rows[i] = w->sel.rows[i].d;
	return OUTBOX_OK;
}

static int tail_in(struct sqlite_store *s, const char *cursor, struct tailing *w,
		   struct outbox_page *page, struct outbox_error *err)
{
	int r;

	w->sel.targets = &w->targets;
	r = targets_load(s, NULL, &w->targets, err);
	if (r == OUTBOX_OK)
		r = cursor ? tell(w, err) : sqlite_number(s, SQL_TAIL_NOW, NULL, 0, &w->after, err);
	if (r == OUTBOX_OK)
		r = make_page(w, page, err);
	return r;
}

int sqlite_tail(struct outbox_store *store, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	_cleanup_(tailing_deinit) struct tailing w = { .sel = { .arena = arena,
								.limit = store_page_limit(limit) } };
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_page page = { 0 };
	int r = OUTBOX_OK;

	if (cursor)
		r = parse(&w, cursor, err);
	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, tail_in(s, cursor, &w, &page, err), err);
	if (r == OUTBOX_OK)
		*ret_page = page;
	return r;
}
