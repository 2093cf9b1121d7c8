/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread for each relay does its blocking work, this one waits for signals, so that a second Ctrl-C
 * is heard while the first is still being obeyed. A worker ends by sending SIGUSR1 to this process,
 * which makes the waiting thread look whether all are done. A daemon's relay that cannot start ends the
 * others, too: half a service that looks like a whole one is worse than none.
 */
#include "cli/relay_run.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/json_out.h"
#include "cli/safe.h"
#include "cli/stop.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 8192

struct job {
	struct outbox_relay *relay;
	pthread_t thread;
	enum relay_mode mode;
	outbox_time timeout;
	volatile int stop; /* polled by run_until_idle */
	sem_t stopped;     /* posted once, for the daemon */
	atomic_bool done;
	int status;
	struct outbox_error err;
};

static struct {
	bool json;
	int level;
} chosen = { .level = OUTBOX_LOG_INFO };

void relay_log_choose(bool json, int level)
{
	chosen.json = json;
	chosen.level = level;
}

/* One write a line: several threads speak, and a line belongs to one of them. */
static void write_json(const char *time, const char *level, const char *line)
{
	json_t *event = json_pack("{s:s, s:s, s:o}", "time", time, "level", level, "message",
				  json_text(line));
	_cleanup_(cleanup_free) char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

	json_decref(event);
	if (text)
		fprintf(stderr, "%s\n", text);
}

void relay_log(void *context, int level, const char *line)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	_cleanup_(buf_deinit) struct buf safe = BUF_INIT(LINE_MAX_BYTES);
	struct outbox_clock *clock = outbox_clock_system();
	char whole[TIME_TEXT_MAX], time[TIME_TEXT_MAX + 8];
	outbox_time now = clock->wall(clock);

	(void)context;
	if (level < chosen.level || level < OUTBOX_LOG_DEBUG || level > OUTBOX_LOG_ERROR)
		return;
	safe_append(&safe, line, strlen(line), UNCUT);
	/* whole seconds from time_format(), and always three digits behind them */
	time_format(now - now % OUTBOX_SECONDS, whole);
	whole[strcspn(whole, "Z")] = '\0';
	snprintf(time, sizeof(time), "%s.%03dZ", whole,
		 (int)(now % OUTBOX_SECONDS / OUTBOX_MILLISECONDS));
	if (chosen.json)
		write_json(time, names[level], buf_str(&safe));
	else
		fprintf(stderr, "%s %-5s %s\n", time, names[level], buf_str(&safe));
}

/* A word to whoever pressed Ctrl-C: without time and level, unless a program reads along. */
static void say(const char *line)
{
	if (chosen.json)
		relay_log(NULL, OUTBOX_LOG_INFO, line);
	else
		fprintf(stderr, "%s\n", line);
}

static int daemon_job(struct job *job)
{
	int r = outbox_relay_start(job->relay, &job->err);

	if (r)
		return r;
	while (sem_wait(&job->stopped) != 0)
		;
	return outbox_relay_stop(job->relay, job->timeout, &job->err);
}

static void *work(void *argument)
{
	struct job *job = argument;

	if (job->mode == RELAY_DAEMON)
		job->status = daemon_job(job);
	else if (job->mode == RELAY_ONCE)
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

/* A daemon ends by being told, so one that ended by itself failed. */
static bool one_failed(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->items[i].mode == RELAY_DAEMON && atomic_load(&jobs->items[i].done))
			return true;
	return false;
}

static void stop_all(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		__atomic_store_n(&jobs->items[i].stop, 1, __ATOMIC_RELAXED);
		sem_post(&jobs->items[i].stopped);
	}
}

static void announce(const struct jobs *jobs)
{
	size_t batches = 0, messages = 0;
	char count[COUNT_TEXT_MAX], line[160] = "nothing in flight, leaving";

	for (size_t i = 0; i < jobs->count; i++) {
		size_t more_batches, more_messages;

		outbox_relay_in_flight(jobs->items[i].relay, &more_batches, &more_messages);
		batches += more_batches;
		messages += more_messages;
	}
	if (batches > 0)
		snprintf(line, sizeof(line),
			 "finishing %zu batch%s (%s message%s), again to leave at once", batches,
			 batches == 1 ? "" : "es", count_human((int64_t)messages, count),
			 messages == 1 ? "" : "s");
	say(line);
}

static _Noreturn void leave_now(int signal)
{
	say("left at once: messages in flight will be sent again");
	_exit(EXIT_SIGNAL + signal);
}

/* Returns the signal that ended the work, 0 when it ended by itself. */
static int wait_for_end(struct jobs *jobs, const sigset_t *signals)
{
	struct outbox_clock *clock = outbox_clock_system();
	outbox_time leave_at = OUTBOX_NEVER;
	bool stopping = false;
	int first = 0;

	while (!all_done(jobs)) {
		outbox_time now = clock->mono(clock), wait = OUTBOX_MINUTES;
		int signal;

		if (!stopping && one_failed(jobs)) {
			stop_all(jobs);
			stopping = true;
		}
		if (leave_at - now < wait)
			wait = leave_at > now ? leave_at - now : 0;
		signal = stop_wait(signals, wait);
		if (clock->mono(clock) >= leave_at && !all_done(jobs))
			leave_now(first);
		if (signal == 0 || signal == SIGUSR1)
			continue;
		if (first)
			leave_now(signal);
		first = signal;
		announce(jobs);
		stop_all(jobs);
		stopping = true;
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
		sem_init(&jobs->items[i].stopped, 0, 0);
		if (pthread_create(&jobs->items[i].thread, NULL, work, &jobs->items[i]) == 0)
			continue;
		sem_destroy(&jobs->items[i].stopped);
		jobs->count = i;
		stop_all(jobs);
		return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
	}
	return OUTBOX_OK;
}

static void join_all(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		pthread_join(jobs->items[i].thread, NULL);
		sem_destroy(&jobs->items[i].stopped);
	}
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
		runs->failed[i] = items[i].err;
		if (items[i].status && !runs->failed[i].status)
			runs->failed[i].status = items[i].status;
	}
	return r;
}
