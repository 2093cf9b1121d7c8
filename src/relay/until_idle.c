/* SPDX-License-Identifier: Apache-2.0 */
/* Run until nothing is left but deferred, failed and discarded deliveries. */
#include "relay/relay.h"
#include "store/store.h"

#include <string.h>

#define STATS_MAX ((size_t)4 << 20)
#define IDLE_CHECK (20 * OUTBOX_MILLISECONDS)
#define IDLE_CHECK_MAX (500 * OUTBOX_MILLISECONDS)

/* What keeps us from being idle. */
enum business {
	BUSINESS_NONE = 0,
	BUSINESS_STUCK, /* nothing will move by itself: paused, or parked behind a failed message */
	BUSINESS_GOING
};

/* What one look at the store shows. */
struct look {
	enum business business;
	struct outbox_error refusal; /* why a lane is refused; status 0: none is */
	const char *paused;          /* the first target that has work and is paused; NULL: none */
	bool noted; /* each such lane was tried by a worker of ours, so the store has noted it */
};

/* The first worker that serves nothing of its target; NULL: none is known. */
static const struct worker *find_unserved(const struct outbox_relay *relay)
{
	for (size_t i = 0; i < relay->n_threads; i++)
		if (atomic_load(&relay->threads[i].worker->lease.shown_unserved) > UNSERVED_NOT)
			return relay->threads[i].worker;
	return NULL;
}

/* What a target that is not registered would get is not in the figures: each worker must have asked for its lanes. */
static enum business business_of_workers(const struct outbox_relay *relay)
{
	for (size_t i = 0; i < relay->n_threads; i++)
		if (atomic_load(&relay->threads[i].worker->lease.shown_unserved) == UNSERVED_UNKNOWN)
			return BUSINESS_GOING;
	return find_unserved(relay) ? BUSINESS_STUCK : BUSINESS_NONE;
}

static bool is_served(const struct outbox_relay *relay, const char *target)
{
	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;

		if (strcmp(w->link.target->name, target) == 0 &&
		    atomic_load(&w->lease.shown_unserved) <= UNSERVED_NOT)
			return true;
	}
	return false;
}

static enum business business_of(const struct outbox_relay *relay,
				 const struct outbox_target_stats *t)
{
	const struct target_plan *plan = plan_find(&relay->plan, t->name);
	int64_t moving = t->pending + t->sending + t->waiting;

	/* oldest also knows deferred ones whose time has come */
	if (!plan || (!moving && !t->parked && !t->oldest))
		return BUSINESS_NONE;
	if ((t->paused && !t->sending) || !is_served(relay, t->name))
		return BUSINESS_STUCK;
	return plan->hold && t->failed && t->parked && !moving ? BUSINESS_STUCK : BUSINESS_GOING;
}

static size_t count_refused(const struct outbox_relay *relay, const char *target)
{
	size_t count = 0;

	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;

		if (strcmp(w->link.target->name, target) == 0)
			count += (size_t)atomic_load(&w->shown_refused);
	}
	return count;
}

/* What a relay refuses does not become idle, and running longer does not help, once that is noted. */
static void find_refusal(const struct outbox_relay *relay, const struct outbox_target_stats *t,
			 struct look *look)
{
	size_t refused = 0;

	for (size_t i = 0; plan_find(&relay->plan, t->name) && i < t->n_lanes; i++)
		if (t->lanes[i].refused && refused++ == 0)
			outbox_fail(&look->refusal, OUTBOX_EPROTO, "%s", t->lanes[i].refused);
	if (refused > count_refused(relay, t->name))
		look->noted = false;
}

static int read_business(const struct outbox_relay *relay, struct outbox_store *store,
			 struct outbox_arena *arena, struct look *look, struct outbox_error *err)
{
	struct outbox_stats stats;
	int r;

	outbox_arena_reset(arena);
	r = store_stats(store, arena, &stats, err);
	if (r)
		return r;
	*look = (struct look){ .business = business_of_workers(relay),
			       .refusal = OUTBOX_ERROR_INIT,
			       .noted = true };
	for (size_t i = 0; i < stats.n_targets; i++) {
		enum business one = business_of(relay, &stats.targets[i]);

		look->business = one > look->business ? one : look->business;
		if (one == BUSINESS_STUCK && stats.targets[i].paused && !look->paused)
			look->paused = plan_find(&relay->plan, stats.targets[i].name)->name;
		find_refusal(relay, &stats.targets[i], look);
	}
	if (look->refusal.status)
		look->business = BUSINESS_STUCK;
	return OUTBOX_OK;
}

/* A store that is busy, full or away is the workers' business, who say so and try again; so do we. */
static bool is_passing(int status)
{
	return status == OUTBOX_EBUSY || status == OUTBOX_ECONN || status == OUTBOX_ETIMEDOUT ||
	       status == OUTBOX_EFULL;
}

static bool told_to_stop(const volatile int *stop)
{
	return stop && __atomic_load_n(stop, __ATOMIC_RELAXED);
}

