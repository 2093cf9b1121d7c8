/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "relay/plan.h"
#include "relay/wakeup.h"
#include "relay/worker.h"

#include <pthread.h>
#include <sys/types.h>

struct relay_thread {
	pthread_t thread;
	_Atomic outbox_time stepping; /* mono: since when it is in a step; 0: it waits */
	struct outbox_relay *relay;
	struct worker *worker;
	bool running;
};

struct outbox_relay {
	struct outbox_arena *arena;
	struct relay_plan plan;
	struct tally *tallies; /* one for each target */
	struct relay_thread *threads;
	size_t n_threads;
	pthread_mutex_t mutex;   /* guards wakes */
	pthread_mutex_t joining; /* guards the threads' running */
	pthread_cond_t wake;
	unsigned wakes; /* how often everybody was woken */
	_Atomic bool started;
	bool ran;  /* run_once() or run_until_idle() is over: it may be run again */
	pid_t pid; /* of the process that started it */
	_Atomic bool stopping;
	struct wakeup wakeup;
	pthread_t wakeup_thread;
	bool wakeup_running;
};

/*
 * outbox_relay_new() for one that takes over from another, which runs meanwhile (NULL: none). A target that the store
 * refuses is found before the routing of those that run is touched.
 */
int relay_new_after(const struct outbox_relay *before, const struct outbox_relay_config *config,
		    struct outbox_relay **ret_relay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A store connection of the caller's own. random must outlive it. */
int relay_open_store(const struct outbox_relay *relay, struct random_state *random,
		     struct outbox_store **ret_store, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Wait until the relay's clock says `until` (a second at the most), or all were woken since
 * *wakes_seen. */
void relay_wait(struct outbox_relay *relay, outbox_time until, unsigned *wakes_seen);

/* Is no worker in one step for longer than patience and two publish timeouts? */
bool relay_alive(const struct outbox_relay *relay, outbox_time patience);

/* Before another run_once() or run_until_idle(): nothing of the run before is left but what it counted. */
void relay_get_ready(struct outbox_relay *relay);

/* Let every worker step at once. */
void relay_wake_all(struct outbox_relay *relay);

#endif
