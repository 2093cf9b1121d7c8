/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_WAKEUP_H
#define RELAY_WAKEUP_H

/*
 * How the threads of a relay wait and are woken: by each other, and by publishers.
 *
 * Some stores let publishers wake a relay that sleeps (see listen() in outbox/store.h). A relay sleeps when
 * all its lanes ran dry. A listener, a thread of its own, then arms the wake-up, lets every lane look once more, so that nothing
 * published in between is missed, and only then waits. While it is armed, lanes poll slowly: a wake-up is a
 * hint, and polling is what is relied on.
 */

#include "base/wait.h"
#include "relay/plan.h"

#include <stdatomic.h>

struct wakeup {
	const struct relay_plan *plan;
	struct waiting waiting;
	unsigned wakes;        /* how often all threads were woken; under the lock */
	_Atomic bool stopping; /* the listener ends */
	_Atomic bool unheard; /* a lane found new messages though nobody rang: perhaps nobody rings any more */
	_Atomic unsigned count; /* starts at 1; a lane that ran dry before the last one looks again */
	_Atomic bool armed;     /* publishers wake us */
	/* for each worker: the count after which all its lanes were dry; 0: there is work */
	const _Atomic unsigned **dry;
	size_t n_workers;
	pthread_t listener;
	bool listening;
};

/* plan is read when the listener starts. */
int wakeup_init(struct wakeup *wakeup, const struct relay_plan *plan,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
void wakeup_deinit(struct wakeup *wakeup);

/* Start the listener. Without one the relay polls; it ends by itself if the store wakes nobody. */
void wakeup_listen(struct wakeup *wakeup);
void wakeup_stop_listening(struct wakeup *wakeup);

/* The number of the last wake-up; always 1 where publishers cannot wake the relay. */
unsigned wakeup_count(const struct wakeup *wakeup);

/* Wait until the plan's clock says `until` (a second at the most), or all were woken since *wakes_seen. */
void wakeup_wait(struct wakeup *wakeup, outbox_time until, unsigned *wakes_seen);

/* Let every thread step at once. */
void wakeup_all(struct wakeup *wakeup);

#endif
