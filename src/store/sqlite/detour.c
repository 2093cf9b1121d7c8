/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who waits behind whom.
 *
 * A detour blocks what is behind it in its key while it is pending, unless it is deferred and not due
 * yet, and for ever when it failed and the target says `hold`. (One that is being sent is in the
 * caller's own claim, and the engine keeps the order there.) Of each key only the first that is not
 * blocked can be picked, and then the run behind it comes along, so a backlog of parked messages
 * drains in batches and not one by one.
 *
 * A parked detour has no next_attempt_at and so is in no index that a claim looks at: ten thousand of
 * them cost nothing. Whoever finishes or defers the one before must therefore promote it.
 */
#include "store/sqlite/detour.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

void detour_picks_deinit(struct detour_picks *picks)
{
	free(picks->seqs);
	free(picks->suspect);
	*picks = (struct detour_picks){ 0 };
}

static int add(struct detour_picks *picks, int64_t seq, bool suspect, struct outbox_error *err)
{
	if (picks->count == picks->capacity) {
		size_t capacity = picks->capacity ? picks->capacity * 2 : 64;
		int64_t *seqs = realloc(picks->seqs, capacity * sizeof(*seqs));
		bool *flags;

		if (seqs)
			picks->seqs = seqs;
		flags = seqs ? realloc(picks->suspect, capacity * sizeof(*flags)) : NULL;
		if (!flags)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		picks->suspect = flags;
		picks->capacity = capacity;
	}
	picks->seqs[picks->count] = seq;
	picks->suspect[picks->count++] = suspect;
	return OUTBOX_OK;
}

/* Keys' runs were appended one after the other: shell sort brings them in seq order. */
static void sort(struct detour_picks *picks)
{
	for (size_t gap = picks->count / 2; gap > 0; gap /= 2) {
		for (size_t i = gap; i < picks->count; i++) {
			int64_t seq = picks->seqs[i];
			bool suspect = picks->suspect[i];
			size_t j = i;

			for (; j >= gap && picks->seqs[j - gap] > seq; j -= gap) {
				picks->seqs[j] = picks->seqs[j - gap];
				picks->suspect[j] = picks->suspect[j - gap];
			}
			picks->seqs[j] = seq;
			picks->suspect[j] = suspect;
		}
	}
}

/* What may follow the first of a key in the same claim, up to `max` picks in all. */
static int pick_run(const struct lane_op *op, const char *key, int64_t seq, size_t max,
		    struct detour_picks *picks, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t stop = INT64_MAX;
	bool row;
	int r = OUTBOX_OK;

	if (op->view.hold)
		r = sqlite_number(op->s, SQL_DETOUR_FAILED_AFTER,
				  ARGS(ARG_TEXT(op->target), ARG_TEXT(key), ARG_INT(seq)),
				  INT64_MAX, &stop, err);
	if (r == OUTBOX_OK)
		r = sqlite_query(op->s, SQL_DETOUR_RUN,
				 ARGS(ARG_TEXT(op->target), ARG_TEXT(key), ARG_INT(seq),
				      ARG_INT(op->now), ARG_INT(stop)),
				 &q, err);
	while (r == OUTBOX_OK && picks->count < max) {
		r = sqlite_step(op->s, q, &row, err);
		if (r != OUTBOX_OK || !row || !sqlite3_column_int(q, 1))
			break;
		r = add(picks, sqlite3_column_int64(q, 0), sqlite3_column_int(q, 2) != 0, err);
	}
	return r;
}

static const struct sqlite_args *due_args(const struct lane_op *op, size_t max, int64_t look,
					  struct sqlite_args *args)
{
	*args = *ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now),
		      ARG_INT((int64_t)max), ARG_INT(op->view.hold), ARG_INT(look));
	return args;
}

static enum sqlite_statement due_statement(const struct lane_op *op)
{
	return op->view.unordered ? SQL_DETOUR_DUE_ANY : SQL_DETOUR_DUE;
}

