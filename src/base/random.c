/* SPDX-License-Identifier: Apache-2.0 */

#include "base/random.h"

#include "base/cleanup.h"

#include <stddef.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t rotate(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t xoshiro(struct outbox_random *base)
{
	uint64_t *s = container_of(base, struct random_state, base)->s;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

/* splitmix64: spreads any seed, 0 too, over the state, which must not be all zero. */
static uint64_t split(uint64_t *seed)
{
	uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void random_init(struct random_state *random, uint64_t seed)
{
	random->base.next = xoshiro;
	for (size_t i = 0; i < ARRAY_SIZE(random->s); i++)
		random->s[i] = split(&seed);
}

uint64_t random_system_seed(void)
{
	struct outbox_clock *clock = outbox_clock_system();
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
		return seed;
	/* Very early boot: enough to tell two relays apart. */
	seed = (uint64_t)clock->wall(clock) * UINT64_C(1000000007) ^ (uint64_t)clock->mono(clock);
	return seed ^ (uint64_t)getpid() << 40;
}

bool random_secret(void *out, size_t size)
{
	return size <= 256 && getrandom(out, size, 0) == (ssize_t)size;
}

int64_t random_between(struct outbox_random *random, int64_t low, int64_t high)
{
	uint64_t range, limit, value;

	if (low >= high)
		return low;
	range = (uint64_t)high - (uint64_t)low + 1;
	if (range == 0) /* all of int64 */
		return (int64_t)random->next(random);
	/* Values past the last whole multiple of range would make the low ones more likely. */
	limit = UINT64_MAX - UINT64_MAX % range;
	do {
		value = random->next(random);
	} while (value >= limit);
	return (int64_t)((uint64_t)low + value % range);
}
