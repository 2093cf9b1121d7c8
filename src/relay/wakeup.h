/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_WAKEUP_H
#define RELAY_WAKEUP_H

/*
 * The doorbell of a relay: what its workers and the thread that listens tell each other.
 *
 * Stores that have one (see listen() in outbox/store.h) let publishers wake a relay that sleeps. A relay
 * sleeps when all its lanes ran dry. The listener then hangs the bell, lets every lane look once more,
 * so that nothing published in between is missed, and only then waits. While the bell hangs, lanes poll
 * slowly: ringing is a hint, and polling is what is relied on.
 */

#include <stdatomic.h>
#include <stdbool.h>

struct outbox_relay;

struct bell {
	_Atomic unsigned rings; /* starts at 1; a lane that ran dry at an earlier one looks again */
	_Atomic bool hung;      /* publishers ring */
};

/* The thread of a struct outbox_relay that listens, when the store has a bell; ends by itself when there is none. */
void *bell_run(void *argument);

#endif
