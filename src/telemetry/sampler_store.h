/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_STORE_H
#define TELEMETRY_SAMPLER_STORE_H

/* One source's eyes: a thread with a store connection of its own that reads the store's state when asked. */

#include "base/wait.h"
#include "daemon/daemon.h"

/* What it saw. Never changes; counted, under the watch's lock. */
struct look {
	size_t users;
	struct outbox_arena *arena;
	struct outbox_stats stats;
	bool answered;
	char trouble[512];      /* why not */
	outbox_time wall, mono; /* when it was asked */
};

struct looker;

/* waiting is shared with whoever asks; it rings when something was seen. */
int looker_start(struct daemon *daemon, const char *source, struct waiting *waiting,
		 struct looker **ret_looker, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* All of these with the lock held. */
const char *looker_source(const struct looker *looker);
void looker_ask(struct looker *looker, bool again); /* again: with a new connection */
bool looker_busy(const struct looker *looker);
struct look *looker_last(const struct looker *looker); /* NULL: nothing yet */
void looker_leave(struct looker *looker);
bool looker_left(const struct looker *looker);

/* Without the lock. Waits for a call that is under way, which has its own deadline. */
struct looker *looker_free(struct looker *looker);

struct look *look_hold(struct look *look);
void look_release(struct look *look);

#endif
