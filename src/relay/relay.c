/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay: workers, and the threads that step them. Threads, waiting and joining live here and
 * nowhere else in the engine; the workers do not know that they run in one.
 */
#include <outbox/relay.h>

#include "base/cleanup.h"
#include "relay/bands.h"
#include "relay/registry.h"
#include "relay/relay.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STRINGS_MAX ((size_t)1 << 20)

DEFINE_CLEANUP(struct outbox_store *, store_close)

int relay_open_store(const struct outbox_relay *relay, struct random_state *random,
		     struct outbox_store **ret_store, struct outbox_error *err)
{
	random_init(random, relay->plan.seed);
	return registry_open_store(relay->plan.registry, relay->plan.store, false,
				   relay->plan.clock, &random->base, ret_store, err);
}

static int register_targets(struct outbox_relay *relay, struct outbox_error *err)
{
	_cleanup_(store_closep) struct outbox_store *store = NULL;
	struct random_state random;
	int r = relay_open_store(relay, &random, &store, err);

	return r ? r : bands_register(&relay->plan, store, relay->arena, err);
}

/* Room for every target that there may be. */
static int make_room(struct outbox_relay *relay, struct outbox_error *err)
{
	size_t most = BANDS_EACH * relay->plan.n_targets;

	relay->threads = calloc(most * (size_t)relay->plan.workers, sizeof(*relay->threads));
	relay->tallies = calloc(most, sizeof(*relay->tallies));
	if (!relay->threads || !relay->tallies)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return OUTBOX_OK;
}

/* For the targets from this one on. */
static int make_workers(struct outbox_relay *relay, size_t first, struct outbox_error *err)
{
	size_t per_target = (size_t)relay->plan.workers;
	int r;

	for (size_t t = first; t < relay->plan.n_targets; t++) {
		for (size_t i = 0; i < per_target; i++) {
			struct relay_thread *thread = &relay->threads[relay->n_threads];

			r = worker_new(&relay->plan, t, (int)i, &relay->tallies[t], &thread->worker,
				       err);
			if (r)
				return r;
			thread->relay = relay;
			thread->worker->wakeup = &relay->wakeup;
			relay->n_threads++;
		}
	}
	return OUTBOX_OK;
}

/* The workers of the first target that is there: the one of these that holds lane 0 cleans up. */
static void choose_keeper(struct outbox_relay *relay)
{
	size_t first = 0;

	while (first + 1 < relay->plan.n_targets && relay->plan.targets[first].unstarted)
		first++;
	for (size_t i = 0; i < relay->n_threads; i++)
		relay->threads[i].worker->keeper =
			relay->threads[i].worker->target == &relay->plan.targets[first];
}

static int init_waiting(struct outbox_relay *relay, struct outbox_error *err)
{
	pthread_condattr_t attributes;
	int failed = pthread_mutex_init(&relay->mutex, NULL) ||
		     pthread_mutex_init(&relay->joining, NULL) ||
		     pthread_condattr_init(&attributes) ||
		     pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) ||
		     pthread_cond_init(&relay->wake, &attributes);

	if (failed)
		return outbox_fail(err, OUTBOX_EINTERNAL, "cannot make a mutex");
	pthread_condattr_destroy(&attributes);
	return OUTBOX_OK;
}

static void mark_running(struct relay_plan *plan, const struct relay_plan *before)
{
	for (size_t i = 0; i < plan->n_targets; i++)
		for (size_t j = 0; j < before->n_targets; j++)
			plan->targets[i].running |=
				strcmp(plan->targets[i].name, before->targets[j].name) == 0;
}

int relay_new_after(const struct outbox_relay *before, const struct outbox_relay_config *config,
		    struct outbox_relay **ret_relay, struct outbox_error *err)
{
	struct outbox_relay *relay;
	size_t configured;
	int r;

