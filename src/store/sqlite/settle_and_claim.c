/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settle and claim: one short IMMEDIATE transaction, one receipt. On the straight path these are six
 * statements for a whole batch: begin, last receipt, view, log, insert, commit.
 *
 * An idle lane takes no write lock and writes nothing. It looks in a read transaction first; only what
 * is found there is worth the lock. Writing starts from the beginning, since between the two anything
 * may have happened.
 *
 * Settling is by core/settlement.h: what is covered lies in the receipt's range (from_seq, pos], and the
 * position stops before the tail that is returned. When all is written, the keys of finished and deferred
 * detours and of newly parked messages are looked at once more: the first in line may be a parked one,
 * which nobody else would wake.
 */
#include "base/cleanup.h"
#include "base/failpoint.h"
#include "store/sqlite/claim.h"
#include "store/sqlite/detour.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdlib.h>

/* ---- settling ----------------------------------------------------------------------------------- */

struct settling {
	struct lane_op *op;
	const char *owner;
	const struct receipt *last;
	struct receipt *next;
	struct detour_picks detours; /* of the claim */
	bool *from_log, *frees;      /* per settlement; frees: its key's next one may be woken */
	size_t tail;                 /* this many at the end go back to the log */
};

static void settling_deinit(struct settling *w)
{
	detour_picks_deinit(&w->detours);
	free(w->from_log);
	free(w->frees);
}

static int not_the_claim(const struct outbox_settle_and_claim *request, const struct receipt *last,
			 struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EINVAL,
			   "target %s, lane %d: the outcomes given are not those of the %lld messages "
			   "in flight",
			   request->target, request->lane, (long long)last->claim_count);
}

/* Which outcomes belong to detours and which to log rows; both ascend. */
static int match_claim(struct settling *w, const struct outbox_settle_and_claim *request,
		       struct outbox_error *err)
{
	const struct receipt *last = w->last;
	size_t d = 0;
	int r = OUTBOX_OK;

	if (request->n_settled != (size_t)last->claim_count)
		return not_the_claim(request, last, err);
	w->from_log = calloc(request->n_settled, sizeof(*w->from_log));
	w->frees = calloc(request->n_settled, sizeof(*w->frees));
	if (!w->from_log || !w->frees)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (last->claim_detours)
		r = detour_claimed(w->op, &w->detours, err);
	if (r != OUTBOX_OK)
		return r;
	for (size_t i = 0; i < request->n_settled; i++) {
		int64_t seq = request->settled[i].seq;

		if (d < w->detours.count && w->detours.list[d].seq == seq)
			d++;
		else if (seq > last->pos && seq <= last->claim_end)
			w->from_log[i] = true;
		else
			return not_the_claim(request, last, err);
	}
	if (d != w->detours.count)
		return not_the_claim(request, last, err);
	w->tail = settlement_returned_tail(request->settled, w->from_log, request->n_settled);
	return OUTBOX_OK;
}

static int write_effect(const struct settling *w, int64_t seq, bool from_log,
			const struct settlement_effect *effect, struct outbox_error *err)
{
	const struct detour_state *detour = &effect->detour;
	const struct lane_op *op = w->op;

	return sqlite_run(op->s, from_log ? SQL_DETOUR_ADD : SQL_DETOUR_SET,
			  ARGS(ARG_TEXT(op->target), ARG_INT(seq),
			       ARG_TEXT(outbox_state_name(detour->state)),
			       ARG_TEXT(outbox_why_name(detour->why)), ARG_INT(detour->attempts),
			       ARG_TIME(detour->next_attempt_at), ARG_TIME(detour->failing_since),
			       ARG_INT(detour->suspect), ARG_TEXT(effect->error), ARG_INT(op->now),
			       ARG_TEXT(w->owner), ARG_TIME(effect->settles ? w->next->n : 0),
			       ARG_TIME(detour->ready_at), ARG_INT(op->lane)),
			  err);
}

/* All but the tail. */
static int write_effects(const struct settling *w, const struct outbox_settle_and_claim *request,
			 struct outbox_error *err)
{
	size_t d = 0;
	int r = OUTBOX_OK;

