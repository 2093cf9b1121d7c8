/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_CLOCK_H
#define OUTBOX_CLOCK_H

/*
 * Time and randomness are always handed in, so that a test or a simulator can own them.
 *
 * All times are microseconds in a signed 64-bit integer. Wall times count from 1970 UTC; monotonic
 * times count from anywhere and never go back. A duration is an outbox_time too.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t outbox_time;

#define OUTBOX_MICROSECONDS ((outbox_time)1)
#define OUTBOX_MILLISECONDS ((outbox_time)1000)
#define OUTBOX_SECONDS ((outbox_time)1000000)
#define OUTBOX_MINUTES (60 * OUTBOX_SECONDS)
#define OUTBOX_HOURS (60 * OUTBOX_MINUTES)
#define OUTBOX_DAYS (24 * OUTBOX_HOURS)
#define OUTBOX_NEVER INT64_MAX

/* Embed as first member to make a clock of your own. Both functions must be thread-safe. */
struct outbox_clock {
	outbox_time (*wall)(struct outbox_clock *clock);
	outbox_time (*mono)(struct outbox_clock *clock);
};

/* Embed as first member to make a generator of your own. Used by one thread at a time. */
struct outbox_random {
	uint64_t (*next)(struct outbox_random *random);
};

/* The system's clock (CLOCK_REALTIME, CLOCK_BOOTTIME). Never NULL, shared, never freed. */
struct outbox_clock *outbox_clock_system(void);

#ifdef __cplusplus
}
#endif

#endif
