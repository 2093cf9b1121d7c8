/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/outage.h"

#include "base/error.h"
#include "base/text.h"
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#define STORE_DELAY_MIN (5 * OUTBOX_MILLISECONDS)
#define STORE_DELAY_MAX (5 * OUTBOX_SECONDS)
#define BUSY_DELAY_MAX (200 * OUTBOX_MILLISECONDS)
#define WORTH_A_LINE (1 * OUTBOX_SECONDS)

bool outage_keeps_connection(int status)
{
	return status == OUTBOX_EBUSY || status == OUTBOX_EFULL || status == OUTBOX_ENOMEM ||
	       status == OUTBOX_ECONFLICT;
}

void outage_store(struct worker *w, const char *call, const struct outbox_error *err, outbox_time now)
{
	outbox_time max = err->status == OUTBOX_EBUSY ? BUSY_DELAY_MAX : STORE_DELAY_MAX;
	char wait[DURATION_TEXT_MAX];
	bool first = !w->store_delay;

	w->store_outage_call = outage_keeps_connection(err->status) ? call : NULL;
	w->store_delay = first ? STORE_DELAY_MIN : w->store_delay * 2;
	if (w->store_delay > max)
		w->store_delay = max;
	w->store_at = now + random_between(&w->random.base, w->store_delay / 2, w->store_delay);
	if (first)
		w->store_outage_since = now;
	/* Being busy for a moment is nobody's business; a lasting outage gets one line. */
	if (!w->store_outage.status &&
	    (err->status != OUTBOX_EBUSY || now - w->store_outage_since >= WORTH_A_LINE)) {
		w->store_outage = *err;
		log_event(&w->plan->log, EVENT_STORE_AWAY, ABOUT_TARGET(w),
			  "%s; nothing is charged, next try in %s, then at most every 5 s",
			  err->message, duration_human(w->store_at - now, wait));
	}
	if (!outage_keeps_connection(err->status))
		w->store = store_close(w->store);
}

void outage_store_over(struct worker *w, const char *call, outbox_time now)
{
	char waited[DURATION_TEXT_MAX];

	if (w->store_outage_call && strcmp(w->store_outage_call, call) != 0)
		return;
	if (w->store_outage.status)
		log_event(&w->plan->log, EVENT_STORE_BACK, ABOUT_TARGET(w),
			  "store answers again after %s",
			  duration_human(now - w->store_outage_since, waited));
	w->store_outage.status = OUTBOX_OK;
	w->store_delay = 0;
	w->store_at = 0;
	w->store_outage_call = NULL;
}

static size_t refused_lanes(const struct worker *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_lanes; i++)
		n += w->lanes[i]->refusal.status != OUTBOX_OK;
	return n;
}

void outage_lane(struct worker *w, struct lane *lane, const char *call,
		 const struct outbox_error *err, outbox_time now)
{
	char where[OUTBOX_TARGET_NAME_MAX + 32];

	if (err->status != OUTBOX_EPROTO) {
		outage_store(w, call, err, now);
		return;
	}
	outage_store_over(w, call, now); /* it answers */
	lane->refusal_delay = lane->refusal_delay ? lane->refusal_delay * 2 : STORE_DELAY_MIN;
	if (lane->refusal_delay > STORE_DELAY_MAX)
		lane->refusal_delay = STORE_DELAY_MAX;
	lane->run_at =
		now + random_between(&w->random.base, lane->refusal_delay / 2, lane->refusal_delay);
	/* One repair is for all lanes, so one line is: outbox status names each. */
	if (!refused_lanes(w)) {
		w->refused_since = now;
		/* what a store says of a lane names it */
		snprintf(where, sizeof(where), "target %s, lane %d", w->target->name, lane->number);
		log_event(&w->plan->log, EVENT_LANE_REFUSED, ABOUT_LANE(w, lane),
			  "%s; until then nothing of this lane is sent; outbox status tells "
			  "of others",
			  error_behind(err, where));
	}
	lane->refusal = *err;
}

void outage_lane_over(struct worker *w, struct lane *lane, const char *call, outbox_time now)
{
	char waited[DURATION_TEXT_MAX];

	outage_store_over(w, call, now);
	if (!lane->refusal.status)
		return;
	lane->refusal.status = OUTBOX_OK;
	lane->refusal_delay = 0;
	if (!refused_lanes(w))
		log_event(&w->plan->log, EVENT_LANE_BACK, ABOUT_TARGET(w),
			  "all its lanes run again after %s",
			  duration_human(now - w->refused_since, waited));
}

void outage_broker(struct worker *w, const struct outbox_error *err, outbox_time asked,
		   outbox_time now)
{
	char wait[DURATION_TEXT_MAX];

	w->transport->ops->disconnect(w->transport);
	w->connected = false;
	w->outage = *err;
	if (!breaker_trip(&w->breaker, now, asked, &w->random.base))
		return;
	w->lease_at = now; /* tells the store, so that people see it */
	tally_add(&w->tally->outages, 1);
	if (w->once)
		return; /* there is no next try; what it could not reach is told at its end */
	log_event(&w->plan->log, EVENT_TARGET_OUTAGE, ABOUT_TARGET(w),
		  "%s; breaker open, no attempt is charged, next try in %s, then at most every %s",
		  err->message, duration_human(w->breaker.until - now, wait),
		  duration_human(w->breaker.max, (char[DURATION_TEXT_MAX]){ 0 }));
}

void outage_broker_over(struct worker *w, outbox_time now)
{
	outbox_time since = w->breaker.since;
	char waited[DURATION_TEXT_MAX];

	if (!breaker_reset(&w->breaker))
		return;
	w->outage.status = OUTBOX_OK;
	w->lease_at = now;
	log_event(&w->plan->log, EVENT_TARGET_BACK, ABOUT_TARGET(w), "breaker closed after %s",
		  duration_human(now - since, waited));
}