	for (size_t i = 0; r == OUTBOX_OK && i < request->n_settled - w->tail; i++) {
		const struct outbox_settlement *o = &request->settled[i];
		struct settlement_effect effect;

		r = settlement_apply(w->from_log[i] ? NULL : &w->detours.list[d++].detour, o,
				     w->op->now, &effect, err);
		if (r == OUTBOX_OK && !effect.covered)
			r = write_effect(w, o->seq, w->from_log[i], &effect, err);
		if (r == OUTBOX_OK && o->attempt)
			r = detour_add_attempt(w->op, w->next->n, o, err);
		if (r == OUTBOX_OK)
			w->frees[i] = effect.frees_key;
		settlement_count(&w->next->counts, o->outcome);
	}
	return r;
}

static int wake_keys(const struct settling *w, const struct outbox_settle_and_claim *request,
		     struct outbox_error *err)
{
	bool viewed = false;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < request->n_settled && r == OUTBOX_OK; i++) {
		if (!w->frees[i])
			continue;
		if (!viewed)
			r = lane_view_check(w->op, w->last->pos, err);
		viewed = true;
		if (r == OUTBOX_OK)
			r = detour_promote_behind(w->op, request->settled[i].seq, err);
	}
	return r;
}

/* Where the lane stands now, and whether it may go faster again. */
static void move_position(const struct settling *w, const struct outbox_settle_and_claim *request)
{
	struct receipt *next = w->next;

	next->pos = w->last->claim_end;
	if (w->tail)
		next->pos = request->settled[request->n_settled - w->tail].seq - 1;
	next->claim_end = next->pos;
	next->delivered_total += next->counts.delivered;
	next->retried_total += next->counts.retried;
	next->caution =
		caution_settle(&w->last->caution, next->pos, settlement_progress(&next->counts));
}

static int settle_claim(struct lane_op *op, const struct outbox_settle_and_claim *request,
			const struct receipt *last, struct receipt *next, struct outbox_error *err)
{
	_cleanup_(settling_deinit) struct settling w = {
		.op = op, .owner = request->owner, .last = last, .next = next
	};
	int r;

	next->route_version = request->route_version;
	next->caution = last->caution;
	next->caution.suspect_seq = 0;
	if (!last->claim_count && !request->n_settled)
		return OUTBOX_OK;
	r = match_claim(&w, request, err);
	if (r == OUTBOX_OK)
		r = write_effects(&w, request, err);
	if (r == OUTBOX_OK)
		r = wake_keys(&w, request, err);
	if (r == OUTBOX_OK)
		move_position(&w, request);
	return r;
}

/* ---- the whole step ----------------------------------------------------------------------------- */

static int fenced(const struct outbox_settle_and_claim *request, const struct receipt *last,
		  struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EFENCED,
			   "target %s, lane %d: receipt %lld is no longer the last one (%lld is); "
			   "another relay has the lane",
			   request->target, request->lane, (long long)request->n,
			   (long long)last->n);
}

static bool is_ours(const struct outbox_settle_and_claim *request, const struct receipt *last)
{
	return last->n == request->n && last->fence_token == request->fence_token;
}

static bool is_done(const struct outbox_settle_and_claim *request, const struct receipt *last)
{
	return last->n == request->n + 1 && last->fence_token == request->new_token;
}

/* Read what the claim depends on. *ret_may: claiming is allowed. */
static int may_claim(struct lane_op *op, const struct outbox_settle_and_claim *request, int64_t pos,
		     struct outbox_claim *claim, bool *ret_may, struct outbox_error *err)
{
	int r = lane_view_check(op, pos, err);

	if (r != OUTBOX_OK)
		return r;
	claim->paused = op->view.paused;
	claim->stale_route = op->view.version != request->route_version;
	*ret_may = request->max_messages > 0 && !claim->paused && !claim->stale_route;
	return OUTBOX_OK;
}

static void describe_receipt(const struct receipt *last, struct outbox_claim *claim)
{
	claim->n = last->n;
	claim->fence_token = last->fence_token;
	claim->cautious = receipt_cautious(last);
}

/* Nothing is in flight: is there anything to do at all? */
static int find_work(struct lane_op *op, const struct outbox_settle_and_claim *request,
		     struct outbox_claim *claim, bool *ret_work, struct outbox_error *err)
{
	struct receipt last;
	bool may;
	int r = receipt_last(op, &last, err);

