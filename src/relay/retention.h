/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_RETENTION_H
#define RELAY_RETENTION_H

/* Retention and upkeep of the store, by one worker of a relay, between its batches. */

#include "relay/link.h"

struct archiver;

struct retention {
	bool keeper; /* one worker of a relay does it: the one of these that holds lane 0 */
	outbox_time purge_at, prune_at, maintain_at;
	struct outbox_purge purge; /* of the round under way: its times stay until it is done */
	struct archiver *archiver; /* NULL: not needed yet */
	const char *untidy;        /* the clean-up that failed and was told */
};

void retention_deinit(struct retention *retention);

/* When the next piece of work is due (mono); OUTBOX_NEVER when it is another one's. */
outbox_time retention_due(const struct retention *retention, const struct link *link,
			  bool first_lane);

/* One bounded purge, one step of an archive that comes before it, one bounded prune of the inbox, or one upkeep call. */
void retention_step(struct retention *retention, struct link *link, outbox_time now);

#endif
