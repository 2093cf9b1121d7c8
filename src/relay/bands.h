/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_BANDS_H
#define RELAY_BANDS_H

/*
 * Bands, a target's messages by priority class, are targets: NAME-high, NAME and NAME-low, each with its own lanes, workers and breaker, so that a bulk
 * in one of them delays nobody in another. Where a message belongs is the store's business: see target_put().
 */

#include "relay/plan.h"

#include <outbox/store.h>

/*
 * Register every target of the plan. Targets that are left of bands which were switched off are added to the
 * plan: they have messages that nobody else will send.
 */
int bands_register(struct relay_plan *plan, struct outbox_store *store, struct outbox_arena *arena,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