/* A parked message whose turn has just come looks stuck until the next poll: look twice. */
static outbox_time patience(const struct outbox_relay *relay, const struct look *look)
{
	bool refused = look->refusal.status;
	outbox_time longest = 500 * OUTBOX_MILLISECONDS;

	for (size_t i = 0; i < relay->plan.n_targets; i++)
		if (2 * relay->plan.targets[i].poll_max > longest)
			longest = 2 * relay->plan.targets[i].poll_max;
	/* Who is in our way may be dead: then it is gone after a lease, and its lanes are ours. */
	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;
		outbox_time lease = w->link.target->lease + w->link.target->lease / 2;

		if ((refused || atomic_load(&w->lease.shown_unserved) == UNSERVED_FOR_NOW) &&
		    lease > longest)
			longest = lease;
	}
	return refused && look->noted ? 0 : longest;
}

/* Counting a long backlog takes its time, which the workers could use: a fifth of it at most is ours. */
static outbox_time pause_after(outbox_time looked_for)
{
	outbox_time pause = 4 * looked_for;

	if (pause < IDLE_CHECK)
		return IDLE_CHECK;
	return pause < IDLE_CHECK_MAX ? pause : IDLE_CHECK_MAX;
}

/* Look, on a connection that is kept while it is of use. */
static int read_business_once(struct outbox_relay *relay, struct random_state *random,
			      struct outbox_store **store, struct outbox_arena *arena,
			      struct look *look, struct outbox_error *err)
{
	int r = *store ? OUTBOX_OK : plan_open_store(&relay->plan, random, store, err);

	if (!r)
		r = read_business(relay, *store, arena, look, err);
	if (r && r != OUTBOX_EBUSY)
		*store = store_close(*store);
	return r;
}

/* How it ended, to the caller or to the log. r: how the last look did, which failure tells. */
static int tell_end(const struct outbox_relay *relay, const struct look *look, int r,
		    const struct outbox_error *failure, struct outbox_error *err)
{
	if (is_passing(r))
		return OUTBOX_OK;
	if (!r && look->refusal.status) {
		failure = &look->refusal;
		r = failure->status;
	}
	if (r && err)
		*err = *failure;
	if (r || look->business != BUSINESS_STUCK || find_unserved(relay))
		return r;
	log_event(&relay->plan.log, EVENT_RELAY_STUCK, &(struct about){ .target = look->paused },
		  "what is left will not move by itself: %s",
		  look->paused ? "the target is paused" : "messages are parked behind a failed one");
	return r;
}

static int wait_for_idle(struct outbox_relay *relay, struct outbox_arena *arena,
			 const volatile int *stop, struct outbox_error *err)
{
	struct outbox_clock *clock = relay->plan.clock;
	struct outbox_store *store = NULL;
	struct random_state random;
	unsigned wakes_seen = 0;
	struct look look = { .business = BUSINESS_GOING, .refusal = OUTBOX_ERROR_INIT };
	struct outbox_error failure = OUTBOX_ERROR_INIT; /* passing or not; err is for what is not */
	outbox_time moved_at = clock->mono(clock), pause = IDLE_CHECK, began;
	int r = OUTBOX_OK;

	while (look.business && (!r || is_passing(r)) && !told_to_stop(stop)) {
		wakeup_wait(&relay->wakeup, clock->mono(clock) + pause, &wakes_seen);
		began = clock->mono(clock);
		r = read_business_once(relay, &random, &store, arena, &look, &failure);
		pause = pause_after(r ? pause : clock->mono(clock) - began);
		if (r || look.business != BUSINESS_STUCK)
			moved_at = clock->mono(clock);
		else if (clock->mono(clock) - moved_at > patience(relay, &look))
			break;
	}
	store_close(store);
	return tell_end(relay, &look, r, &failure, err);
}

int outbox_relay_run_until_idle(struct outbox_relay *relay, const volatile int *stop,
				struct outbox_error *err)
{
	struct outbox_arena *arena;
	const struct worker *unserved;
	int r, stopped;

	if (!relay)
		return outbox_fail(err, OUTBOX_EINVAL, "there is no relay to run");
	arena = outbox_arena_new(STATS_MAX);
	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	relay_get_ready(relay);
	for (size_t i = 0; i < relay->n_threads; i++)
		relay->threads[i].worker->link.once = false;
	r = outbox_relay_start(relay, err);
	if (!r) {
		r = wait_for_idle(relay, arena, stop, err);
		stopped = outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, r ? NULL : err);
		r = r ? r : stopped;
		relay->ran = true;
	}
	unserved = r ? NULL : find_unserved(relay);
	if (unserved) { /* its threads have ended */
		r = outbox_fail(err, unserved->lease.unserved.status, "%s",
				unserved->lease.unserved.message);
		outbox_wrap(err, "target \"%s\"", unserved->link.target->name);
	}
	outbox_arena_free(arena);
	return r;
}
