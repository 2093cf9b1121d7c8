/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relay: workers, and the threads that step them. Threads, waiting and joining live here and
 * nowhere else in the engine; the workers do not know that they run in one.
 */
#include <outbox/relay.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "relay/bands.h"
#include "relay/relay.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STRINGS_MAX ((size_t)1 << 20)

DEFINE_CLEANUP(struct outbox_store *, store_close)

static int register_targets(struct outbox_relay *relay, struct outbox_error *err)
{
	_cleanup_(store_closep) struct outbox_store *store = NULL;
	struct random_state random;
	int r = plan_open_store(&relay->plan, &random, &store, err);

	if (!r && relay->plan.purge_interval != OUTBOX_NEVER && !store_has_operators(store))
		r = outbox_fail(err, OUTBOX_ENOTSUP,
				"this store has no operator interface: a relay cannot remove finished "
				"messages; set purge_interval to OUTBOX_NEVER");
	return r ? r : bands_register(&relay->plan, store, relay->arena, err);
}

/* Room for every target that there may be. */
static int make_room(struct outbox_relay *relay, struct outbox_error *err)
{
	size_t most = BANDS_EACH * relay->plan.n_targets;

	relay->threads = calloc(most * (size_t)relay->plan.workers, sizeof(*relay->threads));
	relay->tallies = calloc(most, sizeof(*relay->tallies));
	relay->wakeup.dry = calloc(most * (size_t)relay->plan.workers, sizeof(*relay->wakeup.dry));
	if (!relay->threads || !relay->tallies || !relay->wakeup.dry)
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
			thread->worker->link.wakeup = &relay->wakeup;
			relay->wakeup.dry[relay->wakeup.n_workers++] = &thread->worker->dry;
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
		relay->threads[i].worker->retention.keeper =
			relay->threads[i].worker->link.target == &relay->plan.targets[first];
}

static void mark_running(struct relay_plan *plan, const struct relay_plan *before)
{
	for (size_t i = 0; i < plan->n_targets; i++)
		plan->targets[i].running = plan_find(before, plan->targets[i].name);
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
	r = wakeup_init(&relay->wakeup, &relay->plan, err);
	if (!r && pthread_mutex_init(&relay->joining, NULL)) {
		wakeup_deinit(&relay->wakeup);
		r = outbox_fail(err, OUTBOX_EINTERNAL, "cannot make a mutex");
	}
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

static void *run_worker(void *argument)
{
	struct relay_thread *thread = argument;
	struct outbox_clock *clock = thread->relay->plan.clock;
	unsigned wakes_seen = 0;

	while (!worker_is_gone(thread->worker)) {
		outbox_time next;

		atomic_store(&thread->stepping, clock->mono(clock));
		next = worker_step(thread->worker);
		atomic_store(&thread->stepping, 0);
		wakeup_wait(&thread->relay->wakeup, next, &wakes_seen);
	}
	return NULL;
}

bool relay_alive(const struct outbox_relay *relay, outbox_time patience)
{
	outbox_time now = relay->plan.clock->mono(relay->plan.clock);

	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct relay_thread *thread = &relay->threads[i];
		outbox_time since = atomic_load(&thread->stepping);

		if (since &&
		    now - since > patience + 2 * thread->worker->link.target->publish_timeout)
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
	wakeup_listen(&relay->wakeup);
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
	wakeup_stop_listening(&relay->wakeup);
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
	atomic_store(&relay->wakeup.stopping, true);
	if (timeout > 365 * OUTBOX_DAYS)
		timeout = 365 * OUTBOX_DAYS;
	for (size_t i = 0; i < relay->n_threads; i++)
		worker_drain(relay->threads[i].worker, clock->mono(clock) + timeout);
	wakeup_all(&relay->wakeup);
	join_all(relay);
	for (size_t i = 0; i < relay->n_threads; i++)
		abandoned += worker_unsettled(relay->threads[i].worker);
	if (relay->started && abandoned)
		return outbox_fail(err, OUTBOX_ETIMEDOUT,
				   "%zu lanes were not settled in time; the relay that takes them over "
				   "sends their messages in flight again",
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
	atomic_store(&relay->wakeup.stopping, false);
	relay->started = false;
	relay->ran = false;
	pthread_mutex_unlock(&relay->joining);
}

/* Has a worker before this one told of the same target in the same words? */
static bool was_told(const struct outbox_relay *relay, size_t i)
{
	const struct link *link = &relay->threads[i].worker->link;

	for (size_t j = 0; j < i; j++) {
		const struct worker *w = relay->threads[j].worker;

		if (w->gave_up.status && w->link.target == link->target &&
		    error_same(&w->link.outage, &link->outage))
			return true;
	}
	return false;
}

/* The first that gave up is the run's own error; other targets that were out of reach are told here. */
static int report_given_up(const struct outbox_relay *relay, struct outbox_error *err)
{
	const struct worker *first = NULL;

	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;

		if (!w->gave_up.status)
			continue;
		if (first && w->link.outage.status && !was_told(relay, i))
			log_event(&relay->plan.log, EVENT_TARGET_OUTAGE, ABOUT_TARGET(&w->link),
				  "%s", w->link.outage.message);
		first = first ? first : w;
	}
	if (!first)
		return OUTBOX_OK;
	outbox_fail_native(err, first->gave_up.status, first->gave_up.native, "%s",
			   first->gave_up.message);
	outbox_wrap(err, "target \"%s\"", first->link.target->name);
	return first->gave_up.status;
}

int outbox_relay_run_once(struct outbox_relay *relay, struct outbox_error *err)
{
	int r;

	relay_get_ready(relay);
	for (size_t i = 0; relay && i < relay->n_threads; i++)
		relay->threads[i].worker->link.once = true;
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
	wakeup_deinit(&relay->wakeup);
	pthread_mutex_destroy(&relay->joining);
	free(relay);
	return NULL;
}

/* ---- what it says of itself */

bool relay_running(const struct outbox_relay *relay)
{
	return atomic_load(&relay->started) && !atomic_load(&relay->wakeup.stopping);
}

void relay_set_replay(struct outbox_relay *relay)
{
	relay->plan.replay = true;
}

size_t relay_target_count(const struct outbox_relay *relay)
{
	return relay->plan.n_targets;
}

/* Open is worse than probing: then nothing at all is tried. */
static int badness(enum breaker_state breaker)
{
	return breaker == BREAKER_OPEN ? 2 : breaker == BREAKER_PROBING;
}

void relay_target_metrics(const struct outbox_relay *relay, size_t target,
			  struct target_metrics *ret_metrics)
{
	tally_view(&relay->tallies[target], ret_metrics);
	ret_metrics->target = relay->plan.targets[target].name;
	ret_metrics->throttled = throttle_holds(relay->plan.targets[target].throttle,
						relay->plan.clock->mono(relay->plan.clock));
	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;
		enum breaker_state breaker;

		if (w->link.tally != &relay->tallies[target])
			continue;
		breaker = (enum breaker_state)atomic_load_explicit(&w->shown_breaker,
								   memory_order_relaxed);
		if (badness(breaker) > badness(ret_metrics->breaker))
			ret_metrics->breaker = breaker;
		ret_metrics->lanes += atomic_load_explicit(&w->shown_lanes, memory_order_relaxed);
		ret_metrics->transport = w->link.transport->ops->name;
	}
	if (!ret_metrics->lanes) /* others clean up now */
		ret_metrics->untidy_since = 0;
}

