/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/signals.h"

#include "base/clock.h"
#include "base/text.h"
#include "cli/exits.h"
#include "daemon/journal.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define ONE_WISH (100 * OUTBOX_MILLISECONDS)

void signals_block(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, ret_set, NULL);
}

bool signals_repeat(struct signal_wish *last, int signal)
{
	outbox_time now = mono_now();
	bool repeats = signal == last->signal && now - last->at < ONE_WISH;

	*last = (struct signal_wish){ signal, now };
	return repeats;
}

int signals_wait(const sigset_t *set, outbox_time wait)
{
	struct timespec timeout = { .tv_sec = (time_t)(wait / OUTBOX_SECONDS),
				    .tv_nsec = (long)(wait % OUTBOX_SECONDS) * 1000 };
	int signal = sigtimedwait(set, NULL, &timeout);

	return signal > 0 ? signal : 0;
}

/* A word to whoever pressed Ctrl-C: without time and level, unless a program reads along. */
static void write_notice(enum event event, const char *line)
{
	if (journal_is_json())
		journal(event, NULL, "%s", line);
	else
		fprintf(stderr, "%s\n", line);
}

void signals_announce(size_t batches, size_t messages)
{
	char count[COUNT_TEXT_MAX], line[160] = "nothing in flight; exiting";

	if (batches > 0)
		snprintf(line, sizeof(line),
			 "finishing %zu batch%s (%s message%s); a second signal exits at once",
			 batches, batches == 1 ? "" : "es", count_human((int64_t)messages, count),
			 messages == 1 ? "" : "s");
	write_notice(EVENT_DAEMON_DRAIN, line);
}

void signals_leave(int signal)
{
	write_notice(EVENT_DAEMON_LEFT, "exited at once: messages in flight will be sent again");
	_exit(EXIT_SIGNAL + signal);
}
