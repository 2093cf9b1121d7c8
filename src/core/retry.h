/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_RETRY_H
#define CORE_RETRY_H

#include <outbox/relay.h>

/*
 * The delay before the next try after `attempts` failed ones (>= 1), jitter included. False: used up,
 * by count, by the end of the schedule, or because the next try would lie beyond the budget.
 * failing_since and now are store times; random may be NULL: no jitter.
 */
bool retry_delay(const struct outbox_policy *policy, int attempts, outbox_time failing_since,
		 outbox_time now, struct outbox_random *random, outbox_time *ret_delay);

/* The delay before the first repeat, however many tries are left: for what is not charged. */
outbox_time retry_first_delay(const struct outbox_policy *policy, struct outbox_random *random);

/* Tries in all, the first included, by count or by the schedule's length. 0: no limit. */
int retry_tries(const struct outbox_policy *policy);

/* ECONFIG when a number is invalid or contradicts another; the error names the field. */
int retry_check(const struct outbox_policy *policy, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
