/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_SAMPLER_THREADS_H
#define TELEMETRY_SAMPLER_THREADS_H

/* A looker for each source there is. Used by the watch's thread alone. */

#include "telemetry/sampler_store.h"

struct eye;

struct eyes {
	struct daemon *daemon;
	struct waiting *waiting;
	struct eye *items;
	size_t count;
	struct looker **leaving; /* of sources that are gone */
	size_t n_leaving;
};

/* One for each of these, and no other. */
int eyes_follow(struct eyes *eyes, const struct daemon_source *sources, size_t count,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Ask all, and wait at most patience (and never more than two seconds) for those that were quick the last time.
 * again: with new connections. *stopping ends it, read under the lock.
 */
void eyes_ask(struct eyes *eyes, outbox_time patience, bool again, const bool *stopping);

/* What was seen last; NULL: nothing yet. With the lock held. */
struct look *eyes_last(struct eyes *eyes, const char *source);

void eyes_close(struct eyes *eyes);

#endif
