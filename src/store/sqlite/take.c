/* SPDX-License-Identifier: Apache-2.0 */

/* Taking over: core/caution.h says what a new owner must suspect. */
#include "base/cleanup.h"
#include "store/sqlite/numbers.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/receipt.h"

/* What was in flight is pending again. */
static int reclaim(const struct lane_op *op, const struct receipt *last, bool *ret_suspect,
		   struct outbox_error *err)
{
	int64_t suspect = 0;
	int r = OUTBOX_OK;

	if (last->claim_detours)
		r = sqlite_number(op->s, SQL_DETOUR_SUSPECT,
				  ARGS(ARG_TEXT(op->target), ARG_INT(last->claim_seq)), 0, &suspect,
				  err);
	if (r == OUTBOX_OK && last->claim_detours)
		r = sqlite_run(op->s, SQL_DETOUR_RECLAIM,
			       ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now)),
			       NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(op->s, SQL_LANE_TAKEN, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			       NULL, err);
	*ret_suspect = suspect != 0;
	return r;
}

int receipt_take_over(struct lane_op *op, const char *owner, int64_t token,
		      struct receipt *ret_receipt, struct outbox_error *err)
{
	struct caution_claim claim;
	struct receipt last, next;
	int r;

	r = receipt_last(op, &last, err);
	if (r != OUTBOX_OK)
		return r;
	if (last.token == token) {
		/* The very same request, done before. */
		*ret_receipt = last;
		return OUTBOX_OK;
	}
	r = receipt_view(op, last.pos, err);
	if (r != OUTBOX_OK)
		return r;
	claim = (struct caution_claim){ .count = last.claim_count,
					.detours = last.claim_detours,
					.first = last.claim_seq,
					.last = last.claim_last };
	if (last.claim_count > 0)
		r = reclaim(op, &last, &claim.first_is_suspect, err);
	next = receipt_next(&last, token, op->now);
	next.caution = caution_take_over(&last.caution, last.pos, &claim);
	if (r == OUTBOX_OK)
		r = receipt_append(op, owner, &next, err);
	if (r == OUTBOX_OK)
		*ret_receipt = next;
	return r;
}

int sqlite_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
		     int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct lane_op op = { .s = s, .target = target, .lane = lane };
	struct receipt receipt, last = { 0 };
	int r;

	r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	op.now = sqlite_now(s);
	r = receipt_last(&op, &last, err);
	if (r == OUTBOX_OK)
		r = receipt_take_over(&op, owner, new_token, &receipt, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_head = (struct outbox_head){
			.n = receipt.n,
			.token = receipt.token,
			.takeovers = (int)receipt.caution.takeovers,
			.cautious = receipt_cautious(&receipt),
			.suspect_seq = receipt.caution.suspect_seq,
			.in_flight = last.token == new_token ? 0 : last.claim_count,
		};
	return numbers_note_refusal(s, target, lane, r);
}
