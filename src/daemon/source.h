/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SOURCE_H
#define DAEMON_SOURCE_H

/* One supervised source: a thread that makes its relay, runs it, makes the next one, and drains the first. */

#include "base/wait.h"
#include "daemon/generation.h"
#include "daemon/setup.h"
#include "operate/sample.h"

#include <pthread.h>

struct source {
	const struct daemon_setup *setup;
	const char *log_name; /* NULL: a run that ends by itself, and the only source */
	char name[OUTBOX_TARGET_NAME_MAX + 1];
	pthread_t thread;
	struct waiting waiting;    /* its lock guards everything below */
	struct generation *wanted; /* held; what it should run */
	size_t index;              /* in wanted's sources */
	volatile int stop;         /* written with an atomic store: a run until idle polls it */
	bool restart, done, joined;
	bool ran;   /* a relay was started */
	bool again; /* there was a reload: one that is in trouble tries at once */
	bool tried; /* there was an attempt, good or bad */
	bool wrong; /* trying again would not help */
	bool fatal; /* and that at the very start */
	struct outbox_relay *relay;
	enum source_state state;
	struct outbox_error trouble;     /* status 0: none */
	outbox_time trouble_since;       /* wall */
	outbox_time busy_since;          /* mono: it is making a relay since then; 0: it is not */
	struct outbox_relay_counts past; /* of relays that are gone */
	struct outbox_error ended;       /* how the last drain went; status 0: well */
};

/* The thread is started at once. */
int source_start(const struct daemon_setup *setup, struct generation *generation, size_t index,
		 struct source **ret_source, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Before the start of a run that ends by itself: is the store there, and ready? */
int source_look(const struct daemon_setup *setup, const struct generation *generation, size_t index,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Go on with this generation: exchange the relay, or (restart false) stay as it is. One that cannot be made leaves the
 * relay that runs alone, and is tried again.
 */
void source_change(struct source *source, struct generation *generation, size_t index, bool restart);

/* Does it go on as before a reload, since its store refuses what is wanted now? */
bool source_refuses(struct source *source);

void source_stop(struct source *source);
/* Wait for its end; source_stop() was called before. */
void source_join(struct source *source);
/* Stops it and waits, unless that was done. */
struct source *source_free(struct source *source);

#endif
