/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

/* Threads that must not be in the way of the relays: no signals, less urgent than they are. */

#include <pthread.h>

/* As pthread_create(), with all signals blocked. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *argument);

/* This thread lets others go first when there is not enough time for all. */
void thread_step_back(void);

#endif
