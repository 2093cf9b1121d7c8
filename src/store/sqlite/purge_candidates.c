/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is past its retention, by core/retention.h. For deliveries without a row the lane's receipts say
 * when they were settled: all that lie up to the position of the last receipt before that time are
 * covered. So one number per lane and target, the cut, decides for nearly every message.
 *
 * A lane that gets little moves seldom, and one that nobody works on never. So behind a cut it is asked
 * whether the target has anything to do with the message: what it was never meant to get need not wait for it.
 * Nothing is written for that, and nobody's lane is touched.
 *
 * What is younger than that time cannot be old, and is not read. Failed ones further on are found by their
 * own index.
 */
#include "store/sqlite/purge_candidates.h"

#include "base/cleanup.h"
#include "core/retention.h"
#include "store/sqlite/lane.h"

#include <stdlib.h>

/* Rows that one call looks at beside those that it finds. */
#define SCAN_MAX 50000

struct finding {
	struct purge_candidates *v;
	int64_t *cuts; /* per target and lane */
	bool *detours; /* the target has any */
	int64_t scanned;
};

static void finding_deinit(struct finding *f)
{
	free(f->cuts);
	free(f->detours);
}

void purge_candidates_deinit(struct purge_candidates *v)
{
	free(v->list);
	free(v->survivors);
	v->list = NULL;
	v->survivors = NULL;
}

static int64_t *cut_of(const struct finding *f, size_t target, int lane)
{
	return &f->cuts[target * (size_t)f->v->targets->s->lanes + (size_t)lane];
}

static int find_cuts(struct finding *f, struct outbox_error *err)
{
	struct targets *t = f->v->targets;
	int r = OUTBOX_OK;

	f->cuts = calloc(t->count * (size_t)t->s->lanes, sizeof(*f->cuts));
	f->detours = calloc(t->count, sizeof(*f->detours));
	if (!f->cuts || !f->detours)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < t->count && r == OUTBOX_OK; i++) {
		struct target_info *target = &t->list[i];
		struct lane_op op = { .s = t->s, .target = target->name };
		int64_t any;

		r = sqlite_number(t->s, SQL_LOOK_AHEAD, ARGS(ARG_TEXT(target->name), ARG_INT(0)), 0,
				  &any, err);
		f->detours[i] = r == OUTBOX_OK && any;
		for (; op.lane < target->n_lanes && r == OUTBOX_OK; op.lane++) {
			struct history before;

			r = history_before(&op, target->lanes[op.lane].last.n,
					   f->v->purge->delivered_before, &before, err);
			if (r == OUTBOX_OK)
				*cut_of(f, i, op.lane) = before.found ? before.pos : 0;
		}
	}
	return r;
}

/*
 * The place before the first message that was published at that time or later, by halving: their times
 * ascend, but for those that applications make up, which is why the cuts are asked, too.
 */
static int64_t before_young(const struct finding *f, int64_t low, int64_t high, int *r,
			    struct outbox_error *err)
{
	/* Everything up to low is older, everything behind high is not. */
	while (*r == OUTBOX_OK && low < high) {
		_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
		int64_t middle = low + (high - low) / 2;

		*r = sqlite_query(f->v->targets->s, SQL_PURGE_AGE, ARGS(ARG_INT(middle)), &q, err);
		if (sqlite_next(q, r, err) &&
		    sqlite3_column_int64(q, 1) < f->v->purge->delivered_before)
			low = sqlite3_column_int64(q, 0);
		else
			high = middle;
	}
	return low;
}

/* No message behind this one can be old enough, but for failed ones. */
static int64_t last_old(const struct finding *f, int *r, struct outbox_error *err)
{
	const struct targets *t = f->v->targets;
	int64_t covered = 0, end = 0;

	for (int lane = 0; lane < t->s->lanes; lane++) {
		int64_t lowest = INT64_MAX;

		for (size_t i = 0; i < t->count; i++) {
			if (*cut_of(f, i, lane) < lowest)
				lowest = *cut_of(f, i, lane);
		}
		if (lowest > covered)
			covered = lowest;
	}
	*r = sqlite_number(t->s, SQL_LOG_END, NULL, 0, &end, err);
	return before_young(f, covered, end, r, err);
}

/* A detour's state and time; state 0: there is none. */
static int read_detour(const struct finding *f, size_t target, int64_t seq,
		       struct retention_delivery *delivery, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const struct targets *t = f->v->targets;
	int r;

	delivery->state = 0;
	if (!f->detours[target])
		return OUTBOX_OK;
	r = sqlite_query(t->s, SQL_PURGE_DETOUR, ARGS(ARG_TEXT(t->list[target].name), ARG_INT(seq)),
			 &q, err);
	if (sqlite_next(q, &r, err)) {
		delivery->state = outbox_state_parse(sqlite_peek(q, 0, &r, err));
		delivery->at = sqlite3_column_int64(q, 1);
	}
	return r;
}

static int add_candidate(struct purge_candidates *v, struct purge_candidate candidate,
			 struct outbox_error *err)
{
	int r = sqlite_grow(&v->list, &v->capacity, v->count, sizeof(candidate), err);

