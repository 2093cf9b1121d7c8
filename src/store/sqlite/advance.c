/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Settle and claim: one short IMMEDIATE transaction, one receipt. On the straight path these are six
 * statements for a whole batch: begin, last receipt, view, log, insert, commit.
 *
 * An idle lane takes no write lock and writes nothing. It looks in a read transaction first; only what
 * is found there is worth the lock. Writing starts from the beginning, since between the two anything
 * may have happened.
 */
#include "base/cleanup.h"
#include "base/failpoint.h"
#include "store/sqlite/claim.h"
#include "store/sqlite/numbers.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/settle.h"

static int fenced(const struct outbox_settle_and_claim *request, const struct receipt *last,
		  struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EFENCED,
			   "target %s, lane %d: receipt %lld is not the last one any more (%lld is); "
			   "somebody else has the lane",
			   request->target, request->lane, (long long)request->n,
			   (long long)last->n);
}

static bool is_ours(const struct outbox_settle_and_claim *request, const struct receipt *last)
{
	return last->n == request->n && last->token == request->token;
}

static bool is_done(const struct outbox_settle_and_claim *request, const struct receipt *last)
{
	return last->n == request->n + 1 && last->token == request->new_token;
}

/* Read what the claim depends on. True: claiming is allowed. */
static int may_claim(struct lane_op *op, const struct outbox_settle_and_claim *request, int64_t pos,
		     struct outbox_claim *claim, bool *ret_may, struct outbox_error *err)
{
	int r = receipt_view(op, pos, err);

	if (r != OUTBOX_OK)
		return r;
	claim->paused = op->view.paused;
	claim->stale_route = op->view.version != request->route_version;
	*ret_may = request->max_messages > 0 && !claim->paused && !claim->stale_route;
	return OUTBOX_OK;
}

/* Nothing is in flight: is there anything to do at all? */
static int look(struct lane_op *op, const struct outbox_settle_and_claim *request,
		struct outbox_claim *claim, bool *ret_work, struct outbox_error *err)
{
	struct receipt last;
	bool may;
	int r;

	r = receipt_last(op, &last, err);
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
	claim->n = last.n;
	claim->token = last.token;
	claim->cautious = receipt_cautious(&last);
	return r;
}

static int repeat(struct lane_op *op, const struct outbox_settle_and_claim *request,
		  const struct receipt *last, struct outbox_arena *arena,
		  struct outbox_claim *claim, struct outbox_error *err)
{
	bool may;
	int r;

	r = may_claim(op, request, last->pos, claim, &may, err);
	if (r == OUTBOX_OK)
		r = claim_again(op, request, last, arena, claim, err);
	if (r == OUTBOX_OK)
		r = claim_next_due(op, &claim->next_due, err);
	claim->n = last->n;
	claim->token = last->token;
	claim->cautious = receipt_cautious(last);
	return r;
}

static int settle_and_claim(struct lane_op *op, const struct outbox_settle_and_claim *request,
			    const struct receipt *last, struct outbox_arena *arena,
			    struct outbox_claim *claim, struct outbox_error *err)
{
	struct receipt next = receipt_next(last, request->new_token, op->now);
	bool may, write;
	int r;

	r = settle_claim(op, request, last, &next, err);
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
	claim->token = write ? next.token : last->token;
	claim->cautious = receipt_cautious(&next);
	return r;
}

static int advance(struct lane_op *op, const struct outbox_settle_and_claim *request,
		   struct outbox_arena *arena, struct outbox_claim *claim, struct outbox_error *err)
{
	struct receipt last;
	int r;

	r = receipt_last(op, &last, err);
	if (r != OUTBOX_OK)
		return r;
	if (is_ours(request, &last))
		return settle_and_claim(op, request, &last, arena, claim, err);
	if (is_done(request, &last))
		return repeat(op, request, &last, arena, claim, err);
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
		r = sqlite_end(s, look(&op, request, &claim, &work, err), err);
	}
	if (r == OUTBOX_OK && work) {
		r = sqlite_enter(s, DB_WRITE, err);
		if (r != OUTBOX_OK)
			return r;
		/* now that the lock is ours: waiting for it may have taken seconds */
		op.now = sqlite_now(s);
		claim = (struct outbox_claim){ .store_now = op.now };
		r = advance(&op, request, arena, &claim, err);
		failpoint("before_commit");
		r = sqlite_end(s, r, err);
		failpoint("after_commit");
	}
	if (r == OUTBOX_OK)
		*ret_claim = claim;
	return numbers_note_refusal(s, request->target, request->lane, r);
}
