/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_STORE_H
#define TELEMETRY_SAMPLER_STORE_H

/* One source's store: a thread with a connection of its own that reads the store's state when asked. */

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

struct store_sampler {
	struct daemon *daemon;
	char *source;
	struct waiting *waiting; /* shared with whoever asks; it rings when something was seen */
	pthread_t thread;
	struct daemon_store *store; /* the thread's own */
	bool slow;                  /* the asker's own: it did not answer in time the last time */
	bool seen;                  /* the asker's own: its source is still there */
	/* with the lock held */
	bool asked, again; /* again: with a new connection */
	bool busy, leaving, left;
	struct store_state *last; /* NULL: nothing yet */
};

int store_sampler_start(struct daemon *daemon, const char *source, struct waiting *waiting,
			struct store_sampler **ret_sampler,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Without the lock. Waits for a call that is under way, which has its own deadline. */
void store_sampler_free(struct store_sampler *sampler);

/* With the lock held. */
void store_state_release(struct store_state *state);

#endif