void relay_observe(struct outbox_relay *relay, batch_observer observer, void *context)
{
	for (size_t i = 0; i < relay->plan.n_targets; i++) {
		relay->tallies[i].observer = observer;
		relay->tallies[i].observer_context = context;
	}
}

void outbox_relay_counts(const struct outbox_relay *relay, struct outbox_relay_counts *ret_counts)
{
	struct outbox_relay_counts sum = { 0 };
	size_t size;

	if (!ret_counts)
		return;
	size = ret_counts->struct_size;
	for (size_t i = 0; relay && i < relay->plan.n_targets; i++) {
		struct target_metrics m;

		tally_view(&relay->tallies[i], &m);
		sum.delivered += m.delivered;
		sum.failed += m.failed;
		sum.retried += m.retried;
		sum.parked += m.parked;
		sum.deferred += m.deferred;
		sum.returned += m.returned;
		sum.batches += m.batches;
		sum.outages += m.outages;
		sum.takeovers += m.takeovers;
		sum.fenced += m.fenced;
		sum.unknown += m.duplicates_unknown;
		sum.possible_duplicates += m.duplicates_takeover + m.duplicates_fenced;
		sum.duplicates += m.duplicates_recognised;
	}
	if (!size || size > sizeof(sum))
		size = sizeof(sum);
	sum.struct_size = size;
	memcpy(ret_counts, &sum, size);
}

void relay_counts_add(struct outbox_relay_counts *sum, const struct outbox_relay_counts *more)
{
	sum->delivered += more->delivered;
	sum->failed += more->failed;
	sum->retried += more->retried;
	sum->parked += more->parked;
	sum->deferred += more->deferred;
	sum->returned += more->returned;
	sum->batches += more->batches;
	sum->outages += more->outages;
	sum->takeovers += more->takeovers;
	sum->fenced += more->fenced;
	sum->unknown += more->unknown;
	sum->possible_duplicates += more->possible_duplicates;
	sum->duplicates += more->duplicates;
}

void outbox_relay_in_flight(const struct outbox_relay *relay, size_t *ret_batches,
			    size_t *ret_messages)
{
	uint64_t batches = 0, messages = 0;

	for (size_t i = 0; relay && i < relay->plan.n_targets; i++) {
		const struct tally *t = &relay->tallies[i];

		batches += atomic_load_explicit(&t->in_flight_batches, memory_order_relaxed);
		messages += atomic_load_explicit(&t->in_flight_messages, memory_order_relaxed);
	}
	if (ret_batches)
		*ret_batches = (size_t)batches;
	if (ret_messages)
		*ret_messages = (size_t)messages;
}
