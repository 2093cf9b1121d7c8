/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_STORE_H
#define TELEMETRY_SAMPLER_STORE_H

/* One source's stores: a thread with a store connection of its own that reads the store's state when asked. */

#include "base/wait.h"
#include "daemon/daemon.h"

/* What it saw. Never changes; counted, under the sampler's lock. */
struct store_state {
	size_t users;
	struct outbox_arena *arena;
	struct outbox_stats stats;
	bool answered;
	char trouble[512];      /* why not */
	outbox_time wall, mono; /* when it was asked */
};

struct store_sampler;

/* waiting is shared with whoever asks; it rings when something was seen. */
int store_sampler_start(struct daemon *daemon, const char *source, struct waiting *waiting,
			struct store_sampler **ret_sampler,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* All of these with the lock held. */
const char *store_sampler_source(const struct store_sampler *sampler);
void store_sampler_ask(struct store_sampler *sampler, bool again); /* again: with a new connection */
bool store_sampler_busy(const struct store_sampler *sampler);
struct store_state *store_sampler_last(const struct store_sampler *sampler); /* NULL: nothing yet */
void store_sampler_leave(struct store_sampler *sampler);
bool store_sampler_left(const struct store_sampler *sampler);

/* Without the lock. Waits for a call that is under way, which has its own deadline. */
struct store_sampler *store_sampler_free(struct store_sampler *sampler);

struct store_state *store_state_hold(struct store_state *state);
void store_state_release(struct store_state *state);

#endif