	relay = calloc(1, sizeof(*relay));
	if (!relay)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	atomic_init(&relay->wakeup.count, 1);
	r = init_waiting(relay, err);
	if (r) {
		free(relay);
		return r;
	}
	relay->arena = outbox_arena_new(STRINGS_MAX);
	if (!relay->arena)
		r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!r)
		r = plan_make(config, relay->arena, &relay->plan, err);
	if (!r && before)
		mark_running(&relay->plan, &before->plan);
	if (!r)
		r = make_room(relay, err);
	if (!r)
		r = make_workers(relay, 0, err);
	configured = relay->plan.n_targets;
	if (!r)
		r = register_targets(relay, err);
	if (!r)
		r = make_workers(relay, configured, err);
	if (!r)
		choose_keeper(relay);
	if (r) {
		outbox_relay_free(relay);
		return r;
	}
	*ret_relay = relay;
	return OUTBOX_OK;
}

int outbox_relay_new(struct outbox_relay **ret_relay, const struct outbox_relay_config *config,
		     struct outbox_error *err)
{
	if (!ret_relay || !config)
		return outbox_fail(err, OUTBOX_EINVAL, "relay and config must not be NULL");
	return relay_new_after(NULL, config, ret_relay, err);
}

void relay_wait(struct outbox_relay *relay, outbox_time until, unsigned *wakes_seen)
{
	struct outbox_clock *clock = relay->plan.clock;
	outbox_time wait = until - clock->mono(clock);
	struct timespec at;

	if (wait <= 0)
		return;
	if (wait > OUTBOX_SECONDS)
		wait = OUTBOX_SECONDS;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += (long)(wait % OUTBOX_SECONDS) * 1000;
	at.tv_sec += (time_t)(wait / OUTBOX_SECONDS) + at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	pthread_mutex_lock(&relay->mutex);
	if (*wakes_seen == relay->wakes)
		pthread_cond_timedwait(&relay->wake, &relay->mutex, &at);
	*wakes_seen = relay->wakes;
	pthread_mutex_unlock(&relay->mutex);
}

void relay_wake_all(struct outbox_relay *relay)
{
	pthread_mutex_lock(&relay->mutex);
	relay->wakes++;
	pthread_cond_broadcast(&relay->wake);
	pthread_mutex_unlock(&relay->mutex);
}

static void *run_worker(void *argument)
{
	struct relay_thread *thread = argument;
	struct outbox_clock *clock = thread->relay->plan.clock;
	unsigned wakes_seen = 0;

	while (!worker_left(thread->worker)) {
		outbox_time next;

		atomic_store(&thread->stepping, clock->mono(clock));
		next = worker_step(thread->worker);
		atomic_store(&thread->stepping, 0);
		relay_wait(thread->relay, next, &wakes_seen);
	}
	return NULL;
}

bool relay_alive(const struct outbox_relay *relay, outbox_time patience)
{
	outbox_time now = relay->plan.clock->mono(relay->plan.clock);

	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct relay_thread *thread = &relay->threads[i];
		outbox_time since = atomic_load(&thread->stepping);

		if (since && now - since > patience + 2 * thread->worker->target->publish_timeout)
			return false;
	}
	return true;
}

int outbox_relay_start(struct outbox_relay *relay, struct outbox_error *err)
{
	if (!relay || relay->started)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "a relay is started once; make a new one to start again");
	relay->started = true;
	relay->pid = getpid();
	for (size_t i = 0; i < relay->n_threads; i++) {
		struct relay_thread *thread = &relay->threads[i];

		if (pthread_create(&thread->thread, NULL, run_worker, thread)) {
			outbox_relay_stop(relay, 0, NULL);
			return outbox_fail(err, OUTBOX_ENOMEM, "cannot start a thread");
		}
		thread->running = true;
	}
	/* Without it the relay polls, as it does where the store wakes nobody. */
	relay->wakeup_running = !relay->plan.no_wakeup &&
				!pthread_create(&relay->wakeup_thread, NULL, wakeup_run, relay);
	return OUTBOX_OK;
}

