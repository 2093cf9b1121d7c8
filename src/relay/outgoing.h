/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_OUTGOING_H
#define RELAY_OUTGOING_H

/* What leaves differs from what was stored: for external targets, and in a replay. */

#include "relay/batch.h"
#include "relay/plan.h"

/*
 * The mark of a replayed message, a header: when the replay began. In the spool the message's sequence follows,
 * after a space: what leaves has its own place in the log, not the one in the spool.
 */
#define REPLAY_HEADER "replayed"

/* The batch has begun: make its items what is to leave. ENOMEM. */
int outgoing_prepare(struct batch *batch, const struct relay_plan *plan,
		     const struct target_plan *target, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
