/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_SETTLE_H
#define STORE_SQLITE_SETTLE_H

#include "store/sqlite/receipt.h"

/*
 * Make the outcomes of the claim in `last` durable: detours are written, and next gets the position
 * after it and the counts. EINVAL when the outcomes are not those of that claim.
 */
int settle_claim(struct lane_op *op, const struct outbox_settle_and_claim *request,
		 const struct receipt *last, struct receipt *next,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
