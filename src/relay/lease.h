/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_LEASE_H
#define RELAY_LEASE_H

/* Which lanes are a worker's, and whether it serves its target at all. */

#include "relay/lane.h"

/* Does a worker serve its target? */
enum unserved {
	UNSERVED_UNKNOWN = 0, /* the store was not asked yet */
	UNSERVED_NOT,         /* it does */
	UNSERVED_FOR_NOW,     /* somebody is in the way, who may be dead and go by himself */
	UNSERVED              /* until somebody repairs it */
};

struct lease {
	char place[OUTBOX_PLACE_MAX]; /* where the target is sent to; "": not known */
	bool held;                    /* the store has answered: the lanes are what it says */
	bool standby;                 /* there is no lane for it, and that was told */
	/* Why nothing of the target is served, until somebody repairs something, elsewhere or in the configuration;
	 * status 0: it is. Others go on; people are told by a log line and by the store, for status, doctor and
	 * alerts. */
	struct outbox_error unserved;
	outbox_time unserved_since;
	_Atomic int shown_unserved; /* enum unserved */
};

void lease_init(struct lease *lease, const struct link *link);

/* One round of lease keeping: say that we are alive, and bring our lanes in line with what the store says we hold. */
void lease_keep(struct lease *lease, struct link *link, struct lanes *lanes, outbox_time now);

/* Say goodbye, so that the others' shares grow at once. Why it was not served stays known. */
void lease_leave(struct lease *lease, struct link *link, const struct lanes *lanes);

/* A lane is not ours any more, or we go. */
void lanes_remove(struct lanes *lanes, struct lane *lane, struct link *link);

/* Forget it, for another run. */
void lease_reset(struct lease *lease);

#endif
