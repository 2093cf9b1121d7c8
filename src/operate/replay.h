/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_REPLAY_H
#define OPERATE_REPLAY_H

/* From a replay source through a spool to one target, by the relay that delivers everything else. */

#include "operate/bulk.h"
#include "operate/replay_source.h"
#include "operate/spool.h"

#include <outbox/log.h>

struct replay {
	struct outbox_arena *arena;
	struct outbox_clock *clock;
	struct replay_filter filter;
	struct outbox_target_config target;
	struct replay_source *source;
	struct spool *spool;
	outbox_time began;
	bool from_log, salvage;
	outbox_log_fn log; /* of the relay that delivers; its context is NULL */
	/* Run this relay until it is idle; true: ended early, by whoever waits for it */
	int (*run)(void *context, struct outbox_relay *relay, bool *ret_ended,
		   struct outbox_error *err);
	void *context;
	/* what was found */
	int64_t wanted, unfit; /* unfit: passed over, since they would be refused */
	outbox_time oldest, newest;
	/* what was done, by this run */
	struct outbox_relay_counts counts;
	int64_t left; /* in the spool at the end: failed, or held behind those */
	bool ended;   /* early */
};

/* Read all of it, send nothing: every line is looked at before the first one goes. */
int replay_scan(struct replay *replay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Deliver what the spool holds and the rest of its source. */
int replay_deliver(struct replay *replay, const struct bulk *bulk,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
