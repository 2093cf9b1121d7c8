/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <outbox/clock.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* xoshiro256**: seeded, so that a run can be repeated. Not for secrets. */
struct random_state {
	struct outbox_random base;
	uint64_t s[4];
};

void random_init(struct random_state *random, uint64_t seed);

/* A seed from getrandom(2). */
uint64_t random_system_seed(void);

/* For secrets: from getrandom(2), waiting for it at boot. False: there is none. */
bool random_secret(void *out, size_t size);

/* Uniform in [low, high]. */
int64_t random_between(struct outbox_random *random, int64_t low, int64_t high);

#endif
