/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settling.
 *
 * A log row that was delivered needs nothing: the receipt's range (from_seq, pos] covers it. Every
 * other outcome of a log row becomes a detour, an exception to that range, except for the returned
 * ones at its end: the position simply stops before them. Detours are updated in place.
 *
 * When all is written, the keys of finished and deferred detours and of newly parked messages are
 * looked at once more: the first in line may be a parked one, which nobody else would wake.
 */
#include "store/sqlite/settle.h"

#include "base/cleanup.h"
#include "store/sqlite/detour.h"
#include "store/store.h"

#include <stdlib.h>

struct settling {
	struct lane_op *op;
	const char *owner;
	const struct receipt *last;
	struct receipt *next;
	struct detour_picks detours; /* of the claim */
	bool *from_log;              /* per settlement */
	size_t tail;                 /* so many at the end go back to the log */
};

static void settling_deinit(struct settling *w)
{
	detour_picks_deinit(&w->detours);
	free(w->from_log);
}

static int not_the_claim(const struct outbox_advance *request, const struct receipt *last,
			 struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EINVAL,
			   "target %s, lane %d: the outcomes given are not those of the %lld messages "
			   "in flight",
			   request->target, request->lane, (long long)last->claim_count);
}

/* Which outcomes belong to detours and which to log rows; both ascend. */
static int sort_out(struct settling *w, const struct outbox_advance *request,
		    struct outbox_error *err)
{
	const struct receipt *last = w->last;
	size_t d = 0;
	int r = OUTBOX_OK;

	if (request->n_settled != (size_t)last->claim_count)
		return not_the_claim(request, last, err);
	w->from_log = calloc(request->n_settled, sizeof(*w->from_log));
	if (!w->from_log)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (last->claim_detours)
		r = detour_claimed(w->op, &w->detours, err);
	if (r != OUTBOX_OK)
		return r;
	for (size_t i = 0; i < request->n_settled; i++) {
		int64_t seq = request->settled[i].seq;

		if (i > 0 && seq <= request->settled[i - 1].seq)
			return not_the_claim(request, last, err);
		if (d < w->detours.count && w->detours.seqs[d] == seq)
			d++;
		else if (seq > last->pos && seq <= last->claim_end)
			w->from_log[i] = true;
		else
			return not_the_claim(request, last, err);
	}
	if (d != w->detours.count)
		return not_the_claim(request, last, err);
	w->tail = store_returned_tail(request->settled, w->from_log, request->n_settled);
	return OUTBOX_OK;
}

struct fate {
	const char *state, *why;
	outbox_time due;
};

static int put(const struct settling *w, const struct outbox_settlement *o, bool from_log,
	       struct fate fate, struct outbox_error *err)
{
	const struct lane_op *op = w->op;

	return sqlite_run(op->s, from_log ? SQL_DETOUR_ADD : SQL_DETOUR_SET,
			  ARGS(ARG_TEXT(op->target), ARG_INT(o->seq), ARG_TEXT(fate.state),
			       ARG_TEXT(fate.why), ARG_INT(o->attempts), ARG_TIME(fate.due),
			       ARG_INT(o->suspect), ARG_TEXT(o->error), ARG_INT(op->now),
			       ARG_TEXT(w->owner), ARG_TIME(o->outcome ? w->next->n : 0),
			       ARG_INT(op->lane)),
			  NULL, err);
}

static int returned(const struct settling *w, const struct outbox_settlement *o, bool from_log,
		    struct outbox_error *err)
{
	/* Without an outcome: returning settles nothing, so no receipt tells about it. */
	const struct outbox_settlement fresh = { .seq = o->seq };
	const struct lane_op *op = w->op;

	if (from_log)
		return put(w, &fresh, true, (struct fate){ "pending", "retry", op->now }, err);
	return sqlite_run(op->s, SQL_DETOUR_RETURN,
			  ARGS(ARG_TEXT(op->target), ARG_INT(o->seq), ARG_INT(op->now)), NULL, err);
}

static int settle_one(const struct settling *w, const struct outbox_settlement *o, bool from_log,
		      struct outbox_error *err)
{
	struct receipt *next = w->next;
	const struct lane_op *op = w->op;

