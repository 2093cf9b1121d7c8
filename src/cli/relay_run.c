/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread for each relay does its blocking work, this one waits for signals, so that a second Ctrl-C
 * is heard while the first is still being obeyed. A worker ends by sending SIGUSR1 to this process,
 * which makes the waiting thread look whether all are done. A daemon's relay that cannot start ends the
 * others, too: half a service that looks like a whole one is worse than none.
 */
#include "cli/relay_run.h"

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/signals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct job {
	struct outbox_relay *relay;
	pthread_t thread;
	enum relay_mode mode;
	outbox_time timeout;
	volatile int stop; /* polled by run_until_idle */
	atomic_bool done;
	int status;
	struct outbox_error err;
};

static void *work(void *argument)
{
	struct job *job = argument;

	if (job->mode == RELAY_ONCE)
		job->status = outbox_relay_run_once(job->relay, &job->err);
	else
		job->status = outbox_relay_run_until_idle(job->relay, &job->stop, &job->err);
	atomic_store(&job->done, true);
	kill(getpid(), SIGUSR1);
	return NULL;
}

struct jobs {
	struct job *items;
	size_t count;
};

static bool all_done(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (!atomic_load(&jobs->items[i].done))
			return false;
	return true;
}

static void stop_all(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		__atomic_store_n(&jobs->items[i].stop, 1, __ATOMIC_RELAXED);
}

static void announce(const struct jobs *jobs)
{
	size_t batches = 0, messages = 0;

	for (size_t i = 0; i < jobs->count; i++) {
		size_t more_batches, more_messages;

		outbox_relay_in_flight(jobs->items[i].relay, &more_batches, &more_messages);
		batches += more_batches;
		messages += more_messages;
	}
	stop_announce(batches, messages);
}

/* Returns the signal that ended the work, 0 when it ended by itself. */
static int wait_for_end(struct jobs *jobs, const sigset_t *signals)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time leave_at = OUTBOX_NEVER;
	struct stop_wish last = { 0 };
	int first = 0;

	while (!all_done(jobs)) {
		outbox_time now = clock->mono(clock), wait = OUTBOX_MINUTES;
		int signal;

		if (leave_at - now < wait)
			wait = leave_at > now ? leave_at - now : 0;
		signal = stop_wait(signals, wait);
		if (clock->mono(clock) >= leave_at && !all_done(jobs))
			stop_at_once(first);
		if (signal == 0 || signal == SIGUSR1 || stop_repeats(&last, signal))
			continue;
		if (first)
			stop_at_once(signal);
		first = signal;
		announce(jobs);
		stop_all(jobs);
		/* relay_stop() keeps the time itself; a single run is not told and is cut off here */
		if (jobs->items[0].mode == RELAY_ONCE)
			leave_at = clock->mono(clock) + jobs->items[0].timeout;
	}
	return first;
}

/* Ends what was started when a thread cannot be. */
static int start_all(struct jobs *jobs, struct outbox_error *err)
{
	size_t count = jobs->count;

	for (size_t i = 0; i < count; i++) {
		if (pthread_create(&jobs->items[i].thread, NULL, work, &jobs->items[i]) == 0)
			continue;
		jobs->count = i;
		stop_all(jobs);
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	}
	return OUTBOX_OK;
}

static void join_all(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		pthread_join(jobs->items[i].thread, NULL);
}

int relay_run(const struct relay_runs *runs, int *ret_signal, struct outbox_error *err)
{
	_cleanup_(cleanup_free) struct job *items = calloc(runs->count, sizeof(*items));
	struct jobs jobs = { items, runs->count };
	sigset_t signals;
	int r;

	if (!items)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < runs->count; i++) {
		items[i].relay = runs->relays[i];
		items[i].mode = runs->mode;
		items[i].timeout = runs->timeout;
	}
	stop_block(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	r = start_all(&jobs, err);
	if (r == OUTBOX_OK)
		*ret_signal = wait_for_end(&jobs, &signals);
	join_all(&jobs);
	for (size_t i = 0; r == OUTBOX_OK && i < jobs.count; i++) {
		if (items[i].status)
			runs->failed[i] = items[i].err;
	}
	return r;
}
