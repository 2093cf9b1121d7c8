/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/janitor.h"

#include "store/store.h"

#include "base/text.h"
#include "relay/outage.h"

#include <string.h>

#define TEND_INTERVAL OUTBOX_SECONDS
#define PURGE_GAP (50 * OUTBOX_MILLISECONDS)
#define PURGE_WALK OUTBOX_SECONDS

static bool holds_first_lane(const struct worker *w)
{
	return w->keeper && w->n_lanes && w->lanes[0]->number == 0;
}

outbox_time janitor_due(const struct worker *w)
{
	outbox_time purge = w->plan->purge_interval == OUTBOX_NEVER ? OUTBOX_NEVER : w->purge_at;
	outbox_time tend = w->store && STORE_HAS(w->store, maintain) ? w->tend_at : OUTBOX_NEVER;

	if (!holds_first_lane(w) || atomic_load(&w->draining))
		return OUTBOX_NEVER;
	return purge < tend ? purge : tend;
}

static outbox_time time_before(outbox_time store_now, outbox_time retention)
{
	return retention == OUTBOX_NEVER || retention >= store_now ? 0 : store_now - retention;
}

/* As one call of the store, or as one step of an archive that comes first. */
static int purge_some(struct worker *w, struct outbox_purged *purged, bool *ours,
		      struct outbox_error *err)
{
	int r = OUTBOX_OK;

	*ours = false;
	if (!w->plan->archive)
		return w->store->ops->purge(w->store, &w->purge, purged, err);
	if (!w->archiver)
		r = archiver_new(w->plan->archive, w->plan->clock, &w->archiver, err);
	return r ? r : archiver_step(w->archiver, w->store, &w->purge, purged, ours, err);
}

static int purge(struct worker *w, outbox_time now, bool *ours, struct outbox_error *err)
{
	/* The store compares with its own times; the wall clock only says how far back to look, and a
	 * skew of seconds does not matter to a retention of days. */
	outbox_time wall = w->plan->clock->wall(w->plan->clock);
	struct outbox_purge *request = &w->purge;
	struct outbox_purged purged = { 0 };
	int r;

	/* A round of several calls keeps its times, or the store would begin anew at each. */
	if (!request->delivered_before && !request->failed_before) {
		request->delivered_before = time_before(wall, w->plan->retain_delivered);
		request->failed_before = time_before(wall, w->plan->retain_failed);
	}
	if (!request->delivered_before && !request->failed_before) {
		w->purge_at = now + w->plan->purge_interval;
		return OUTBOX_OK;
	}
	r = purge_some(w, &purged, ours, err);
	if (r)
		return r;
	/* Between two calls publishers get the write lock too. One that only looked at what stays, waiting for a
	 * target that is away, is in no hurry to look on. */
	if (purged.more && !w->plan->archive &&
	    purged.messages + purged.receipts + purged.detours == 0)
		w->purge_at = now + PURGE_WALK;
	else
		w->purge_at = now + (purged.more ? PURGE_GAP : w->plan->purge_interval);
	if (!purged.more)
		*request = (struct outbox_purge){ 0 };
	if (purged.messages)
		log_event(&w->plan->log, EVENT_CLEANUP_DONE, NULL, "purged %lld messages",
			  (long long)purged.messages);
	return OUTBOX_OK;
}

/*
 * Delivery goes on without a clean-up (a log with room in it can be written when a checkpoint has none):
 * it holds nothing back, is told once, and is due again at its next time. Only a lost connection is
 * everybody's outage.
 */
static void report_failure(struct worker *w, const char *call, const struct outbox_error *err,
			   bool ours, outbox_time now)
{
	if (err->status == OUTBOX_EBUSY)
		return;
	if (!ours && !outage_keeps_connection(err->status)) {
		outage_store(w, call, err, now);
		return;
	}
	if (w->untidy || w->store_outage.status)
		return;
	w->untidy = call;
	log_event(&w->plan->log, EVENT_CLEANUP_FAILED, ABOUT_TARGET(w),
		  "clean-up: %s; delivery goes on, the clean-up is tried again", err->message);
}

static void report_success(struct worker *w, const char *call)
{
	if (!w->untidy || strcmp(w->untidy, call) != 0)
		return;
	w->untidy = NULL;
	log_event(&w->plan->log, EVENT_CLEANUP_BACK, ABOUT_TARGET(w), "clean-up works again");
}

void janitor_step(struct worker *w, outbox_time now)
{
	bool purging = w->plan->purge_interval != OUTBOX_NEVER && now >= w->purge_at;
	const char *call = purging ? "purge" : "tend";
	struct outbox_error err = OUTBOX_ERROR_INIT;
	bool ours = false; /* the archive failed, not the store */
	int r;

	if (purging) {
		w->purge_at = now + OUTBOX_SECONDS;
		r = purge(w, now, &ours, &err);
	} else {
		w->tend_at = now + TEND_INTERVAL;
		r = w->store->ops->maintain(w->store, &err);
	}
	if (r)
		report_failure(w, call, &err, ours, now);
	else
		report_success(w, call);
}
