/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_REPLAY_RUN_H
#define CLI_REPLAY_RUN_H

/* From a feed through a spool to one target, by the relay that delivers everything else. */

#include "cli/replay.h"
#include "cli/spool.h"

struct replay {
	struct cli *cli;
	struct replay_filter filter;
	struct outbox_target_config target;
	struct feed *feed;
	struct spool *spool;
	outbox_time began;
	bool from_log, salvage;
	/* what was found */
	int64_t wanted, unfit; /* unfit: passed over, since they would be refused */
	outbox_time oldest, newest;
	/* what was done, by this run */
	struct outbox_relay_counts counts;
	int64_t left; /* in the spool at the end: failed, or held behind those */
	int signal;   /* that ended it early; 0: none */
};

/* Read all of it, send nothing: every line is looked at before the first one goes. */
int replay_scan(struct replay *replay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Deliver what the spool holds and the rest of the feed. */
int replay_deliver(struct replay *replay, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
