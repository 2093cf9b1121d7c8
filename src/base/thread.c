/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#define LESS_URGENT 10

int thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

void thread_step_back(void)
{
	/* on Linux a thread has a priority of its own */
	int now = getpriority(PRIO_PROCESS, (id_t)gettid());

	setpriority(PRIO_PROCESS, (id_t)gettid(), now + LESS_URGENT);
}
