/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two sources are read, each in seq order and each no further than the page: detours, by the index of
 * their state, and rows of the log that have none. Which stretch of the log matters follows from the
 * states that are wanted: nothing at all for failed ones, only what is behind the positions for
 * pending ones. So looking for trouble costs nothing in a log of millions.
 */
#include "store/sqlite/select.h"
#include "store/store.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define STATE(state) (1u << (state))
#define FROM_LOG (STATE(OUTBOX_PENDING) | STATE(OUTBOX_SENDING) | STATE(OUTBOX_DELIVERED))

void select_deinit(struct selection *selection)
{
	free(selection->rows);
	selection->rows = NULL;
}

int select_add(struct selection *sel, const struct outbox_delivery *delivery, bool detour,
	       struct outbox_error *err)
{
	struct selected *row;
	int r;

	if (sel->count_only) {
		if (!sel->count++ || delivery->created_at < sel->oldest)
			sel->oldest = delivery->created_at;
		return OUTBOX_OK;
	}
	r = sqlite_grow(&sel->rows, &sel->capacity, sel->count, sizeof(*row), err);
	if (r != OUTBOX_OK)
		return r;
	row = &sel->rows[sel->count++];
	*row = (struct selected){ .d = *delivery, .detour = detour };
	return delivery_keep(&row->d, sel->arena, err);
}

static int compare(const void *a, const void *b)
{
	const struct selected *x = a, *y = b;

	if (x->d.seq != y->d.seq)
		return x->d.seq < y->d.seq ? -1 : 1;
	return strcmp(x->d.target, y->d.target);
}

void select_sort(struct selection *sel)
{
	if (sel->count)
		qsort(sel->rows, sel->count, sizeof(*sel->rows), compare);
}

/* On the page, or already on one before? */
static bool is_new(const struct selection *sel, const struct outbox_delivery *d)
{
	if (d->seq != sel->after_seq)
		return d->seq > sel->after_seq;
	return strcmp(d->target, sel->after_target) > 0;
}

static bool matches(const struct outbox_filter *f, const struct outbox_delivery *d)
{
	if (f->why && d->why != f->why)
		return false;
	if (f->key && (!d->key || strcmp(d->key, f->key) != 0))
		return false;
	if (f->created_before && d->created_at > f->created_before)
		return false;
	if (f->changed_before && d->last_status_at > f->changed_before)
		return false;
	return !f->type || glob_match(f->type, d->type);
}

static bool wanted(const struct selection *sel, const struct outbox_delivery *d)
{
	if (!d->state || !(sel->states & STATE(d->state)))
		return false;
	if (sel->not_deferred_until && d->why == OUTBOX_DEFERRED &&
	    d->next_attempt_at == sel->not_deferred_until)
		return false;
	return is_new(sel, d) && matches(sel->filter, d);
}

/* The one state that is wanted, or NULL when there are several. */
static const char *single_state(const struct selection *sel)
{
	for (int state = OUTBOX_PENDING; state <= OUTBOX_DISCARDED; state++) {
		if (sel->states == STATE(state))
			return outbox_state_name(state);
	}
	return NULL;
}

static int read_detours(struct selection *sel, const struct target_info *target,
			struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = sel->targets->s;
	const char *state = single_state(sel);
	size_t found = 0;
	int r = sqlite_query(s, state ? SQL_LOOK_DETOURS_IN : SQL_LOOK_DETOURS,
			     ARGS(ARG_TEXT(target->name), ARG_INT(sel->after_seq), ARG_TEXT(state)),
			     &q, err);

	while ((sel->count_only || found <= sel->limit) && sqlite_next(q, &r, err)) {
		struct outbox_delivery d;

		r = delivery_of_detour(target, q, &d, err);
		if (r != OUTBOX_OK || !wanted(sel, &d))
			continue;
		r = select_add(sel, &d, true, err);
		found++;
	}
	return r;
}

/* The row's deliveries that have no detour. */
static int read_row(struct selection *sel, sqlite3_stmt *row, size_t *found, struct outbox_error *err)
{
	struct targets *t = sel->targets;
	int64_t seq = sqlite3_column_int64(row, COL_SEQ);

	for (size_t i = 0; i < t->count; i++) {
		struct outbox_delivery d;
		int64_t detour;
		int r;

		r = delivery_of_row(t, &t->list[i], row, &d, err);
		if (r != OUTBOX_OK)
			return r;
		if (!wanted(sel, &d))
			continue;
		r = sqlite_number(t->s, SQL_DETOUR_EXISTS,
				  ARGS(ARG_TEXT(t->list[i].name), ARG_INT(seq)), 0, &detour, err);
		if (r == OUTBOX_OK && !detour) {
			r = select_add(sel, &d, false, err);
			(*found)++;
		}
		if (r != OUTBOX_OK)
			return r;
	}
	return OUTBOX_OK;
}

