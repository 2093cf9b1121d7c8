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
#include "core/lifecycle.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdlib.h>

void detour_picks_deinit(struct detour_picks *picks)
{
	free(picks->list);
	*picks = (struct detour_picks){ 0 };
}

static int add_pick(struct detour_picks *picks, struct detour_pick pick, struct outbox_error *err)
{
	int r = sqlite_grow(&picks->list, &picks->capacity, picks->count, sizeof(pick), err);

	if (r == OUTBOX_OK)
		picks->list[picks->count++] = pick;
	return r;
}

static int compare_picks(const void *a, const void *b)
{
	int64_t left = ((const struct detour_pick *)a)->seq,
		right = ((const struct detour_pick *)b)->seq;

	return left < right ? -1 : left > right;
}

/* Column 0 is the seq, `suspect` the one that says whether it is one. */
static struct detour_pick read_pick(sqlite3_stmt *row, int suspect)
{
	return (struct detour_pick){ .seq = sqlite3_column_int64(row, 0),
				     .detour.suspect = sqlite3_column_int(row, suspect) != 0 };
}

/* What may follow the first of a key in the same claim, up to `max` picks in all. */
static int pick_run(const struct lane_op *op, const char *key, int64_t seq, size_t max,
		    struct detour_picks *picks, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t stop = INT64_MAX;
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
	while (picks->count < max && sqlite_next(q, &r, err) && sqlite3_column_int(q, 1))
		r = add_pick(picks, read_pick(q, 2), err);
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
	int r;

	picks->count = 0;
	r = sqlite_query(op->s, due_statement(op), due_args(op, max, look, &args), &q, err);
	while (picks->count < max && sqlite_next(q, &r, err)) {
		const char *key;
		int64_t seq;
		size_t end;

		seq = sqlite3_column_int64(q, 0);
		r = add_pick(picks, read_pick(q, 2), err);
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
	int r = pick_some(op, max, look, max / 16, picks, err);

	if (r == OUTBOX_OK && picks->count > 0 && picks->count < max && !op->view.unordered)
		r = pick_some(op, max, look, max, picks, err);
	if (r == OUTBOX_OK && picks->count < max)
		r = sqlite_number(op->s, SQL_DETOUR_DUE_BEHIND,
				  ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now),
				       ARG_INT(look)),
				  0, &behind, err);
	if (r == OUTBOX_OK && behind)
		r = pick_some(op, max, -1, max, picks, err);
	if (picks->count)
		qsort(picks->list, picks->count, sizeof(*picks->list), compare_picks);
	return r;
}

int detour_claimed(const struct lane_op *op, struct detour_picks *picks, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(op->s, SQL_DETOUR_SENDING,
			     ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)), &q, err);

	while (sqlite_next(q, &r, err)) {
		struct detour_pick pick;

		pick = read_pick(q, 1);
		pick.detour.state = OUTBOX_SENDING;
		pick.detour.why = outbox_why_parse(sqlite_peek(q, 2, &r, err));
		pick.detour.attempts = sqlite3_column_int(q, 3);
		pick.detour.failing_since = sqlite3_column_int64(q, 4);
		pick.detour.ready_at = sqlite3_column_int64(q, 5);
		if (r == OUTBOX_OK)
			r = add_pick(picks, pick, err);
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
	int r = sqlite_number(op->s, SQL_DETOUR_BLOCKS,
			      ARGS(ARG_TEXT(op->target), ARG_TEXT(key), ARG_INT(seq),
				   ARG_INT(op->now), ARG_INT(op->view.hold)),
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
			  err);
}

int detour_promote_behind(const struct lane_op *op, int64_t seq, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *key;
	int r = sqlite_query(op->s, SQL_DETOUR_KEY, ARGS(ARG_TEXT(op->target), ARG_INT(seq)), &q,
			     err);

	if (!sqlite_next(q, &r, err))
		return r;
	key = sqlite_look(q, 0, &r, err);
	return r == OUTBOX_OK ? detour_promote(op, key, err) : r;
}

/* ---- the history of failed attempts -------------------------------------------------------------- */

/*
 * Triggers (sql/sqlite/code.sql) take its rows with their detours and its texts with a redaction, so that older programs
 * do so, too.
 */

int detour_add_attempt(const struct lane_op *op, int64_t n, const struct outbox_settlement *s,
		       struct outbox_error *err)
{
	int r = sqlite_run(op->s, SQL_ATTEMPT_ADD,
			   ARGS(ARG_TEXT(op->target), ARG_INT(s->seq), ARG_INT(n), ARG_INT(op->now),
				ARG_INT(s->attempt), ARG_TEXT(verdict_name(s->verdict)),
				ARG_INT(s->native), ARG_TEXT(s->error), ARG_TEXT(s->answer)),
			   err);

	if (r == OUTBOX_OK)
		r = sqlite_run(op->s, SQL_ATTEMPT_CUT,
			       ARGS(ARG_TEXT(op->target), ARG_INT(s->seq),
				    ARG_INT(OUTBOX_ATTEMPTS_KEPT - 1)),
			       err);
	return r;
}

static int read_attempt(sqlite3_stmt *q, struct outbox_arena *arena, struct outbox_attempt *attempt,
			struct outbox_error *err)
{
	int r = sqlite_text(q, 0, arena, &attempt->target, err);

	attempt->at = sqlite3_column_int64(q, 1);
	attempt->attempt = sqlite3_column_int(q, 2);
	attempt->native = sqlite3_column_int(q, 4);
	if (r == OUTBOX_OK)
		attempt->verdict = verdict_parse(sqlite_look(q, 3, &r, err));
	if (r == OUTBOX_OK)
		r = sqlite_text(q, 5, arena, &attempt->reason, err);
	return r == OUTBOX_OK ? sqlite_text(q, 6, arena, &attempt->answer, err) : r;
}

static int read_attempts(struct sqlite_store *s, const char *id, struct outbox_arena *arena,
			 struct outbox_attempt **ret_rows, size_t *ret_count,
			 struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t count;
	size_t n = 0;
	int r = sqlite_number(s, SQL_ATTEMPT_COUNT, ARGS(ARG_TEXT(id)), 0, &count, err);

	if (r == OUTBOX_OK)
		r = sqlite_query(s, SQL_ATTEMPTS_OF, ARGS(ARG_TEXT(id)), &q, err);
	if (r != OUTBOX_OK)
		return r;
	*ret_rows = outbox_arena_alloc(arena, ((size_t)count + 1) * sizeof(**ret_rows));
	if (!*ret_rows)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	while (n < (size_t)count && r == OUTBOX_OK && sqlite_next(q, &r, err))
		r = read_attempt(q, arena, &(*ret_rows)[n++], err);
	*ret_count = n;
	return r;
}

int sqlite_attempts(struct outbox_store *store, const char *id, struct outbox_arena *arena,
		    struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_attempt *rows = NULL;
	size_t count = 0;
	int r = sqlite_enter(s, DB_READ, err);

	if (r == OUTBOX_OK)
		r = sqlite_end(s, read_attempts(s, id, arena, &rows, &count, err), err);
	if (r == OUTBOX_OK) {
		*ret_rows = rows;
		*ret_count = count;
	}
	return r;
}
