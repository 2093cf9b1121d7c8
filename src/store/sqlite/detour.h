/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_DETOUR_H
#define STORE_SQLITE_DETOUR_H

/* Deliveries that did not go straight through: which may be sent now, and who waits behind whom. */

#include "core/settlement.h"
#include "store/sqlite/lane.h"

struct detour_pick {
	int64_t seq;
	struct detour_state detour; /* of detour_pick(): suspect alone */
};

/* Detours that a claim may take or has taken, ascending seq. */
struct detour_picks {
	struct detour_pick *list;
	size_t count, capacity;
};

void detour_picks_deinit(struct detour_picks *picks);

/*
 * Due ones that are first in their key, and the run behind each: parked or due, up to the first that
 * is neither. Deferred ones that are not due are passed over. About max of them.
 */
int detour_pick(const struct lane_op *op, size_t max, struct detour_picks *picks,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Those that the lane's last receipt claims, with all that settling them takes. */
int detour_claimed(const struct lane_op *op, struct detour_picks *picks,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Would a claim take a detour now? */
int detour_any_due(const struct lane_op *op, bool *ret_any,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Must a message of this key wait behind a detour before it that is not being sent? */
int detour_blocks(const struct lane_op *op, const char *key, int64_t seq, bool *ret_blocked,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* If the first unfinished detour of this key is parked, it is due now. NULL key: nothing to do. */
int detour_promote(const struct lane_op *op, const char *key,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The same for the key of a detour. */
int detour_promote_behind(const struct lane_op *op, int64_t seq,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A try that failed, settled by receipt n: a row of the history. */
int detour_add_attempt(const struct lane_op *op, int64_t n,
		       const struct outbox_settlement *settlement,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
