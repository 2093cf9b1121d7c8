/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_CLAIM_H
#define STORE_SQLITE_CLAIM_H

#include "store/sqlite/lane.h"

/* How far the log may run ahead of an idle lane before an empty receipt follows it. */
#define CLAIM_AHEAD 1000

/*
 * Choose the next messages after next->pos, mark its detours as being sent, and write the claim into
 * next. An empty claim may still have claim_end ahead of pos: rows of others that can be passed.
 */
int claim_next(struct lane_op *op, const struct outbox_settle_and_claim *request,
	       struct receipt *next, struct outbox_arena *arena, struct outbox_claim *claim,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Read the claim of a receipt again, for a request that was already done. */
int claim_again(struct lane_op *op, const struct outbox_settle_and_claim *request,
		const struct receipt *receipt, struct outbox_arena *arena,
		struct outbox_claim *claim, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Without writing: is there anything to claim, or a reason to move the position? */
int claim_possible(struct lane_op *op, const struct outbox_settle_and_claim *request,
		   const struct receipt *last, bool *ret_possible,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* When the lane's next waiting or deferred delivery is due; 0: none. */
int claim_next_due(const struct lane_op *op, outbox_time *ret_due,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
