/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define ONE_WISH (100 * OUTBOX_MILLISECONDS)

void stop_block(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

bool stop_repeats(struct stop_wish *last, int signal)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time now = clock->mono(clock);
	bool repeats = signal == last->signal && now - last->at < ONE_WISH;

	*last = (struct stop_wish){ signal, now };
	return repeats;
}

int stop_wait(const sigset_t *set, outbox_time wait)
{
	struct timespec timeout = { .tv_sec = (time_t)(wait / OUTBOX_SECONDS),
				    .tv_nsec = (long)(wait % OUTBOX_SECONDS) * 1000 };
	int signal = sigtimedwait(set, NULL, &timeout);

	return signal > 0 ? signal : 0;
}
