/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Taking over.
 *
 * An owner that dies with messages in flight may have died of one of them. The first time is taken as
 * bad luck. The second time in a row, nothing settled in between, the lane becomes cautious: one
 * message at a time until as many messages as were in flight are settled and the position has passed
 * the last of them. Whoever dies in that mode leaves exactly one message in flight: the suspect.
 */
#include "base/cleanup.h"
#include "store/sqlite/numbers.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/receipt.h"

#define CAUTIOUS_FROM 2

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Only one message was in flight, and there is reason to look at it. */
static int find_suspect(const struct lane_op *op, const struct receipt *last, int64_t *ret_seq,
			struct outbox_error *err)
{
	int64_t suspect = receipt_cautious(last);
	int r = OUTBOX_OK;

	if (last->claim_count == 1 && !suspect && last->claim_detours)
		r = sqlite_number(op->s, SQL_DETOUR_SUSPECT,
				  ARGS(ARG_TEXT(op->target), ARG_INT(last->claim_seq)), 0, &suspect,
				  err);
	if (r == OUTBOX_OK)
		*ret_seq = last->claim_count == 1 && suspect ? last->claim_seq : 0;
	return r;
}

static int reclaim(const struct lane_op *op, const struct receipt *last, struct receipt *next,
		   struct outbox_error *err)
{
	int r;

	next->takeovers = last->takeovers + 1;
	if (next->takeovers >= CAUTIOUS_FROM) {
		next->caution_end = larger(last->caution_end, last->claim_last);
		next->caution_left = larger(last->caution_left, last->claim_count);
	}
	r = find_suspect(op, last, &next->suspect_seq, err);
	if (r == OUTBOX_OK && last->claim_detours)
		r = sqlite_run(op->s, SQL_DETOUR_RECLAIM,
			       ARGS(ARG_TEXT(op->target), ARG_INT(op->lane), ARG_INT(op->now)),
			       NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_run(op->s, SQL_LANE_TAKEN, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)),
			       NULL, err);
	return r;
}

int receipt_take_over(struct lane_op *op, const char *owner, int64_t token,
		      struct receipt *ret_receipt, struct outbox_error *err)
{
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
	next = receipt_next(&last, token, op->now);
	if (last.claim_count > 0)
		r = reclaim(op, &last, &next, err);
	if (r == OUTBOX_OK)
		r = receipt_append(op, owner, &next, err);
	if (r == OUTBOX_OK)
		*ret_receipt = next;
	return r;
}

int sqlite_take(struct outbox_store *store, const char *target, int lane, const char *owner,
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
			.takeovers = (int)receipt.takeovers,
			.cautious = receipt_cautious(&receipt),
			.suspect_seq = receipt.suspect_seq,
			.in_flight = last.token == new_token ? 0 : last.claim_count,
		};
	return numbers_note_refusal(s, target, lane, r);
}
