/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Claiming.
 *
 * Two streams in ascending seq are merged: detours that may be sent now, and rows of the log behind
 * the position. Everything is taken in seq order and cut in seq order, so whatever is left out lies
 * behind what is taken, in every key.
 *
 * The log is stepped row by row and left as soon as the budget is used, so a batch of large payloads
 * is never loaded first and cut afterwards. Routing and lanes are matched here, not in SQL. On the
 * straight path (no detours anywhere) a claim is one SELECT and nothing else.
 */
#include "store/sqlite/claim.h"

#include "base/cleanup.h"
#include "store/sqlite/detour.h"
#include "store/sqlite/message.h"

#include <string.h>

/* Rows that one claim looks at; a lane with nothing in so many moves on and comes back. */
#define SCAN_MAX 10000
#define ITEMS_FIRST 512

struct claiming {
	struct lane_op *op;
	const struct sqlite_route *route;
	struct outbox_arena *arena;
	struct outbox_claim *claim;
	const char *owner, *source;
	bool again; /* read an old claim: nothing is marked, nothing is cut */
	int64_t n;  /* its receipt's number; 0: a new claim */
	size_t max, max_bytes, bytes;
	size_t capacity; /* of claim->items */
	size_t n_detours;
	sqlite3_stmt *log;
	bool have_row;   /* log stands on a row of ours */
	int64_t scanned; /* rows looked at */
	int64_t log_seq; /* the last of them */
	bool log_cut;    /* SCAN_MAX was reached */
	bool full;       /* the budget is used up */
	struct detour_picks picks;
	size_t pick; /* the next one */
};

static void claiming_deinit(struct claiming *w)
{
	detour_picks_deinit(&w->picks);
	sqlite3_reset(w->log);
}

/* Operators may have written detours ahead of the position: those rows are no log rows any more. */
static int has_detour(const struct claiming *w, int64_t seq, bool *ret_has, struct outbox_error *err)
{
	const struct lane_op *op = w->op;
	int64_t found = 0;
	int r = OUTBOX_OK;

	if (op->view.ahead)
		r = sqlite_number(op->s, SQL_DETOUR_EXISTS,
				  ARGS(ARG_TEXT(op->target), ARG_INT(seq), ARG_TIME(w->n)), 0,
				  &found, err);
	if (r == OUTBOX_OK)
		*ret_has = found != 0;
	return r;
}

/* Step to the log's next row that is ours. */
static int next_row(struct claiming *w, struct outbox_error *err)
{
	const struct lane_op *op = w->op;
	bool mine, detour;
	int r = OUTBOX_OK;

	w->have_row = false;
	while (w->scanned < SCAN_MAX || w->again) {
		if (!sqlite_next(w->log, &r, err))
			return r;
		w->scanned++;
		w->log_seq = sqlite3_column_int64(w->log, COL_SEQ);
		mine = message_lane(w->log, op->s->lanes, &r, err) == op->lane &&
		       message_routed(w->log, w->route, &r, err);
		if (r != OUTBOX_OK)
			return r;
		if (!mine)
			continue;
		r = has_detour(w, w->log_seq, &detour, err);
		if (r != OUTBOX_OK)
			return r;
		if (!detour) {
			w->have_row = true;
			return OUTBOX_OK;
		}
	}
	w->log_cut = true;
	return OUTBOX_OK;
}

