/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/breaker.h"

#include "base/random.h"

void breaker_init(struct breaker *breaker, outbox_time min, outbox_time max)
{
	*breaker = (struct breaker){ .min = min, .max = max < min ? min : max };
}

outbox_time breaker_next(const struct breaker *breaker)
{
	if (!breaker->delay)
		return breaker->min;
	return breaker->delay > breaker->max / 2 ? breaker->max : breaker->delay * 2;
}

bool breaker_trip(struct breaker *breaker, outbox_time now, outbox_time asked,
		  struct outbox_random *random)
{
	bool was_closed = !breaker->delay;

	if (was_closed)
		breaker->since = now;
	breaker->delay = breaker_next(breaker);
	/* Jitter downwards only, so that `max` is what an operator reads in the configuration. */
	breaker->until = now + random_between(random, breaker->delay * 3 / 4, breaker->delay);
	/* The delay itself stays ours: what a broker asks for once is no measure for the next time. */
	if (breaker->until < now + asked)
		breaker->until = now + asked;
	return was_closed;
}

bool breaker_reset(struct breaker *breaker)
{
	bool was_open = breaker->delay != 0;

	breaker->delay = 0;
	breaker->until = 0;
	return was_open;
}

bool breaker_open(const struct breaker *breaker, outbox_time now)
{
	return breaker->delay && now < breaker->until;
}

bool breaker_probing(const struct breaker *breaker)
{
	return breaker->delay != 0;
}
