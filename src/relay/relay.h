/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include "relay/metrics.h"
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
	pthread_mutex_t joining; /* guards the threads' running */
	_Atomic bool started;
	bool ran;  /* run_once() or run_until_idle() is over: it may be run again */
	pid_t pid; /* of the process that started it */
	struct wakeup wakeup;
};

/*
 * outbox_relay_new() for one that takes over from another, which runs meanwhile (NULL: none). A target that the store
 * refuses is found before the routing of those that run is touched.
 */
int relay_new_after(const struct outbox_relay *before, const struct outbox_relay_config *config,
		    struct outbox_relay **ret_relay, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Is no worker in one step for longer than patience and two publish timeouts? */
bool relay_alive(const struct outbox_relay *relay, outbox_time patience);

/* Before another run_once() or run_until_idle(): nothing of the run before is left but what it counted. */
void relay_get_ready(struct outbox_relay *relay);

/* Has it been started, and nobody told it to stop? */
bool relay_running(const struct outbox_relay *relay);

/* Its store is a replay's spool: see relay/outgoing.h. Before it starts. */
void relay_set_replay(struct outbox_relay *relay);

size_t relay_target_count(const struct outbox_relay *relay);
void relay_target_metrics(const struct outbox_relay *relay, size_t target,
			  struct target_metrics *ret_metrics);

void relay_counts_add(struct outbox_relay_counts *sum, const struct outbox_relay_counts *more);

/* Be told of every settled batch. Before start(). */
void relay_observe(struct outbox_relay *relay, batch_observer observer, void *context);

#endif
