/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/lease.h"

#include "base/failpoint.h"
#include "base/text.h"
#include "relay/place.h"
#include "store/store.h"

#include <string.h>

void lease_init(struct lease *lease, const struct link *link)
{
	if (!place_of(link->target->to, lease->place))
		lease->place[0] = '\0';
}

static int lanes_add(struct lanes *lanes, int number, const struct link *link,
		     struct outbox_error *err)
{
	struct lane *lane = NULL;
	size_t i = lanes->count;
	int r = lane_new(number, link, &lane, err);

	if (r)
		return r;
	for (; i > 0 && lanes->list[i - 1]->number > number; i--)
		lanes->list[i] = lanes->list[i - 1];
	lanes->list[i] = lane;
	lanes->count++;
	return OUTBOX_OK;
}

static struct lane *lanes_find(const struct lanes *lanes, int number)
{
	for (size_t i = 0; i < lanes->count; i++)
		if (lanes->list[i]->number == number)
			return lanes->list[i];
	return NULL;
}

void lanes_remove(struct lanes *lanes, struct lane *lane, struct link *link)
{
	size_t i = 0;

	while (lanes->list[i] != lane)
		i++;
	memmove(&lanes->list[i], &lanes->list[i + 1], (--lanes->count - i) * sizeof(lanes->list[0]));
	link->n_refused -= lane->refusal.status != OUTBOX_OK;
	lane_free(lane);
}

static int write_unserved(struct link *link, const char *why, struct outbox_error *err)
{
	if (!link->store)
		return OUTBOX_OK;
	return store_unserved(link->store,
			      &(struct outbox_unserved){ .target = link->target->name,
							 .owner = link->owner,
							 .duration = link->target->lease,
							 .why = why },
			      err);
}

/* Said again with every round of lease keeping: the store forgets it when a relay dies. */
static void report_unserved(struct lease *lease, struct link *link, enum unserved how,
			    const struct outbox_error *why, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (!lease->unserved.status) {
		lease->unserved_since = now;
		log_event(&link->plan->log, EVENT_TARGET_UNSERVED, ABOUT_TARGET(link), "%s",
			  why->message);
	}
	lease->unserved = *why;
	atomic_store(&lease->shown_unserved, (int)how);
	if (write_unserved(link, why->message, &err))
		link_store_failed(link, "unserved", &err, now);
	else
		link_store_answered(link, "unserved", now);
}

static void report_served(struct lease *lease, struct link *link, outbox_time now)
{
	char waited[DURATION_TEXT_MAX];

	atomic_store(&lease->shown_unserved, UNSERVED_NOT);
	if (!lease->unserved.status)
		return;
	lease->unserved.status = OUTBOX_OK;
	log_event(&link->plan->log, EVENT_TARGET_SERVED, ABOUT_TARGET(link),
		  "served again after %s", duration_human(now - lease->unserved_since, waited));
	(void)write_unserved(link, NULL, NULL); /* else it is forgotten when its time is over */
}

/* An outage is reported by the link; until something else is known the target counts as served. */
static void show_asked(struct lease *lease)
{
	int unknown = UNSERVED_UNKNOWN;

	atomic_compare_exchange_strong(&lease->shown_unserved, &unknown, UNSERVED_NOT);
}

/* Bring our lanes in line with what the store says we hold. */
static int follow_lease(struct link *link, struct lanes *lanes, const struct outbox_lease *given,
			struct outbox_error *err)
{
	bool held[OUTBOX_LANES_MAX] = { false };
	bool none = given->stale_route || given->elsewhere[0];
	int r = OUTBOX_OK;

	for (int i = 0; i < given->count; i++) {
		held[given->lanes[i]] = true;
		if (!r && !lanes_find(lanes, given->lanes[i]))
			r = lanes_add(lanes, given->lanes[i], link, err);
	}
	for (size_t i = 0; i < lanes->count; i++) {
		struct lane *lane = lanes->list[i];

		if (none)
			lane_stop_sending(lane); /* settle, then release: the new relay need not wait */
		else if (!held[lane->number])
			lane_lose(lane);
		/* Above our share: the last ones are let go when they have nothing in flight. */
		lane->leaving = i >= (size_t)given->share || none;
		if (lane->leaving)
			lane->run_at = 0;
	}
	return r;
}

/* Two relays that send one target to two places would share its messages out between them. */
static void report_elsewhere(struct lease *lease, struct link *link,
			     const struct outbox_lease *given, outbox_time now)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;

	outbox_fail(&why, OUTBOX_ECONFIG,
		    "%.80s takes no lanes: it would send to %.110s, but %.80s, which was here first, "
		    "sends to %.110s; give both the same \"to\" or stop one of them",
		    link->owner, lease->place, given->elsewhere_owner, given->elsewhere);
	report_unserved(lease, link, UNSERVED_FOR_NOW, &why, now);
}

