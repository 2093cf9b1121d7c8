/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library has no say in the process's signal handlers, but the signals that a write() raises go to
 * the writing thread: hold them for the time of a batch, then take away what our own writes raised.
 */

#include "transport/file/file.h"

#include <pthread.h>
#include <time.h>

static void write_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

void signals_hold(struct file_signals *signals)
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

void signals_release(const struct file_signals *signals)
{
	if (!signals->pipe_pending)
		discard_pending(SIGPIPE);
	if (!signals->size_pending)
		discard_pending(SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &signals->before, NULL);
}
