/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/janitor.h"

#include "base/text.h"
#include "relay/trouble.h"

#define TEND_INTERVAL OUTBOX_SECONDS

static bool holds_first_lane(const struct worker *w)
{
	return w->keeper && w->n_lanes && w->lanes[0]->number == 0;
}

outbox_time janitor_due(const struct worker *w)
{
	outbox_time purge = w->plan->purge_interval == OUTBOX_NEVER ? OUTBOX_NEVER : w->purge_at;
	outbox_time tend = w->store && w->store->ops->tend ? w->tend_at : OUTBOX_NEVER;

	if (!holds_first_lane(w) || atomic_load(&w->draining))
		return OUTBOX_NEVER;
	return purge < tend ? purge : tend;
}

static outbox_time before(outbox_time store_now, outbox_time retention)
{
	return retention == OUTBOX_NEVER || retention >= store_now ? 0 : store_now - retention;
}

static int purge(struct worker *w, outbox_time now, struct outbox_error *err)
{
	/* The store compares with its own times; the wall clock only says how far back to look, and a
	 * skew of seconds does not matter to a retention of days. */
	outbox_time wall = w->plan->clock->wall(w->plan->clock);
	struct outbox_purge request = {
		.delivered_before = before(wall, w->plan->retain_delivered),
		.failed_before = before(wall, w->plan->retain_failed),
	};
	struct outbox_purged purged = { 0 };
	int r;

	if (!request.delivered_before && !request.failed_before) {
		w->purge_at = now + w->plan->purge_interval;
		return OUTBOX_OK;
	}
	r = w->store->ops->purge(w->store, &request, &purged, err);
	if (r)
		return r;
	w->purge_at = purged.more ? now : now + w->plan->purge_interval;
	if (purged.messages)
		log_line(&w->plan->log, LOG_DEBUG, "purged %lld messages",
			 (long long)purged.messages);
	return OUTBOX_OK;
}

void janitor_step(struct worker *w, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r;

	if (w->plan->purge_interval != OUTBOX_NEVER && now >= w->purge_at) {
		r = purge(w, now, &err);
	} else {
		w->tend_at = now + TEND_INTERVAL;
		r = w->store->ops->tend(w->store, &err);
	}
	/* A clean-up that fails never stops the relay: it is due again at its next time. */
	if (!r) {
		trouble_store_over(w, "purge", now);
		return;
	}
	w->purge_at = now + OUTBOX_SECONDS;
	if (r != OUTBOX_EBUSY)
		trouble_store(w, "purge", &err, now);
}
