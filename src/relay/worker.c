/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/worker.h"

#include "base/failpoint.h"
#include "base/text.h"
#include "relay/janitor.h"
#include "relay/lane.h"
#include "relay/lease.h"
#include "relay/outage.h"
#include "relay/place.h"
#include "relay/registry.h"
#include "relay/rejection_log.h"
#include "relay/unserved.h"
#include "store/store.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIRE_MEMORY ((size_t)64 << 20)
#define JANITOR_PATIENCE (2 * OUTBOX_SECONDS)

int worker_new(const struct relay_plan *plan, size_t target, int index, struct tally *tally,
	       struct worker **ret_worker, struct outbox_error *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	w->plan = plan;
	w->target = &plan->targets[target];
	w->tally = tally;
	snprintf(w->owner, sizeof(w->owner), "%s/%d", plan->instance, index);
	/* Tokens must differ between all who ever draw some: the owner's name makes the difference. */
	random_init(&w->random, plan->seed ^ text_hash(w->owner) ^ text_hash(w->target->name));
	if (!place_of(w->target->to, w->place))
		w->place[0] = '\0';
	breaker_init(&w->breaker, plan->breaker_min, plan->breaker_max);
	w->wire_memory = outbox_arena_new(WIRE_MEMORY);
	if (!w->wire_memory) {
		worker_free(w);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = registry_open_transport(plan->registry,
				    &(struct outbox_transport_config){
					    .struct_size = sizeof(struct outbox_transport_config),
					    .url = w->target->to,
					    .target = w->target->name,
					    .envelope = w->target->envelope,
					    .clock = plan->clock,
					    .random = &w->random.base,
				    },
				    &w->transport, err);
	if (r) {
		worker_free(w);
		outbox_wrap(err, "target \"%s\"", plan->targets[target].name);
		return r;
	}
	*ret_worker = w;
	return OUTBOX_OK;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	for (size_t i = 0; i < w->n_lanes; i++)
		lane_free(w->lanes[i]);
	transport_close(w->transport);
	outbox_arena_free(w->wire_memory);
	store_close(w->store);
	archiver_free(w->archiver);
	free(w);
	return NULL;
}

static void open_store(struct worker *w, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (registry_open_store(w->plan->registry, w->plan->store, false, w->plan->clock,
				&w->random.base, &w->store, &err))
		outage_store(w, "open", &err, now);
	w->away = !w->store;
	failpoint("after_open");
}

static void remove_lane(struct worker *w, struct lane *lane)
{
	size_t i = 0;

	while (w->lanes[i] != lane)
		i++;
	memmove(&w->lanes[i], &w->lanes[i + 1], (--w->n_lanes - i) * sizeof(*w->lanes));
	lane_free(lane);
}

unsigned worker_wakeups(const struct worker *w)
{
	return w->wakeup ? atomic_load(&w->wakeup->count) : 1;
}

/* When a lane wants to run: a wake-up is for those that wait for something to read. */
static outbox_time lane_time(const struct worker *w, const struct lane *lane)
{
	bool woken = lane->phase == LANE_READ && lane->dry && lane->dry != worker_wakeups(w);

	if (lane->refusal.status && lane->phase != LANE_RELEASE)
		return lane->run_at; /* asking more often does not help */
	return woken || atomic_load(&w->draining) ? 0 : lane->run_at;
}

static bool needs_store(const struct lane *lane)
{
	return lane->phase != LANE_SEND;
}

/* The next lane in turn that has something to do with the store, or else with the broker; NULL: none has. */
static struct lane *next_lane(struct worker *w, bool store, outbox_time now)
{
	for (size_t i = 0; i < w->n_lanes; i++) {
		struct lane *lane = w->lanes[(w->turn + i) % w->n_lanes];

		if (lane_time(w, lane) > now || needs_store(lane) != store)
			continue;
		if (needs_store(lane) && (!w->store || now < w->store_at))
			continue;
		w->turn = (w->turn + i + 1) % w->n_lanes;
		return lane;
	}
	return NULL;
}

static outbox_time earlier(outbox_time a, outbox_time b)
{
	return a < b ? a : b;
}

/* When there will be something to do. */
static outbox_time next_time(const struct worker *w, outbox_time now)
{
	outbox_time at = earlier(w->lease_at, janitor_due(w));

	if (atomic_load(&w->draining) && !w->n_lanes)
		return now; /* nothing is held any more: leave at once */
	if (!w->store || now < w->store_at)
		at = w->store_at;
	for (size_t i = 0; i < w->n_lanes; i++) {
		const struct lane *lane = w->lanes[i];
		outbox_time run_at = lane_time(w, lane);

		if (needs_store(lane) && run_at < w->store_at)
			run_at = w->store_at;
		at = earlier(at, run_at);
	}
	return at > now ? at : now;
}

/* Say goodbye, so that the others' shares grow at once. */
static void sign_off(struct worker *w)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease lease;

	rejection_log_flush(w);
	memset(&lease, 0, sizeof(lease));
	/* Past the deadline some are left: without us they need not wait for the lease to end. */
	for (size_t i = 0; w->store && i < w->n_lanes; i++)
		if (w->store->ops->release(w->store, w->target->name, w->lanes[i]->number, w->owner,
					   &err))
			break;
	if (w->store && !w->target->unstarted &&
	    w->store->ops->lease(w->store,
				 &(struct outbox_lease_request){ .target = w->target->name,
								 .owner = w->owner,
								 .duration = w->target->lease,
								 .route_version =
									 w->target->route_version,
								 .leaving = true },
				 &lease, &err))
		log_event(&w->plan->log, EVENT_TARGET_UNSIGNED, ABOUT_TARGET(w),
			  "could not sign off: %s; others wait for the lease to end", err.message);
	unserved_leave(w);
	if (w->connected)
		w->transport->ops->disconnect(w->transport);
	w->connected = false;
	atomic_store(&w->left, true);
}

