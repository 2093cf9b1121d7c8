/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>
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

/*
 * A library has no say in the process's signal handlers, but the signals that a write() raises go to
 * the writing thread: hold them for the time of a batch, then take away what our own writes raised.
 */
static void write_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

void signals_hold(struct held_signals *signals)
{
	sigset_t set, pending;

	write_signals(&set);
	sigemptyset(&pending);
	sigpending(&pending);
	signals->pipe_pending = sigismember(&pending, SIGPIPE) == 1;
	signals->size_pending = sigismember(&pending, SIGXFSZ) == 1;
	pthread_sigmask(SIG_BLOCK, &set, &signals->before);
}

static void discard_pending(int signal)
{
	static const struct timespec now = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal);
	sigtimedwait(&set, NULL, &now);
}

void signals_release(const struct held_signals *signals)
{
	if (!signals->pipe_pending)
		discard_pending(SIGPIPE);
	if (!signals->size_pending)
		discard_pending(SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}
