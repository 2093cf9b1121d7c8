/* SPDX-License-Identifier: Apache-2.0 */

#include "core/retry.h"

#include "base/random.h"
#include "base/text.h"

#include <inttypes.h>

#define FACTOR_MAX 1000.0
#define DELAY_MAX (3650 * OUTBOX_DAYS)

/* By squaring: attempts may be any number, and what overflows is infinite, so the cap holds. */
static double power(double factor, int exponent)
{
	double result = 1;

	for (; exponent > 0; exponent /= 2, factor *= factor) {
		if (exponent % 2)
			result *= factor;
	}
	return result;
}

static outbox_time exponential(const struct outbox_policy *policy, int attempts)
{
	outbox_time cap = policy->cap > 0 && policy->cap < DELAY_MAX ? policy->cap : DELAY_MAX;
	double delay = (double)policy->base * power(policy->factor, attempts - 1);

	if (!(delay < (double)cap)) /* also when it is not a number */
		return cap;
	return delay > 0 ? (outbox_time)delay : 0;
}

static outbox_time jitter(outbox_time delay, int percent, struct outbox_random *random)
{
	outbox_time span;

	if (!random || percent <= 0)
		return delay;
	span = delay / 100 * percent + delay % 100 * percent / 100;
	delay += random_between(random, -span, span);
	return delay < 0 ? 0 : delay;
}

static outbox_time planned(const struct outbox_policy *policy, int attempts)
{
	outbox_time delay;

	if (policy->n_schedule == 0)
		return exponential(policy, attempts);
	delay = policy->schedule[attempts - 1];
	return delay < DELAY_MAX ? delay : DELAY_MAX;
}

bool retry_delay(const struct outbox_policy *policy, int attempts, outbox_time failing_since,
		 outbox_time now, struct outbox_random *random, outbox_time *ret_delay)
{
	outbox_time delay, failing;
	int tries = retry_tries(policy);

	if (attempts < 1)
		attempts = 1;
	if (tries > 0 && attempts >= tries)
		return false;
	delay = jitter(planned(policy, attempts), policy->jitter_percent, random);
	failing = failing_since > 0 && failing_since < now ? now - failing_since : 0;
	if (policy->budget > 0 && delay > policy->budget - failing)
		return false;
	*ret_delay = delay;
	return true;
}

outbox_time retry_first_delay(const struct outbox_policy *policy, struct outbox_random *random)
{
	return jitter(planned(policy, 1), policy->jitter_percent, random);
}

int retry_tries(const struct outbox_policy *policy)
{
	int by_schedule = (int)policy->n_schedule + 1;

	if (policy->n_schedule == 0)
		return policy->max_attempts;
	if (policy->max_attempts > 0 && policy->max_attempts < by_schedule)
		return policy->max_attempts;
	return by_schedule;
}

static int check_schedule(const struct outbox_policy *policy, struct outbox_error *err)
{
	if (policy->n_schedule > OUTBOX_SCHEDULE_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "schedule: %zu delays, at most %d; shorten it",
				   policy->n_schedule, OUTBOX_SCHEDULE_MAX);
	if (policy->base != 0)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "schedule and base: both are set; keep one of them");
	for (size_t i = 0; i < policy->n_schedule; i++) {
		if (policy->schedule[i] < 0 || policy->schedule[i] > DELAY_MAX)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "schedule: delay %zu is %" PRId64
					   " us; write one from 0 to 10 years",
					   i + 1, policy->schedule[i]);
	}
	return OUTBOX_OK;
}

static int check_exponential(const struct outbox_policy *policy, struct outbox_error *err)
{
	char shown[DURATION_TEXT_MAX];

	if (policy->base <= 0 || policy->base > DELAY_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "base: %" PRId64
				   " us is not a first delay; write one above 0, such as 1s",
				   policy->base);
	if (policy->cap < policy->base)
		return outbox_fail(err, OUTBOX_ECONFIG, "cap: is below the base; write %s or more",
				   duration_exact(policy->base, shown));
	if (!(policy->factor >= 1.0 && policy->factor <= FACTOR_MAX))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "factor: %g is out of range; write a number from 1 to %g",
				   policy->factor, FACTOR_MAX);
	return OUTBOX_OK;
}

int retry_check(const struct outbox_policy *policy, struct outbox_error *err)
{
	const struct {
		const char *name;
		outbox_time value;
	} times[] = {
		{ "budget", policy->budget },
		{ "poll", policy->poll },
		{ "lease", policy->lease },
		{ "retain_delivered", policy->retain_delivered },
		{ "retain_failed", policy->retain_failed },
		{ "purge_interval", policy->purge_interval },
	};

	if (policy->max_attempts < 0)
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"max_attempts: %d is negative; write 0 for no limit, or the tries in all",
			policy->max_attempts);
	if (policy->jitter_percent < 0 || policy->jitter_percent > 100)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "jitter: %d is not a percentage; write a number from 0 to 100",
				   policy->jitter_percent);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i].value < 0)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "%s: %" PRId64 " us is negative; write 0 or more",
					   times[i].name, times[i].value);
	}
	return policy->n_schedule > 0 ? check_schedule(policy, err) : check_exponential(policy, err);
}