/* Run once: nothing is due any more, or nothing can be done about it. */
static bool once_is_over(struct worker *w, outbox_time now)
{
	if (w->store_outage.status || w->unserved.status || breaker_open(&w->breaker, now)) {
		w->gave_up = w->store_outage.status ? w->store_outage
			     : w->unserved.status   ? w->unserved
						    : w->outage;
		return true;
	}
	w->gave_up.status = OUTBOX_OK;
	for (size_t i = 0; i < w->n_lanes; i++) {
		const struct lane *lane = w->lanes[i];

		if (!lane->refusal.status && !lane->ran_dry)
			return false;
		if (lane->refusal.status && !w->gave_up.status)
			w->gave_up = lane->refusal;
	}
	return w->leased;
}

size_t worker_unsettled(const struct worker *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_lanes; i++)
		n += w->lanes[i]->batches[w->lanes[i]->current].claim.count > 0;
	return n;
}

/* Draining: lanes finish, settle and release by themselves; past the deadline we just go. */
static bool drained(struct worker *w, outbox_time now)
{
	for (size_t i = 0; i < w->n_lanes; i++) {
		struct lane *lane = w->lanes[i];
		bool refused = lane->refusal.status && !lane_batch(lane)->claim.count;

		lane->leaving = true;
		if (lane->phase == LANE_TAKE || refused)
			lane->phase = LANE_RELEASE;
	}
	/* The store is away and nothing waits to be settled: only leases are left, and those end. */
	if (w->away && !worker_unsettled(w))
		return true;
	return !w->n_lanes || now >= atomic_load(&w->drain_until) + w->target->publish_timeout ||
	       (!w->store && now >= atomic_load(&w->drain_until));
}

/* Lease keeping goes before work: a lane that is not surely ours must not be worked on. */
static void work(struct worker *w, outbox_time now)
{
	bool store_ready = w->store && now >= w->store_at;
	struct lane *lane;

	if (!w->store && now >= w->store_at) {
		open_store(w, now);
		return;
	}
	if (store_ready && now >= w->lease_at) {
		lease_keep(w, now);
		return;
	}
	/* Between batches when there is time; but a relay that is always busy must clean up too. */
	if (store_ready && now - JANITOR_PATIENCE >= janitor_due(w)) {
		janitor_step(w, now);
		return;
	}
	/* The store first: those that have something to send then send it together. */
	lane = next_lane(w, true, now);
	lane = lane ? lane : next_lane(w, false, now);
	if (lane) {
		lane_step(w, lane, now);
		if (lane->phase == LANE_RELEASE && lane->lost)
			remove_lane(w, lane);
		return;
	}
	if (store_ready && now >= janitor_due(w))
		janitor_step(w, now);
}

/* Tell the listener whether everything ran dry, and after which wake-up. */
static void publish_dryness(struct worker *w)
{
	unsigned dry = worker_wakeups(w);

	for (size_t i = 0; i < w->n_lanes; i++)
		if (w->lanes[i]->dry < dry)
			dry = w->lanes[i]->dry;
	atomic_store(&w->dry, w->leased || w->unserved.status ? dry : 0);
}

static void publish_state(struct worker *w, outbox_time now)
{
	enum breaker_state breaker = breaker_open(&w->breaker, now) ? BREAKER_OPEN
				     : breaker_probing(&w->breaker) ? BREAKER_PROBING
								    : BREAKER_CLOSED;

	atomic_store_explicit(&w->shown_breaker, (int)breaker, memory_order_relaxed);
	atomic_store_explicit(&w->shown_lanes, (int)w->n_lanes, memory_order_relaxed);
}

outbox_time worker_step(struct worker *w)
{
	outbox_time now = w->plan->clock->mono(w->plan->clock);

	if (worker_left(w))
		return OUTBOX_NEVER;
	if (w->once && !atomic_load(&w->draining) && once_is_over(w, now))
		worker_drain(w, now + w->target->lease);
	if (atomic_load(&w->draining) && drained(w, now)) {
		sign_off(w);
		atomic_store_explicit(&w->shown_lanes, 0, memory_order_relaxed);
		return now;
	}
	work(w, now);
	publish_dryness(w);
	publish_state(w, now);
	return next_time(w, now);
}

void worker_drain(struct worker *w, outbox_time until)
{
	atomic_store(&w->drain_until, until);
	atomic_store(&w->draining, true);
}

bool worker_left(const struct worker *w)
{
	return atomic_load(&w->left);
}

void worker_again(struct worker *w)
{
	while (w->n_lanes)
		remove_lane(w, w->lanes[0]);
	w->store = store_close(w->store);
	breaker_init(&w->breaker, w->plan->breaker_min, w->plan->breaker_max);
	w->outage.status = w->store_outage.status = w->gave_up.status = w->unserved.status =
		OUTBOX_OK;
	w->store_outage_call = NULL;
	w->lease_at = w->lease_until = w->store_at = w->store_delay = 0;
	w->leased = w->stale_route = w->away = false;
	atomic_store(&w->shown_unserved, UNSERVED_NOT);
	atomic_store(&w->dry, 0);
	atomic_store(&w->draining, false);
	atomic_store(&w->left, false);
}