/* Room for one more item. */
static int grow_items(struct claiming *w, struct outbox_error *err)
{
	struct outbox_claim *claim = w->claim;
	size_t capacity = w->capacity ? w->capacity * 2 : ITEMS_FIRST;
	struct outbox_claimed *items;

	if (claim->count < w->capacity)
		return OUTBOX_OK;
	if (capacity > w->max)
		capacity = w->max;
	items = outbox_arena_alloc(w->arena, capacity * sizeof(*items));
	if (!items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (claim->count)
		memcpy(items, claim->items, claim->count * sizeof(*items));
	claim->items = items;
	w->capacity = capacity;
	return OUTBOX_OK;
}

/* The arena is full: what was taken so far is the claim, unless it is nothing. */
static int stop_if_full(struct claiming *w, int r)
{
	if (r != OUTBOX_ENOMEM || w->again || !w->claim->count)
		return r;
	w->full = true;
	return OUTBOX_OK;
}

static bool over_budget(struct claiming *w, size_t size)
{
	if (w->again || !w->claim->count || w->bytes + size <= w->max_bytes)
		return false;
	w->full = true;
	return true;
}

static int claim_row(struct claiming *w, struct outbox_error *err)
{
	const struct lane_op *op = w->op;
	int r = OUTBOX_OK;
	const char *key = sqlite_look(w->log, COL_KEY, &r, err);
	struct outbox_claimed item;
	bool blocked = false;
	size_t size;

	if (key && !op->view.unordered && (op->view.pending || (op->view.hold && op->view.failed)))
		r = detour_blocks(op, key, w->log_seq, &blocked, err);
	if (r != OUTBOX_OK)
		return r;
	size = blocked ? 0 : message_size(w->log);
	if (!blocked && over_budget(w, size))
		return OUTBOX_OK;
	r = grow_items(w, err);
	if (r == OUTBOX_OK)
		r = blocked ? message_load_head(w->log, w->arena, &item, err)
			    : message_load(w->log, w->arena, w->source, !w->claim->count, &item, err);
	if (r != OUTBOX_OK)
		return stop_if_full(w, r);
	item.blocked = blocked;
	w->bytes += size;
	w->claim->items[w->claim->count++] = item;
	return next_row(w, err);
}

/* Where it failed before, if it did. */
static int load_dead(const struct claiming *w, sqlite3_stmt *q, struct outbox_claimed *item,
		     struct outbox_error *err)
{
	int r = sqlite_text(q, COL_PAYLOAD_BIN + 4, w->arena, &item->dead_target, err);

	if (r == OUTBOX_OK)
		r = sqlite_text(q, COL_PAYLOAD_BIN + 5, w->arena, &item->dead_reason, err);
	item->dead_attempts = sqlite3_column_int(q, COL_PAYLOAD_BIN + 6);
	item->dead_at = sqlite3_column_int64(q, COL_PAYLOAD_BIN + 7);
	return r;
}

static int load_detour(struct claiming *w, sqlite3_stmt *q, struct outbox_claimed *item,
		       struct outbox_error *err)
{
	int r = grow_items(w, err);

	if (r == OUTBOX_OK)
		r = message_load(q, w->arena, w->source, !w->claim->count, item, err);
	if (r != OUTBOX_OK)
		return r;
	item->detour = true;
	item->attempts = sqlite3_column_int(q, COL_PAYLOAD_BIN + 1);
	item->failing_since = sqlite3_column_int64(q, COL_PAYLOAD_BIN + 2);
	item->suspect = sqlite3_column_int(q, COL_PAYLOAD_BIN + 3) != 0;
	item->ready_at = sqlite3_column_int64(q, COL_PAYLOAD_BIN + 8);
	r = load_dead(w, q, item, err);
	if (r != OUTBOX_OK)
		return r;
	if (!item->message.type) {
		item->message.type = "unknown";
		item->malformed = "its message is gone from the log";
	}
	return OUTBOX_OK;
}

static int claim_detour(struct claiming *w, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const struct lane_op *op = w->op;
	int64_t seq = w->picks.list[w->pick].seq;
	struct outbox_claimed item;
	size_t size;
	int r;

	/* A suspect travels alone. */
	if (w->picks.list[w->pick].detour.suspect && w->claim->count && !w->again) {
		w->full = true;
		return OUTBOX_OK;
	}
	r = sqlite_query(op->s, SQL_DETOUR_MESSAGE, ARGS(ARG_TEXT(op->target), ARG_INT(seq)), &q,
			 err);
	if (!sqlite_next(q, &r, err))
		return r ? r
			 : outbox_fail(err, OUTBOX_EINTERNAL, "detour %lld of target %s is gone",
				       (long long)seq, op->target);
	size = message_size(q);
	if (over_budget(w, size))
		return OUTBOX_OK;
	r = load_detour(w, q, &item, err);
	if (r != OUTBOX_OK)
		return stop_if_full(w, r);
	if (!w->again)
		r = sqlite_run(op->s, SQL_DETOUR_SEND,
			       ARGS(ARG_TEXT(op->target), ARG_INT(seq), ARG_TEXT(w->owner),
				    ARG_INT(op->now)),
			       err);
	if (r != OUTBOX_OK)
		return r;
	w->full = w->picks.list[w->pick].detour.suspect && !w->again;
	w->pick++;
	w->n_detours++;
	w->bytes += size;
	w->claim->items[w->claim->count++] = item;
	return OUTBOX_OK;
}

/* A detour that lies ahead of where the log was left must wait: rows of its key may lie between. */
static bool detour_is_next(const struct claiming *w)
{
	int64_t seq;

	if (w->pick == w->picks.count)
		return false;
	seq = w->picks.list[w->pick].seq;
	if (w->have_row)
		return seq < w->log_seq;
	return !w->log_cut || seq <= w->log_seq;
}

static int merge_streams(struct claiming *w, struct outbox_error *err)
{
	int r = next_row(w, err);

	while (r == OUTBOX_OK && !w->full && w->claim->count < w->max) {
		if (detour_is_next(w))
			r = claim_detour(w, err);
		else if (w->have_row)
			r = claim_row(w, err);
		else
			return OUTBOX_OK;
	}
	w->full = true;
	return r;
}

static int start_claim(struct claiming *w, int64_t pos, int64_t end, int64_t version,
		       struct outbox_error *err)
{
	struct sqlite_store *s = w->op->s;
	int r;

	w->source = outbox_arena_text(w->arena, s->source);
	if (!w->source)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = sqlite_route_get(s, w->op->target, version, &w->route, err);
	if (r == OUTBOX_OK)
		r = sqlite_query(s, SQL_LOG_ROWS, ARGS(ARG_INT(pos), ARG_INT(end)), &w->log, err);
	return r;
}

static int64_t last_seq(const struct claiming *w)
{
	return w->claim->count ? w->claim->items[w->claim->count - 1].seq : 0;
}

static void write_claim(const struct claiming *w, struct receipt *next)
{
	int64_t end = w->op->view.last_seq;

	if (w->full)
		end = last_seq(w);
	else if (w->log_cut)
		end = w->log_seq;
	next->claim_end = end > next->pos ? end : next->pos;
	next->claim_count = (int64_t)w->claim->count;
	next->claim_detours = (int64_t)w->n_detours;
	next->claim_seq = w->claim->count ? w->claim->items[0].seq : 0;
	next->claim_last = last_seq(w);
}

int claim_next(struct lane_op *op, const struct outbox_settle_and_claim *request,
	       struct receipt *next, struct outbox_arena *arena, struct outbox_claim *claim,
	       struct outbox_error *err)
{
	_cleanup_(claiming_deinit) struct claiming w = {
		.op = op,
		.arena = arena,
		.claim = claim,
		.owner = request->owner,
		.max = receipt_cautious(next) ? 1 : request->max_messages,
		.max_bytes = request->max_bytes,
	};
	int r = start_claim(&w, next->pos, INT64_MAX, request->route_version, err);

	if (r == OUTBOX_OK && op->view.pending)
		r = detour_pick(op, w.max, &w.picks, err);
	if (r == OUTBOX_OK)
		r = merge_streams(&w, err);
	if (r == OUTBOX_OK)
		write_claim(&w, next);
	return r;
}

int claim_again(struct lane_op *op, const struct outbox_settle_and_claim *request,
		const struct receipt *receipt, struct outbox_arena *arena,
		struct outbox_claim *claim, struct outbox_error *err)
{
	_cleanup_(claiming_deinit) struct claiming w = {
		.op = op,
		.arena = arena,
		.claim = claim,
		.owner = request->owner,
		.again = true,
		.n = receipt->n,
		.max = (size_t)receipt->claim_count,
	};
	int r;

	if (!receipt->claim_count)
		return OUTBOX_OK;
	r = start_claim(&w, receipt->pos, receipt->claim_end, receipt->route_version, err);
	if (r == OUTBOX_OK && receipt->claim_detours)
		r = detour_claimed(op, &w.picks, err);
	return r ? r : merge_streams(&w, err);
}

int claim_possible(struct lane_op *op, const struct outbox_settle_and_claim *request,
		   const struct receipt *last, bool *ret_possible, struct outbox_error *err)
{
	_cleanup_(claiming_deinit) struct claiming w = { .op = op };
	struct sqlite_store *s = op->s;
	bool possible;
	int r = detour_any_due(op, &possible, err);

	if (r == OUTBOX_OK && !possible && op->view.last_seq > last->pos) {
		possible = op->view.last_seq - last->pos > CLAIM_AHEAD;
		r = sqlite_route_get(s, op->target, request->route_version, &w.route, err);
		if (r == OUTBOX_OK && !possible)
			r = sqlite_query(s, SQL_LOG_HEADS, ARGS(ARG_INT(last->pos)), &w.log, err);
		if (r == OUTBOX_OK && !possible)
			r = next_row(&w, err);
		possible = possible || w.have_row;
	}
	if (r == OUTBOX_OK)
		*ret_possible = possible;
	return r;
}

int claim_next_due(const struct lane_op *op, outbox_time *ret_due, struct outbox_error *err)
{
	if (!op->view.pending) {
		*ret_due = 0;
		return OUTBOX_OK;
	}
	return sqlite_number(op->s, SQL_DETOUR_NEXT_DUE,
			     ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now)), 0,
			     ret_due, err);
}
