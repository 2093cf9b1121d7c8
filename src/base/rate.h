/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_RATE_H
#define BASE_RATE_H

/* "50/s", "3000/min", "100/h": how many in which time, as people write it. */

#include <outbox/clock.h>
#include <outbox/error.h>

#define RATE_COUNT_MAX 1000000000 /* in a second, a minute or an hour */

struct rate {
	int64_t count;      /* 0: no limit */
	outbox_time period; /* 0 with count 0 */
};

/* Also "none": no limit. EINVAL: '"50/sec" is not a rate; write 50/s, 3000/min or "none"'. */
int rate_parse(const char *text, struct rate *ret_rate, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The reverse: "50/s", "none"; a period of another length as "50/10s". */
#define RATE_TEXT_MAX 64
const char *rate_format(const struct rate *rate, char out[RATE_TEXT_MAX]);

#endif