	switch (o->outcome) {
	case OUTBOX_OUT_DELIVERED:
		next->delivered++;
		if (from_log)
			return OUTBOX_OK;
		return sqlite_run(op->s, SQL_DETOUR_DELIVERED,
				  ARGS(ARG_TEXT(op->target), ARG_INT(o->seq), ARG_INT(op->now),
				       ARG_TEXT(w->owner), ARG_INT(next->n)),
				  NULL, err);
	case OUTBOX_OUT_RETURNED:
		return returned(w, o, from_log, err);
	case OUTBOX_OUT_WAITING:
		next->retried++;
		return put(w, o, from_log, (struct fate){ "pending", "retry", op->now + o->delay },
			   err);
	case OUTBOX_OUT_DEFERRED:
		next->deferred++;
		return put(w, o, from_log, (struct fate){ "pending", "deferred", o->due_at }, err);
	case OUTBOX_OUT_PARKED:
		next->parked++;
		return put(w, o, from_log, (struct fate){ "pending", "parked", 0 }, err);
	case OUTBOX_OUT_FAILED:
		next->failed++;
		return put(w, o, from_log, (struct fate){ "failed", NULL, 0 }, err);
	default:
		return outbox_fail(err, OUTBOX_EINVAL, "message %lld: outcome %d is unknown",
				   (long long)o->seq, o->outcome);
	}
}

/* Did this outcome open the way for somebody behind it, or is nobody before it any more? */
static bool may_promote(const struct outbox_settlement *o, bool from_log)
{
	switch (o->outcome) {
	case OUTBOX_OUT_PARKED:
		return true;
	case OUTBOX_OUT_DELIVERED:
	case OUTBOX_OUT_FAILED:
	case OUTBOX_OUT_DEFERRED:
		return !from_log;
	default:
		return false;
	}
}

static int promote(const struct settling *w, const struct outbox_advance *request,
		   struct outbox_error *err)
{
	bool viewed = false;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < request->n_settled && r == OUTBOX_OK; i++) {
		const struct outbox_settlement *o = &request->settled[i];

		if (!may_promote(o, w->from_log[i]))
			continue;
		if (!viewed)
			r = receipt_view(w->op, w->last->pos, err);
		viewed = true;
		if (r == OUTBOX_OK)
			r = detour_promote_behind(w->op, o->seq, err);
	}
	return r;
}

/* Where the lane stands now, and whether it may go faster again. */
static void move_on(const struct settling *w, const struct outbox_advance *request, size_t progress)
{
	struct receipt *next = w->next;

	next->pos = w->last->claim_end;
	if (w->tail)
		next->pos = request->settled[request->n_settled - w->tail].seq - 1;
	next->claim_end = next->pos;
	next->delivered_total += next->delivered;
	next->retried_total += next->retried;
	next->takeovers = progress ? 0 : w->last->takeovers;
	next->caution_left -= (int64_t)progress;
	if (next->caution_left < 0)
		next->caution_left = 0;
	if (!receipt_cautious(next))
		next->caution_end = 0;
}

int settle_claim(struct lane_op *op, const struct outbox_advance *request,
		 const struct receipt *last, struct receipt *next, struct outbox_error *err)
{
	_cleanup_(settling_deinit) struct settling w = {
		.op = op, .owner = request->owner, .last = last, .next = next
	};
	size_t progress = 0;
	int r;

	next->route_version = request->route_version;
	next->takeovers = last->takeovers;
	if (!last->claim_count && !request->n_settled)
		return OUTBOX_OK;
	r = sort_out(&w, request, err);
	for (size_t i = 0; r == OUTBOX_OK && i < request->n_settled - w.tail; i++) {
		const struct outbox_settlement *o = &request->settled[i];

		r = settle_one(&w, o, w.from_log[i], err);
		progress += o->outcome != OUTBOX_OUT_RETURNED;
	}
	if (r == OUTBOX_OK)
		r = promote(&w, request, err);
	if (r == OUTBOX_OK)
		move_on(&w, request, progress);
	return r;
}
