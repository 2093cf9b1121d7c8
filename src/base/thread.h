/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

/* Threads that must not be in the way of the relays: no signals, less urgent than they are. And signals of a thread. */

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* As pthread_create(), with all signals blocked. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* This thread lets others go first when there is not enough time for all. */
void thread_step_back(void);

/* SIGPIPE and SIGXFSZ must not kill a process for what a write's return value tells as well. */
struct held_signals {
	sigset_t before;
	bool pipe_pending, size_pending;
};

/* From here on this thread's writes raise neither of the two. */
void signals_hold(struct held_signals *signals);
void signals_release(const struct held_signals *signals);

#endif
