/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SOURCE_H
#define DAEMON_SOURCE_H

/* One supervised source: a thread that makes its relay, runs it, makes the next one, and drains the first. */

#include "daemon/daemon.h"

#include <pthread.h>

/* A configuration in use, with a relay's own for each source; whoever uses it holds it. */
struct generation {
	struct config *config;
	struct outbox_relay_config *relays; /* in the order of config->sources */
	_Atomic int holders;
};

int generation_new(struct config *config, struct generation **ret_generation,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
struct generation *generation_hold(struct generation *generation);
/* The last one frees it. NULL is legal. */
void generation_drop(struct generation *generation);

struct source {
	struct daemon *daemon;
	char name[OUTBOX_TARGET_NAME_MAX + 1];
	pthread_t thread;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t told;
	struct generation *wanted; /* held; what it should run */
	size_t index;              /* in wanted's sources */
	bool restart, stop, done, joined;
	bool again; /* there was a reload: one that is in trouble tries at once */
	bool tried; /* there was an attempt, good or bad */
	bool wrong; /* the store's URL is: trying again would not help */
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
int source_start(struct daemon *daemon, struct generation *generation, size_t index,
		 struct source **ret_source, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Go on with this generation: exchange the relay, or (restart false) stay as it is. One that cannot be made leaves the
 * relay that runs alone, and is tried again.
 */
void source_change(struct source *source, struct generation *generation, size_t index, bool restart);

/* Does it go on as before a reload, since its store refuses what is wanted now? */
bool source_refuses(struct source *source);

void source_stop(struct source *source);
/* Wait for its end; it was told before. */
void source_join(struct source *source);
/* Stops it and waits, unless that was done. */
struct source *source_free(struct source *source);

/* Of daemon.c. */
void daemon_wake(struct daemon *daemon);
outbox_time daemon_shutdown_timeout(struct daemon *daemon);
void daemon_watch_relay(struct daemon *daemon, struct source *source, struct outbox_relay *relay);
/* How a command that is suggested names this source: " --config outbox.yaml --source shop". */
struct buf;
void daemon_store_words(const struct daemon *daemon, const char *name, const char *url,
			struct buf *out);

#endif
