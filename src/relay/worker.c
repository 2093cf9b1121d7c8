/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/worker.h"

#include "relay/send.h"

#include <stdlib.h>

#define RETENTION_PATIENCE (2 * OUTBOX_SECONDS)

int worker_new(const struct relay_plan *plan, size_t target, int index, struct tally *tally,
	       struct worker **ret_worker, struct outbox_error *err)
{
	struct worker *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = link_init(&w->link, plan, target, index, tally, err);
	if (r) {
		worker_free(w);
		return r;
	}
	lease_init(&w->lease, &w->link);
	*ret_worker = w;
	return OUTBOX_OK;
}

struct worker *worker_free(struct worker *w)
{
	if (!w)
		return NULL;
	while (w->lanes.count)
		lanes_remove(&w->lanes, w->lanes.list[0], &w->link);
	link_deinit(&w->link);
	retention_deinit(&w->retention);
	free(w);
	return NULL;
}

/* When a lane wants to run: a wake-up is for those that wait for something to read. */
static outbox_time lane_time(const struct worker *w, const struct lane *lane)
{
	bool reads = lane->phase == LANE_CLAIM || lane->phase == LANE_LOOK;
	bool woken = reads && lane->dry && lane->dry != wakeup_count(w->link.wakeup);

	if (lane->refusal.status && lane->phase != LANE_RELEASE)
		return lane->run_at; /* asking more often does not help */
	return woken || atomic_load(&w->link.draining) ? 0 : lane->run_at;
}

static bool needs_store(const struct lane *lane)
{
	return lane->phase != LANE_SEND;
}

/* The next lane in turn that has something to do with the store, or else with the broker; NULL: none has. */
static struct lane *next_lane(struct worker *w, bool store, outbox_time now)
{
	for (size_t i = 0; i < w->lanes.count; i++) {
		struct lane *lane = w->lanes.list[(w->turn + i) % w->lanes.count];

		if (lane_time(w, lane) > now || needs_store(lane) != store)
			continue;
		if (needs_store(lane) && (!w->link.store || now < w->link.store_at))
			continue;
		w->turn = (w->turn + i + 1) % w->lanes.count;
		return lane;
	}
	return NULL;
}

/* When retention is due; whoever holds lane 0 does it. */
static outbox_time retention_at(const struct worker *w)
{
	return retention_due(&w->retention, &w->link,
			     w->lanes.count && w->lanes.list[0]->number == 0);
}

static outbox_time earlier(outbox_time a, outbox_time b)
{
	return a < b ? a : b;
}

/* When there will be something to do. */
static outbox_time next_time(const struct worker *w, outbox_time now)
{
	outbox_time at = earlier(w->link.lease_at, retention_at(w));

	if (atomic_load(&w->link.draining) && !w->lanes.count)
		return now; /* nothing is held any more: leave at once */
	if (!w->link.store || now < w->link.store_at)
		at = w->link.store_at;
	for (size_t i = 0; i < w->lanes.count; i++) {
		const struct lane *lane = w->lanes.list[i];
		outbox_time run_at = lane_time(w, lane);

		if (needs_store(lane) && run_at < w->link.store_at)
			run_at = w->link.store_at;
		at = earlier(at, run_at);
	}
	return at > now ? at : now;
}

static void sign_off(struct worker *w)
{
	rejection_log_flush(&w->link.rejections);
	lease_leave(&w->lease, &w->link, &w->lanes);
	if (w->link.connected)
		w->link.transport->ops->disconnect(w->link.transport);
	w->link.connected = false;
	atomic_store(&w->left, true);
}

/* Run once: nothing is due any more, or nothing can be done about it. */
static bool once_is_over(struct worker *w, outbox_time now)
{
	if (w->link.store_outage.status || w->lease.unserved.status ||
	    breaker_open(&w->link.breaker, now)) {
		w->gave_up = w->link.store_outage.status ? w->link.store_outage
			     : w->lease.unserved.status  ? w->lease.unserved
							 : w->link.outage;
		return true;
	}
	w->gave_up.status = OUTBOX_OK;
	for (size_t i = 0; i < w->lanes.count; i++) {
		const struct lane *lane = w->lanes.list[i];

		if (!lane->refusal.status && !lane->ran_dry)
			return false;
		if (lane->refusal.status && !w->gave_up.status)
			w->gave_up = lane->refusal;
	}
	return w->lease.held;
}

size_t worker_unsettled(const struct worker *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->lanes.count; i++)
		n += lane_batch(w->lanes.list[i])->claim.count > 0;
	return n;
}

