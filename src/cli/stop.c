/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

void stop_block(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

int stop_wait(const sigset_t *set, outbox_time wait)
{
	struct timespec timeout = { .tv_sec = (time_t)(wait / OUTBOX_SECONDS),
				    .tv_nsec = (long)(wait % OUTBOX_SECONDS) * 1000 };
	int signal = sigtimedwait(set, NULL, &timeout);

	return signal > 0 ? signal : 0;
}
