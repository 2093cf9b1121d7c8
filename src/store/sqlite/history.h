/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_HISTORY_H
#define STORE_SQLITE_HISTORY_H

/* A lane's receipts as its history. */

#include "store/sqlite/receipt.h"

struct history {
	bool found; /* false: no receipt is that old, and the numbers are those before the oldest */
	int64_t n, pos, delivered_total, retried_total;
};

/*
 * Where the lane stood before `time`: the last receipt settled earlier. By halving, since a lane may
 * have a million receipts; exact as long as the clock did not go back.
 */
int history_before(const struct lane_op *op, int64_t last_n, outbox_time time,
		   struct history *ret_history, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