	if (r != OUTBOX_OK)
		return r;
	if (is_done(request, &last)) {
		*ret_work = true;
		return OUTBOX_OK;
	}
	if (!is_ours(request, &last))
		return fenced(request, &last, err);
	r = may_claim(op, request, last.pos, claim, &may, err);
	*ret_work = last.claim_count > 0;
	if (r == OUTBOX_OK && may && !*ret_work)
		r = claim_possible(op, request, &last, ret_work, err);
	if (r == OUTBOX_OK && !*ret_work)
		r = claim_next_due(op, &claim->next_due, err);
	describe_receipt(&last, claim);
	return r;
}

static int repeat_claim(struct lane_op *op, const struct outbox_settle_and_claim *request,
			const struct receipt *last, struct outbox_arena *arena,
			struct outbox_claim *claim, struct outbox_error *err)
{
	bool may;
	int r = may_claim(op, request, last->pos, claim, &may, err);

	if (r == OUTBOX_OK)
		r = claim_again(op, request, last, arena, claim, err);
	if (r == OUTBOX_OK)
		r = claim_next_due(op, &claim->next_due, err);
	describe_receipt(last, claim);
	return r;
}

static int settle_and_claim(struct lane_op *op, const struct outbox_settle_and_claim *request,
			    const struct receipt *last, struct outbox_arena *arena,
			    struct outbox_claim *claim, struct outbox_error *err)
{
	struct receipt next = receipt_next(last, request->new_token, op->now);
	bool may, write;
	int r = settle_claim(op, request, last, &next, err);

	if (r == OUTBOX_OK)
		r = may_claim(op, request, next.pos, claim, &may, err);
	if (r == OUTBOX_OK && may)
		r = claim_next(op, request, &next, arena, claim, err);
	if (r == OUTBOX_OK)
		r = claim_next_due(op, &claim->next_due, err);
	if (r != OUTBOX_OK)
		return r;
	/* Rows of others only: pass them, at once when a receipt is written anyway. */
	if (!claim->count && (last->claim_count || next.claim_end - next.pos > CLAIM_AHEAD))
		next.pos = next.claim_end;
	next.claim_end = claim->count ? next.claim_end : next.pos;
	write = last->claim_count || claim->count || next.pos > last->pos;
	if (write)
		r = receipt_append(op, request->owner, &next, err);
	claim->n = write ? next.n : last->n;
	claim->fence_token = write ? next.fence_token : last->fence_token;
	claim->cautious = receipt_cautious(&next);
	return r;
}

static int settle_lane(struct lane_op *op, const struct outbox_settle_and_claim *request,
		       struct outbox_arena *arena, struct outbox_claim *claim,
		       struct outbox_error *err)
{
	struct receipt last;
	int r = receipt_last(op, &last, err);

	if (r != OUTBOX_OK)
		return r;
	if (is_ours(request, &last))
		return settle_and_claim(op, request, &last, arena, claim, err);
	if (is_done(request, &last))
		return repeat_claim(op, request, &last, arena, claim, err);
	return fenced(request, &last, err);
}

int sqlite_settle_and_claim(struct outbox_store *store,
			    const struct outbox_settle_and_claim *request,
			    struct outbox_arena *arena, struct outbox_claim *ret_claim,
			    struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct lane_op op = {
		.s = s, .target = request->target, .lane = request->lane, .now = sqlite_now(s)
	};
	struct outbox_claim claim = { .store_now = op.now };
	bool work = true;
	int r = OUTBOX_OK;

	if (!request->n_settled) {
		r = sqlite_enter(s, DB_READ, err);
		if (r != OUTBOX_OK)
			return r;
		r = sqlite_end(s, find_work(&op, request, &claim, &work, err), err);
	}
	if (r == OUTBOX_OK && work) {
		r = sqlite_enter(s, DB_WRITE, err);
		if (r != OUTBOX_OK)
			return r;
		/* now that the lock is ours: waiting for it may have taken seconds */
		op.now = sqlite_now(s);
		claim = (struct outbox_claim){ .store_now = op.now };
		r = settle_lane(&op, request, arena, &claim, err);
		failpoint("before_commit");
		r = sqlite_end(s, r, err);
		failpoint("after_commit");
	}
	if (r == OUTBOX_OK)
		*ret_claim = claim;
	return numbers_note_refusal(s, request->target, request->lane, r);
}