/* Up to `max`: of the first `look` that are due, with at most `run` behind each. */
static int pick_some(const struct lane_op *op, size_t max, int64_t look, size_t run,
		     struct detour_picks *picks, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct sqlite_args args;
	bool row;
	int r;

	picks->count = 0;
	r = sqlite_query(op->s, due_statement(op), due_args(op, max, look, &args), &q, err);
	while (r == OUTBOX_OK && picks->count < max) {
		const char *key;
		int64_t seq;
		size_t end;

		r = sqlite_step(op->s, q, &row, err);
		if (r != OUTBOX_OK || !row)
			break;
		seq = sqlite3_column_int64(q, 0);
		r = add(picks, seq, sqlite3_column_int(q, 2) != 0, err);
		if (r != OUTBOX_OK || op->view.unordered)
			continue;
		end = max - picks->count < run ? max : picks->count + run;
		key = sqlite_look(q, 1, &r, err);
		if (key)
			r = pick_run(op, key, seq, end, picks, err);
	}
	return r;
}

/*
 * Few keys may have a million that are due, and only the first of each can go: so some are looked at,
 * and the runs behind them end the search once they are enough. A key gets a part of the claim, unless
 * there are too few keys to fill it. All that are due are looked at only where most of the first ones
 * wait behind something.
 */
int detour_pick(const struct lane_op *op, size_t max, struct detour_picks *picks,
		struct outbox_error *err)
{
	int64_t look = 4 * (int64_t)max, behind = 0;
	int r;

	r = pick_some(op, max, look, max / 16, picks, err);
	if (r == OUTBOX_OK && picks->count > 0 && picks->count < max && !op->view.unordered)
		r = pick_some(op, max, look, max, picks, err);
	if (r == OUTBOX_OK && picks->count < max)
		r = sqlite_number(op->s, SQL_DETOUR_DUE_BEHIND,
				  ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now),
				       ARG_INT(look)),
				  0, &behind, err);
	if (r == OUTBOX_OK && behind)
		r = pick_some(op, max, -1, max, picks, err);
	sort(picks);
	return r;
}

int detour_claimed(const struct lane_op *op, struct detour_picks *picks, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	bool row;
	int r;

	r = sqlite_query(op->s, SQL_DETOUR_SENDING, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			 &q, err);
	while (r == OUTBOX_OK) {
		r = sqlite_step(op->s, q, &row, err);
		if (r != OUTBOX_OK || !row)
			break;
		r = add(picks, sqlite3_column_int64(q, 0), sqlite3_column_int(q, 1) != 0, err);
	}
	return r;
}

int detour_any_due(const struct lane_op *op, bool *ret_any, struct outbox_error *err)
{
	struct sqlite_args args;
	int64_t seq = -1;
	int r = OUTBOX_OK;

	if (op->view.pending)
		r = sqlite_number(op->s, due_statement(op), due_args(op, 1, -1, &args), -1, &seq,
				  err);
	if (r == OUTBOX_OK)
		*ret_any = seq >= 0;
	return r;
}

int detour_blocks(const struct lane_op *op, const char *key, int64_t seq, bool *ret_blocked,
		  struct outbox_error *err)
{
	int64_t blocked;
	int r;

	r = sqlite_number(op->s, SQL_DETOUR_BLOCKS,
			  ARGS(ARG_TEXT(op->target), ARG_TEXT(key), ARG_INT(seq), ARG_INT(op->now),
			       ARG_INT(op->view.hold)),
			  0, &blocked, err);
	if (r == OUTBOX_OK)
		*ret_blocked = blocked != 0;
	return r;
}

int detour_promote(const struct lane_op *op, const char *key, struct outbox_error *err)
{
	if (!key)
		return OUTBOX_OK;
	return sqlite_run(op->s, SQL_DETOUR_PROMOTE,
			  ARGS(ARG_TEXT(op->target), ARG_TEXT(key), ARG_INT(op->now),
			       ARG_INT(op->view.hold)),
			  NULL, err);
}

int detour_promote_behind(const struct lane_op *op, int64_t seq, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *key;
	bool row;
	int r;

	r = sqlite_query(op->s, SQL_DETOUR_KEY, ARGS(ARG_TEXT(op->target), ARG_INT(seq)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(op->s, q, &row, err);
	if (r != OUTBOX_OK || !row)
		return r;
	key = sqlite_look(q, 0, &r, err);
	return r == OUTBOX_OK ? detour_promote(op, key, err) : r;
}
