/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/lease.h"

#include "base/failpoint.h"
#include "relay/lane.h"
#include "relay/outage.h"
#include "relay/unserved.h"

#include <string.h>

static struct lane *find_lane(struct worker *w, int number)
{
	for (size_t i = 0; i < w->n_lanes; i++)
		if (w->lanes[i]->number == number)
			return w->lanes[i];
	return NULL;
}

static int add_lane(struct worker *w, int number, struct outbox_error *err)
{
	struct lane *lane;
	size_t i = w->n_lanes;
	int r = lane_new(number, w, &lane, err);

	if (r)
		return r;
	for (; i > 0 && w->lanes[i - 1]->number > number; i--)
		w->lanes[i] = w->lanes[i - 1];
	w->lanes[i] = lane;
	w->n_lanes++;
	return OUTBOX_OK;
}

/* Bring our lanes in line with what the store says we hold. */
static int follow_lease(struct worker *w, const struct outbox_lease *lease, struct outbox_error *err)
{
	bool held[OUTBOX_LANES_MAX] = { false };
	bool none = lease->stale_route || lease->elsewhere[0];
	int r = OUTBOX_OK;

	for (int i = 0; i < lease->count; i++) {
		held[lease->lanes[i]] = true;
		if (!r && !find_lane(w, lease->lanes[i]))
			r = add_lane(w, lease->lanes[i], err);
	}
	for (size_t i = 0; i < w->n_lanes; i++) {
		struct lane *lane = w->lanes[i];

		if (none)
			lane_stop_sending(lane); /* settle, then release: the new relay need not wait */
		else if (!held[lane->number])
			lane_lose(lane);
		/* Above our share: the last ones are let go when they have nothing in flight. */
		lane->leaving = i >= (size_t)lease->share || none;
		if (lane->leaving)
			lane->run_at = 0;
	}
	return r;
}

/* Two relays that send one target to two places would share its messages out between them. */
static void report_elsewhere(struct worker *w, const struct outbox_lease *lease, outbox_time now)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;

	outbox_fail(&why, OUTBOX_ECONFIG,
		    "%.80s takes no lanes: it would send to %.110s, and %.80s, which was here before, "
		    "sends to %.110s; give both the same \"to\" or stop one of them",
		    w->owner, w->place, lease->elsewhere_owner, lease->elsewhere);
	unserved_report(w, UNSERVED_FOR_NOW, &why, now);
}

static void report_unstarted(struct worker *w, outbox_time now)
{
	const char *name = w->target->band_of ? w->target->band_of : w->target->name;
	struct outbox_error why = OUTBOX_ERROR_INIT;

	outbox_fail(&why, OUTBOX_ECONFIG,
		    "it is new, and messages were already delivered here: say where it starts with "
		    "start: oldest or start: now (on a command line --start %s=oldest or --start "
		    "%s=now); until then it gets nothing",
		    name, name);
	unserved_report(w, UNSERVED, &why, now);
}

void lease_keep(struct worker *w, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease lease;
	struct outbox_lease_request request = {
		.target = w->target->name,
		.owner = w->owner,
		.duration = w->target->lease,
		.route_version = w->target->route_version,
		.leaving = atomic_load(&w->draining),
		.outage = breaker_probing(&w->breaker) ? w->outage.message : NULL,
		.outage_age = now - w->breaker.since,
		.place = w->place[0] ? w->place : NULL,
	};

	if (w->target->unstarted) {
		w->lease_at = now + w->target->lease / 2;
		report_unstarted(w, now);
		return;
	}
	memset(&lease, 0, sizeof(lease));
	if (w->store->ops->lease(w->store, &request, &lease, &err) || follow_lease(w, &lease, &err)) {
		outage_store(w, "lease", &err, now);
		return;
	}
	failpoint("after_lease");
	outage_store_over(w, "lease", now);
	/* Perhaps too late, though nobody took the lanes: an operator may have acted on what was in
	 * flight. The call itself may have been slow, so look at the clock again. */
	for (size_t i = 0; i < w->n_lanes && w->plan->clock->mono(w->plan->clock) >= w->lease_until;
	     i++)
		lane_stop_sending(w->lanes[i]);
	/* Counted from before the call, and a tenth less: surely over later than the store's own. */
	w->lease_until = now + w->target->lease - w->target->lease / 10;
	w->lease_at = now + w->target->lease / 3;
	w->leased = true;
	if (lease.open_since > w->open_since)
		w->open_since = lease.open_since;
	if (lease.stale_route && !w->stale_route)
		log_event(&w->plan->log, EVENT_TARGET_REROUTED, ABOUT_TARGET(w),
			  "its routing was changed by another relay; this one takes no lanes until "
			  "it is restarted with the new routing");
	w->stale_route = lease.stale_route;
	if (lease.elsewhere[0])
		report_elsewhere(w, &lease, now);
	else
		unserved_over(w, now);
}