	if (r == OUTBOX_OK)
		v->list[v->count++] = candidate;
	return r;
}

static int add_survivor(struct purge_candidates *v, struct survivor survivor,
			struct outbox_error *err)
{
	int r = sqlite_grow(&v->survivors, &v->survivor_capacity, v->n_survivors, sizeof(survivor),
			    err);

	if (r == OUTBOX_OK)
		v->survivors[v->n_survivors++] = survivor;
	return r;
}

/* The message stays. Where its delivery has only a receipt to prove it, and that one may go, say so. */
static int keep_survivor(struct finding *f, size_t target, sqlite3_stmt *row,
			 struct outbox_error *err)
{
	struct target_info *info = &f->v->targets->list[target];
	struct retention_delivery detour;
	struct outbox_delivery d;
	int r = delivery_of_row(f->v->targets, info, row, &d, err);

	if (r != OUTBOX_OK || d.state != OUTBOX_DELIVERED || d.seq > *cut_of(f, target, d.lane))
		return r;
	r = read_detour(f, target, d.seq, &detour, err);
	if (r != OUTBOX_OK || detour.state)
		return r;
	return add_survivor(f->v,
			    (struct survivor){ info, d.seq, d.lane, d.last_status_at, d.owner },
			    err);
}

static int judge_message(struct finding *f, sqlite3_stmt *row, bool *ret_old, bool *ret_failed,
			 struct outbox_error *err)
{
	const struct outbox_purge *purge = f->v->purge;
	struct targets *t = f->v->targets;
	int64_t seq = sqlite3_column_int64(row, COL_SEQ);
	int r = OUTBOX_OK, lane = message_lane(row, t->s->lanes, &r, err);
	struct retention retention = { 0 };

	for (size_t i = 0; i < t->count && !retention.kept && r == OUTBOX_OK; i++) {
		struct retention_delivery delivery = { .covered = seq <= *cut_of(f, i, lane) };

		r = read_detour(f, i, seq, &delivery, err);
		if (r == OUTBOX_OK && !delivery.state && !delivery.covered)
			r = delivery_is_wanted(t, &t->list[i], row, &delivery.wanted, err);
		if (r == OUTBOX_OK)
			retention_add(&retention, purge, &delivery);
	}
	*ret_failed = retention.failed;
	*ret_old = retention_is_over(&retention, purge, sqlite3_column_int64(row, COL_CREATED_AT));
	return r;
}

static int consider_message(struct finding *f, sqlite3_stmt *row, struct outbox_error *err)
{
	struct purge_candidates *v = f->v;
	int64_t seq = sqlite3_column_int64(row, COL_SEQ);
	bool old, failed;
	int r = judge_message(f, row, &old, &failed, err);

	if (r != OUTBOX_OK)
		return r;
	if (old && !retention_is_listed(v->purge, seq)) {
		v->seen_seq = seq; /* it may go, and is not in the archive: the next time */
		return OUTBOX_OK;
	}
	if (old && v->count == v->limit) {
		v->more = true;
		return OUTBOX_OK;
	}
	v->seen_seq = seq;
	if (old)
		return add_candidate(v, (struct purge_candidate){ seq, failed }, err);
	for (size_t i = 0; v->note_survivors && i < v->targets->count && r == OUTBOX_OK; i++)
		r = keep_survivor(f, i, row, err);
	return r;
}

static int scan_log(struct finding *f, int64_t to, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct purge_candidates *v = f->v;
	int r = sqlite_query(v->targets->s, SQL_LOOK_ROWS, ARGS(ARG_INT(v->after_seq), ARG_INT(to)),
			     &q, err);

	while (!v->more && sqlite_next(q, &r, err)) {
		r = consider_message(f, q, err);
		if (++f->scanned == SCAN_MAX + (int64_t)v->limit)
			v->more = true;
	}
	return r;
}

static int scan_failed(struct finding *f, int64_t from, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct purge_candidates *v = f->v;
	int64_t through = v->purge->through_seq ? v->purge->through_seq : INT64_MAX;
	int r = sqlite_query(v->targets->s, SQL_PURGE_FAILED,
			     ARGS(ARG_INT(from > v->after_seq ? from : v->after_seq),
				  ARG_INT(through), ARG_INT(v->purge->failed_before)),
			     &q, err);

	while (!v->more && sqlite_next(q, &r, err))
		r = consider_message(f, q, err);
	return r;
}

int purge_candidates_find(struct purge_candidates *v, struct outbox_error *err)
{
	_cleanup_(finding_deinit) struct finding f = { .v = v };
	int64_t to = 0;
	int r;

	if (!v->targets->count)
		return OUTBOX_OK;
	r = find_cuts(&f, err);
	if (r == OUTBOX_OK && v->purge->delivered_before)
		to = last_old(&f, &r, err);
	if (r != OUTBOX_OK)
		return r;
	if (v->purge->through_seq && to > v->purge->through_seq)
		to = v->purge->through_seq;
	r = scan_log(&f, to, err);
	if (r == OUTBOX_OK && !v->more && v->purge->failed_before)
		r = scan_failed(&f, to, err);
	if (r == OUTBOX_OK && !v->more)
		v->seen_seq = 0;
	return r;
}