/* Draining: lanes finish, settle and release by themselves; past the deadline we just go. */
static bool drained(struct worker *w, outbox_time now)
{
	for (size_t i = 0; i < w->lanes.count; i++) {
		struct lane *lane = w->lanes.list[i];
		bool refused = lane->refusal.status && !lane_batch(lane)->claim.count;

		lane->leaving = true;
		if (lane->phase == LANE_TAKE || refused)
			lane->phase = LANE_RELEASE;
	}
	/* The store is away and nothing waits to be settled: only leases are left, and those end. */
	if (w->link.away && !worker_unsettled(w))
		return true;
	return !w->lanes.count ||
	       now >= atomic_load(&w->link.drain_until) + w->link.target->publish_timeout ||
	       (!w->link.store && now >= atomic_load(&w->link.drain_until));
}

/* Lease keeping goes before work: a lane that is not surely ours must not be worked on. */
static void work(struct worker *w, outbox_time now)
{
	bool store_ready = w->link.store && now >= w->link.store_at;
	struct lane *lane;

	if (!w->link.store && now >= w->link.store_at) {
		link_open_store(&w->link, now);
		return;
	}
	if (store_ready && now >= w->link.lease_at) {
		lease_keep(&w->lease, &w->link, &w->lanes, now);
		return;
	}
	/* Between batches when there is time; but a relay that is always busy must clean up too. */
	if (store_ready && now - RETENTION_PATIENCE >= retention_at(w)) {
		retention_step(&w->retention, &w->link, now);
		return;
	}
	/* The store first: those that have something to send then send it together. */
	lane = next_lane(w, true, now);
	lane = lane ? lane : next_lane(w, false, now);
	if (lane) {
		if (lane->phase == LANE_SEND)
			send_rounds(&w->link, &w->lanes, lane, now);
		else
			lane_step(&w->link, &w->lanes, lane, now);
		if (lane->phase == LANE_RELEASE && lane->lost)
			lanes_remove(&w->lanes, lane, &w->link);
		return;
	}
	if (store_ready && now >= retention_at(w))
		retention_step(&w->retention, &w->link, now);
}

/* Tell the listener whether everything ran dry, and after which wake-up. */
static void show_dryness(struct worker *w)
{
	unsigned dry = wakeup_count(w->link.wakeup);

	for (size_t i = 0; i < w->lanes.count; i++)
		if (w->lanes.list[i]->dry < dry)
			dry = w->lanes.list[i]->dry;
	atomic_store(&w->dry, w->lease.held || w->lease.unserved.status ? dry : 0);
}

static void show_state(struct worker *w, outbox_time now)
{
	enum breaker_state breaker = breaker_open(&w->link.breaker, now) ? BREAKER_OPEN
				     : breaker_probing(&w->link.breaker) ? BREAKER_PROBING
									 : BREAKER_CLOSED;

	atomic_store_explicit(&w->shown_breaker, (int)breaker, memory_order_relaxed);
	atomic_store_explicit(&w->shown_lanes, (int)w->lanes.count, memory_order_relaxed);
	atomic_store_explicit(&w->shown_refused, (int)w->link.n_refused, memory_order_relaxed);
}

outbox_time worker_step(struct worker *w)
{
	outbox_time now = w->link.plan->clock->mono(w->link.plan->clock);

	if (worker_is_gone(w))
		return OUTBOX_NEVER;
	if (w->link.once && !atomic_load(&w->link.draining) && once_is_over(w, now))
		worker_drain(w, now + w->link.target->lease);
	if (atomic_load(&w->link.draining) && drained(w, now)) {
		sign_off(w);
		atomic_store_explicit(&w->shown_lanes, 0, memory_order_relaxed);
		return now;
	}
	work(w, now);
	show_dryness(w);
	show_state(w, now);
	return next_time(w, now);
}

void worker_drain(struct worker *w, outbox_time until)
{
	atomic_store(&w->link.drain_until, until);
	atomic_store(&w->link.draining, true);
}

bool worker_is_gone(const struct worker *w)
{
	return atomic_load(&w->left);
}

void worker_again(struct worker *w)
{
	while (w->lanes.count)
		lanes_remove(&w->lanes, w->lanes.list[0], &w->link);
	link_reset(&w->link);
	lease_reset(&w->lease);
	w->gave_up.status = OUTBOX_OK;
	atomic_store(&w->dry, 0);
	atomic_store(&w->left, false);
}
