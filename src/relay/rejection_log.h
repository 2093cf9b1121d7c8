/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_REJECTION_LOG_H
#define RELAY_REJECTION_LOG_H

/* Messages of a worker's target that were refused: counted, and told of at most once a minute. */

#include "relay/batch.h"
#include "relay/plan.h"

struct rejection_log {
	const struct relay_plan *plan;
	const struct target_plan *target;
	size_t count;     /* not yet told of */
	outbox_time next; /* mono: the next line may be written then */
	char id[80];      /* of the last one that failed, else of the last one */
	const char *kind;
	int native;
	bool failed;
	bool delivered; /* since */
};

void rejection_log_init(struct rejection_log *r, const struct relay_plan *plan,
			const struct target_plan *target);

/* This batch is settled: count what was refused. */
void rejection_log_add(struct rejection_log *r, const struct batch *b, outbox_time now);

/* Tell what was counted and not told: at the end. */
void rejection_log_flush(struct rejection_log *r);

#endif
