/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_THROTTLE_H
#define RELAY_THROTTLE_H

/*
 * A target's rate limit in this process, shared by the workers of all its bands. A claim takes its permits first
 * and is never larger: nobody waits with a claim in hand. A higher band that was refused goes before
 * lower ones, which get what it does not want.
 */

#include <outbox/clock.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * A token bucket: a permit is one message that may be sent. It fills evenly, count permits in a period, up to
 * burst, however long nobody took any. Pure: the time is handed in, and may stand still but is not
 * believed when it goes back. One thread at a time.
 */

struct bucket {
	int64_t count;
	outbox_time period;
	int64_t burst;
	int64_t level; /* parts of a permit: each is `period` of them, and a microsecond brings `count`;
			   below 0: owed */
	outbox_time at; /* mono; the level is that of this time */
};

/* Full. burst 0: a second's worth, at least 1. count and period above 0, period at most an hour. */
void bucket_init(struct bucket *bucket, int64_t count, outbox_time period, int64_t burst,
		 outbox_time now);

/* Take up to want permits; returns how many there were. */
size_t bucket_take(struct bucket *bucket, size_t want, outbox_time now);

/* Put back what was not used. */
void bucket_give(struct bucket *bucket, size_t permits);

/* Permits were used that nobody took: they are missing from what comes next. */
void bucket_owe(struct bucket *bucket, size_t permits);

/* When there will be so many permits; now when there are. At most the burst is waited for. */
outbox_time bucket_next(struct bucket *bucket, size_t permits, outbox_time now);

/* What comes in about 100 ms, at least 1: fewer are not worth a claim. */
size_t bucket_portion(const struct bucket *bucket);

enum throttle_rank { RANK_HIGH = 0, RANK_NORMAL, RANK_LOW, RANKS };

struct throttle {
	pthread_mutex_t mutex;
	bool limited; /* false: permits without end */
	struct bucket bucket;
	outbox_time wanted[RANKS]; /* mono; until then this rank goes before those behind it */
	_Atomic outbox_time holds_until; /* mono; somebody was refused and waits */
};

/* count 0: no limit. burst as in bucket_init(). It holds nothing that must be freed. */
void throttle_init(struct throttle *throttle, int64_t count, outbox_time period, int64_t burst,
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
