/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_WAKEUP_H
#define RELAY_WAKEUP_H

/*
 * How publishers wake a relay: what its workers and the thread that listens tell each other.
 *
 * Some stores let publishers wake a relay that sleeps (see listen() in outbox/store.h). A relay
 * sleeps when all its lanes ran dry. The listener then arms the wake-up, lets every lane look once more,
 * so that nothing published in between is missed, and only then waits. While it is armed, lanes poll
 * slowly: a wake-up is a hint, and polling is what is relied on.
 */

#include <stdatomic.h>
#include <stdbool.h>

struct outbox_relay;

struct wakeup {
	_Atomic unsigned count; /* starts at 1; a lane that ran dry before the last one looks again */
	_Atomic bool armed;     /* publishers wake us */
};

/* The thread of a struct outbox_relay that listens, when the store can wake it; ends by itself when it cannot. */
void *wakeup_run(void *argument);

#endif
