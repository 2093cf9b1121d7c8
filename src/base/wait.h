/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_WAIT_H
#define BASE_WAIT_H

/* A lock and a bell, for threads that wait for each other or for a time, whatever the wall clock does. */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <pthread.h>

struct waiting {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
};

int waiting_init(struct waiting *waiting, struct outbox_error *err) OUTBOX_MUSTCHECK;
void waiting_deinit(struct waiting *waiting);

void waiting_lock(struct waiting *waiting);
void waiting_unlock(struct waiting *waiting);

/* With the lock held: wake everybody who waits. */
void waiting_ring(struct waiting *waiting);

/* With the lock held: until somebody rings, at most timeout. May return early: look again. */
void waiting_wait(struct waiting *waiting, outbox_time timeout);

#endif