static void report_unstarted(struct lease *lease, struct link *link, outbox_time now)
{
	const char *name = link->target->band_of ? link->target->band_of : link->target->name;
	struct outbox_error why = OUTBOX_ERROR_INIT;

	outbox_fail(&why, OUTBOX_ECONFIG,
		    "it is new, and messages were already delivered here: say where it starts with "
		    "start: oldest, start: now or a time (on a command line --start %s=oldest or --start "
		    "%s=now); until then it gets nothing",
		    name, name);
	report_unserved(lease, link, UNSERVED, &why, now);
}

/* Who has nothing to do is not broken. */
static void report_standby(struct lease *lease, const struct link *link,
			   const struct outbox_lease *given)
{
	bool standby = given->share == 0 && !given->stale_route && !given->elsewhere[0] &&
		       !atomic_load(&link->draining);

	if (standby && !lease->standby)
		log_event(&link->plan->log, EVENT_TARGET_STANDBY, ABOUT_TARGET(link),
			  "stands by: it has %d lane%s, and as many others work on it; this worker takes "
			  "over when one of them goes",
			  given->total, given->total == 1 ? "" : "s");
	lease->standby = standby;
}

void lease_keep(struct lease *lease, struct link *link, struct lanes *lanes, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease given;
	struct outbox_lease_request request = {
		.target = link->target->name,
		.owner = link->owner,
		.duration = link->target->lease,
		.route_version = link->target->route_version,
		.leaving = atomic_load(&link->draining),
		.outage = breaker_probing(&link->breaker) ? link->outage.message : NULL,
		.outage_age = now - link->breaker.since,
		.place = lease->place[0] ? lease->place : NULL,
	};

	if (link->target->unstarted) {
		link->lease_at = now + link->target->lease / 2;
		report_unstarted(lease, link, now);
		return;
	}
	memset(&given, 0, sizeof(given));
	if (store_lease(link->store, &request, &given, &err) ||
	    follow_lease(link, lanes, &given, &err)) {
		link_store_failed(link, "lease", &err, now);
		show_asked(lease);
		return;
	}
	failpoint("after_lease");
	link_store_answered(link, "lease", now);
	/* Perhaps too late, though nobody took the lanes: an operator may have acted on what was in
	 * flight. The call itself may have been slow, so look at the clock again. */
	for (size_t i = 0;
	     i < lanes->count && link->plan->clock->mono(link->plan->clock) >= link->lease_until;
	     i++)
		lane_stop_sending(lanes->list[i]);
	/* Counted from before the call, and a tenth less: surely over later than the store's own. */
	link->lease_until = now + link->target->lease - link->target->lease / 10;
	link->lease_at = now + link->target->lease / 3;
	lease->held = true;
	if (given.open_since > link->open_since)
		link->open_since = given.open_since;
	if (given.stale_route && !link->stale_route)
		log_event(&link->plan->log, EVENT_TARGET_REROUTED, ABOUT_TARGET(link),
			  "its routing was changed by another relay; this one takes no lanes until "
			  "it is restarted with the new routing");
	link->stale_route = given.stale_route;
	report_standby(lease, link, &given);
	if (given.elsewhere[0])
		report_elsewhere(lease, link, &given, now);
	else
		report_served(lease, link, now);
}

void lease_leave(struct lease *lease, struct link *link, const struct lanes *lanes)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_lease_request request = { .target = link->target->name,
						.owner = link->owner,
						.duration = link->target->lease,
						.route_version = link->target->route_version,
						.leaving = true };
	struct outbox_lease given;

	if (!link->store)
		return;
	memset(&given, 0, sizeof(given));
	/* Past the deadline some are left: without us they need not wait for the lease to end. */
	for (size_t i = 0; i < lanes->count; i++)
		if (store_release(link->store, link->target->name, lanes->list[i]->number,
				  link->owner, &err))
			break;
	if (!link->target->unstarted && store_lease(link->store, &request, &given, &err))
		log_event(&link->plan->log, EVENT_TARGET_UNSIGNED, ABOUT_TARGET(link),
			  "could not sign off: %s; others wait for the lease to end", err.message);
	if (lease->unserved.status)
		(void)write_unserved(link, NULL, NULL);
}

void lease_reset(struct lease *lease)
{
	lease->held = lease->standby = false;
	lease->unserved.status = OUTBOX_OK;
	atomic_store(&lease->shown_unserved, UNSERVED_UNKNOWN);
}