static void join_all(struct outbox_relay *relay)
{
	/* Whoever comes second waits until the first has joined them all. */
	pthread_mutex_lock(&relay->joining);
	for (size_t i = 0; i < relay->n_threads; i++) {
		if (relay->threads[i].running)
			pthread_join(relay->threads[i].thread, NULL);
		relay->threads[i].running = false;
	}
	atomic_store(&relay->stopping, true);
	relay_wake_all(relay);
	if (relay->wakeup_running)
		pthread_join(relay->wakeup_thread, NULL);
	relay->wakeup_running = false;
	pthread_mutex_unlock(&relay->joining);
}

/* Its threads did not come along, and its connections are the parent's. */
static bool is_forked(const struct outbox_relay *relay)
{
	return relay->started && relay->pid != getpid();
}

int outbox_relay_stop(struct outbox_relay *relay, outbox_time timeout, struct outbox_error *err)
{
	struct outbox_clock *clock;
	size_t abandoned = 0;

	if (!relay || timeout < 0)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "relay must not be NULL, timeout not "
				   "negative");
	if (is_forked(relay))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "this relay runs in process %ld and did not survive fork(); stop it "
				   "there, and make one of your own here",
				   (long)relay->pid);
	clock = relay->plan.clock;
	atomic_store(&relay->stopping, true);
	if (timeout > 365 * OUTBOX_DAYS)
		timeout = 365 * OUTBOX_DAYS;
	for (size_t i = 0; i < relay->n_threads; i++)
		worker_drain(relay->threads[i].worker, clock->mono(clock) + timeout);
	relay_wake_all(relay);
	join_all(relay);
	for (size_t i = 0; i < relay->n_threads; i++)
		abandoned += worker_unsettled(relay->threads[i].worker);
	if (relay->started && abandoned)
		return outbox_fail(err, OUTBOX_ETIMEDOUT,
				   "%zu lanes were not settled in time; whoever takes them sends "
				   "their messages in flight again",
				   abandoned);
	return OUTBOX_OK;
}

void relay_get_ready(struct outbox_relay *relay)
{
	if (!relay || !relay->ran)
		return;
	pthread_mutex_lock(&relay->joining);
	for (size_t i = 0; i < relay->n_threads; i++)
		worker_again(relay->threads[i].worker);
	atomic_store(&relay->stopping, false);
	relay->started = false;
	relay->ran = false;
	pthread_mutex_unlock(&relay->joining);
}

/* The first that gave up is the run's own error; other targets that were out of reach are told here. */
static int report_given_up(const struct outbox_relay *relay, struct outbox_error *err)
{
	const struct worker *first = NULL;

	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;

		if (!w->gave_up.status)
			continue;
		if (first && w->outage.status)
			log_event(&relay->plan.log, EVENT_TARGET_OUTAGE, ABOUT_TARGET(w), "%s",
				  w->outage.message);
		first = first ? first : w;
	}
	if (!first)
		return OUTBOX_OK;
	outbox_fail_native(err, first->gave_up.status, first->gave_up.native, "%s",
			   first->gave_up.message);
	outbox_wrap(err, "target \"%s\"", first->target->name);
	return first->gave_up.status;
}

int outbox_relay_run_once(struct outbox_relay *relay, struct outbox_error *err)
{
	int r;

	relay_get_ready(relay);
	for (size_t i = 0; relay && i < relay->n_threads; i++)
		relay->threads[i].worker->once = true;
	r = outbox_relay_start(relay, err);
	if (r)
		return r;
	join_all(relay);
	relay->ran = true;
	return report_given_up(relay, err);
}

struct outbox_relay *outbox_relay_free(struct outbox_relay *relay)
{
	if (!relay || is_forked(relay)) /* closing connections would end them for the parent, too */
		return NULL;
	outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, NULL);
	for (size_t i = 0; i < relay->n_threads; i++)
		worker_free(relay->threads[i].worker);
	free(relay->threads);
	free(relay->tallies);
	outbox_arena_free(relay->arena);
	pthread_cond_destroy(&relay->wake);
	pthread_mutex_destroy(&relay->joining);
	pthread_mutex_destroy(&relay->mutex);
	free(relay);
	return NULL;
}
