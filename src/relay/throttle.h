/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_THROTTLE_H
#define RELAY_THROTTLE_H

/*
 * A target's rate limit in this process, shared by the workers of all its bands. A claim takes its permits first
 * and is never larger: nobody waits with a claim in hand. A higher band that was refused goes before
 * lower ones, which get what it does not want.
 */

#include "relay/bucket.h"

#include <pthread.h>
#include <stdatomic.h>

enum throttle_rank { RANK_HIGH = 0, RANK_NORMAL, RANK_LOW, RANKS };

struct throttle {
	pthread_mutex_t mutex;
	bool limited; /* false: permits without end */
	struct bucket bucket;
	outbox_time wanted[RANKS]; /* mono; until then this rank goes before those behind it */
	_Atomic outbox_time holds_until; /* mono; somebody was refused and waits */
};

/* count 0: no limit. burst as in bucket_init(). */
void throttle_init(struct throttle *throttle, int64_t count, outbox_time period, int64_t burst,
		   outbox_time now);
void throttle_deinit(struct throttle *throttle);

/* Another limit from now on; from any thread. */
void throttle_change(struct throttle *throttle, int64_t count, outbox_time period, int64_t burst,
		     outbox_time now);

/* Permits for a claim of up to want messages. 0: *ret_again is when to ask again (mono). */
size_t throttle_take(struct throttle *throttle, enum throttle_rank rank, size_t want,
		     outbox_time now, outbox_time *ret_again);

/* What became of them. More used than taken (a claim that was made before and read again) is owed. */
void throttle_used(struct throttle *throttle, enum throttle_rank rank, size_t taken, size_t used,
		   outbox_time now);

/* Does somebody wait for permits? From any thread. */
bool throttle_holds(struct throttle *throttle, outbox_time now);

#endif
