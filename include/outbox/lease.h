/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_LEASE_H
#define OUTBOX_LEASE_H

/* Of the store contract: who works on which lanes of a target, and who would and does not. */

#include <outbox/clock.h>

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOX_LANES_MAX 256

struct outbox_lease_request {
	const char *target;
	const char *owner;     /* unique per worker: "host:pid:random/0" */
	outbox_time duration;  /* lease until store time + duration */
	int64_t route_version; /* from target_put */
	bool leaving;          /* renew what is still held, take nothing, count in no share */
	const char *outage; /* why the target is out of reach from here, for people; NULL: it is not */
	outbox_time outage_age;
	const char *place; /* where this worker sends to, without secrets; NULL: not known */
};

#define OUTBOX_PLACE_MAX 256

struct outbox_lease {
	int total;        /* lanes of the target */
	int share;        /* how many this worker should hold at most */
	bool stale_route; /* a newer routing is registered: this worker got no lanes */
	int count;
	int lanes[OUTBOX_LANES_MAX]; /* held now, ascending */
	outbox_time open_since; /* when the target was resumed, or else registered; 0: not known */
	/* A living worker that was here before sends this target elsewhere: this one got no lanes. Where to, and who
	 * it is. "": nobody does */
	char elsewhere[OUTBOX_PLACE_MAX], elsewhere_owner[OUTBOX_PLACE_MAX];
};

/* A relay is configured for a target and does not serve it. */
struct outbox_unserved {
	const char *target; /* need not be registered */
	const char *owner;
	outbox_time duration; /* shown for this long, unless it is repeated */
	const char *why;      /* for people; NULL: it is served, or the relay leaves */
};

#ifdef __cplusplus
}
#endif

#endif
