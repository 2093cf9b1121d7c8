/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/unserved.h"

#include "base/text.h"
#include "relay/outage.h"
#include "store/store.h"

static int write_unserved(struct worker *w, const char *why, struct outbox_error *err)
{
	if (!w->store || !STORE_HAS(w->store, unserved))
		return OUTBOX_OK;
	return w->store->ops->unserved(w->store,
				       &(struct outbox_unserved){ .target = w->target->name,
								  .owner = w->owner,
								  .duration = w->target->lease,
								  .why = why },
				       err);
}

void unserved_report(struct worker *w, enum unserved how, const struct outbox_error *why,
		     outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (!w->unserved.status) {
		w->unserved_since = now;
		log_event(&w->plan->log, EVENT_TARGET_UNSERVED, ABOUT_TARGET(w), "%s", why->message);
	}
	w->unserved = *why;
	atomic_store(&w->shown_unserved, (int)how);
	if (write_unserved(w, why->message, &err))
		outage_store(w, "unserved", &err, now);
	else
		outage_store_over(w, "unserved", now);
}

void unserved_over(struct worker *w, outbox_time now)
{
	char waited[DURATION_TEXT_MAX];

	if (!w->unserved.status)
		return;
	w->unserved.status = OUTBOX_OK;
	atomic_store(&w->shown_unserved, UNSERVED_NOT);
	log_event(&w->plan->log, EVENT_TARGET_SERVED, ABOUT_TARGET(w), "served again after %s",
		  duration_human(now - w->unserved_since, waited));
	(void)write_unserved(w, NULL, NULL); /* else it is forgotten when its time is over */
}

void unserved_leave(struct worker *w)
{
	if (w->unserved.status)
		(void)write_unserved(w, NULL, NULL);
}