/* Which stretch of the log can hold deliveries of one lane in the states that are wanted? */
static void lane_stretch(const struct selection *sel, const struct receipt *last, int64_t *ret_low,
			 int64_t *ret_high)
{
	bool sending = sel->states & STATE(OUTBOX_SENDING);

	*ret_low = sending ? last->pos : last->claim_end;
	if (sel->states & STATE(OUTBOX_DELIVERED))
		*ret_low = 0;
	*ret_high = sending ? last->claim_end : last->pos;
	if (sel->states & STATE(OUTBOX_PENDING))
		*ret_high = INT64_MAX;
}

/* And of all lanes together? */
static void stretch(const struct selection *sel, int64_t *ret_from, int64_t *ret_to)
{
	const struct targets *t = sel->targets;
	int64_t from = INT64_MAX, to = 0, low, high;

	for (size_t i = 0; i < t->count; i++) {
		for (int lane = 0; lane < t->list[i].n_lanes; lane++) {
			lane_stretch(sel, &t->list[i].lanes[lane].last, &low, &high);
			if (high <= low)
				continue;
			from = low < from ? low : from;
			to = high > to ? high : to;
		}
	}
	if (t->again && (sel->states & STATE(OUTBOX_PENDING)) && t->gone_after < from)
		from = t->gone_after;
	if (sel->after_seq - 1 > from)
		from = sel->after_seq - 1;
	*ret_from = from;
	*ret_to = to;
}

static int read_log(struct selection *sel, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_store *s = sel->targets->s;
	int64_t from, to;
	size_t found = 0;
	int r;

	stretch(sel, &from, &to);
	if (from >= to)
		return OUTBOX_OK;
	r = sqlite_query(s, SQL_LOOK_ROWS, ARGS(ARG_INT(from), ARG_INT(to)), &q, err);
	while ((sel->count_only || found <= sel->limit) && sqlite_next(q, &r, err))
		r = read_row(sel, q, &found, err);
	return r;
}

static int read_detour_of(struct selection *sel, const struct target_info *target, int64_t seq,
			  struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct outbox_delivery d;
	int r = sqlite_query(sel->targets->s, SQL_LOOK_DETOUR,
			     ARGS(ARG_TEXT(target->name), ARG_INT(seq)), &q, err);

	if (!sqlite_next(q, &r, err))
		return r;
	r = delivery_of_detour(target, q, &d, err);
	if (r != OUTBOX_OK)
		return r;
	return wanted(sel, &d) ? select_add(sel, &d, true, err) : OUTBOX_OK;
}

static int read_id(struct selection *sel, const char *id, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct targets *t = sel->targets;
	size_t found = 0;
	int64_t seq;
	int r = sqlite_query(t->s, SQL_LOOK_ID, ARGS(ARG_TEXT(id)), &q, err);

	if (!sqlite_next(q, &r, err)) {
		if (r == OUTBOX_OK && !sel->missing++)
			sel->missing_id = id;
		return r;
	}
	seq = sqlite3_column_int64(q, COL_SEQ);
	r = read_row(sel, q, &found, err);
	for (size_t i = 0; i < t->count && r == OUTBOX_OK; i++)
		r = read_detour_of(sel, &t->list[i], seq, err);
	return r;
}

/* The same id twice is the same delivery. */
static void drop_repeats(struct selection *sel)
{
	size_t kept = 0;

	for (size_t i = 0; i < sel->count; i++) {
		if (!kept || compare(&sel->rows[kept - 1], &sel->rows[i]) != 0)
			sel->rows[kept++] = sel->rows[i];
	}
	sel->count = kept;
}

static int read_ids(struct selection *sel, struct outbox_error *err)
{
	const struct outbox_filter *f = sel->filter;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < f->n_ids && r == OUTBOX_OK; i++)
		r = read_id(sel, f->ids[i], err);
	return r;
}

static int read_all(struct selection *sel, struct outbox_error *err)
{
	bool only_new = sel->filter->why == OUTBOX_NEW || sel->filter->why == OUTBOX_PAUSED;
	int r = OUTBOX_OK;

	for (size_t i = 0; !only_new && i < sel->targets->count && r == OUTBOX_OK; i++)
		r = read_detours(sel, &sel->targets->list[i], err);
	if (r == OUTBOX_OK && (only_new || !sel->filter->why || sel->filter->why == OUTBOX_DEFERRED) &&
	    (sel->states & FROM_LOG))
		r = read_log(sel, err);
	return r;
}

int select_deliveries(struct selection *sel, struct outbox_error *err)
{
	const struct outbox_filter *f = sel->filter;
	int r = OUTBOX_OK;

	if (f->state) /* an unknown one is nobody's state */
		sel->states &= f->state > 0 && f->state <= OUTBOX_DISCARDED ? STATE(f->state) : 0;
	if (f->why)
		sel->states &= STATE(OUTBOX_PENDING);
	if (f->cursor)
		r = store_cursor_parse(f->cursor, &sel->after_seq, sel->after_target, err);
	if (r == OUTBOX_OK)
		r = f->n_ids ? read_ids(sel, err) : read_all(sel, err);
	if (sel->count_only)
		return r;
	select_sort(sel);
	drop_repeats(sel);
	return r;
}
