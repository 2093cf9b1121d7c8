/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_BUCKET_H
#define RELAY_BUCKET_H

/*
 * A token bucket: a permit is one message that may be sent. It fills evenly, count permits in a period, up to
 * burst, however long nobody took any. Pure: the time is handed in, and may stand still but is not
 * believed when it goes back. One thread at a time.
 */

#include <outbox/clock.h>

#include <stdbool.h>
#include <stddef.h>

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

/* Another rate from now on. What is in it stays, as far as it fits. */
void bucket_change(struct bucket *bucket, int64_t count, outbox_time period, int64_t burst,
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

#endif
