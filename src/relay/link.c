/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/link.h"

#include "base/failpoint.h"
#include "base/text.h"
#include "relay/registry.h"
#include "store/store.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#define CALL_MEMORY ((size_t)64 << 20)
#define STORE_DELAY_MIN (5 * OUTBOX_MILLISECONDS)
#define STORE_DELAY_MAX (5 * OUTBOX_SECONDS)
#define BUSY_DELAY_MAX (200 * OUTBOX_MILLISECONDS)
#define WORTH_A_LINE (1 * OUTBOX_SECONDS)

int link_init(struct link *link, const struct relay_plan *plan, size_t target, int index,
	      struct tally *tally, struct outbox_error *err)
{
	int r;

	link->plan = plan;
	link->target = &plan->targets[target];
	link->tally = tally;
	rejection_log_init(&link->rejections, plan, link->target);
	snprintf(link->owner, sizeof(link->owner), "%s/%d", plan->instance, index);
	/* Fence tokens must differ between all who ever draw some: the owner's name makes the difference. */
	random_init(&link->random,
		    plan->seed ^ text_hash(link->owner) ^ text_hash(link->target->name));
	breaker_init(&link->breaker, plan->breaker_min, plan->breaker_max);
	link->call_memory = outbox_arena_new(CALL_MEMORY);
	if (!link->call_memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = registry_open_transport(plan->registry,
				    &(struct outbox_transport_config){
					    .struct_size = sizeof(struct outbox_transport_config),
					    .url = link->target->to,
					    .target = link->target->name,
					    .envelope = link->target->envelope,
					    .clock = plan->clock,
					    .random = &link->random.base,
					    .unordered = link->target->order != OUTBOX_ORDER_STRICT,
				    },
				    &link->transport, err);
	if (r != OUTBOX_OK && err)
		outbox_wrap(err, "target \"%s\"", link->target->name);
	return r;
}

void link_deinit(struct link *link)
{
	transport_close(link->transport);
	outbox_arena_free(link->call_memory);
	store_close(link->store);
}

void link_reset(struct link *link)
{
	link->store = store_close(link->store);
	breaker_init(&link->breaker, link->plan->breaker_min, link->plan->breaker_max);
	link->outage.status = link->store_outage.status = OUTBOX_OK;
	link->store_outage_call = NULL;
	link->lease_at = link->lease_until = link->store_at = link->store_delay = 0;
	link->stale_route = link->away = false;
	atomic_store(&link->draining, false);
}

void link_open_store(struct link *link, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (registry_open_store(link->plan->registry, link->plan->store, false, link->plan->clock,
				&link->random.base, &link->store, &err))
		link_store_failed(link, "open", &err, now);
	link->away = !link->store;
	failpoint("after_open");
}

bool link_keeps_store(int status)
{
	return status == OUTBOX_EBUSY || status == OUTBOX_EFULL || status == OUTBOX_ENOMEM ||
	       status == OUTBOX_ECONFLICT;
}

void link_store_failed(struct link *link, const char *call, const struct outbox_error *err,
		       outbox_time now)
{
	outbox_time max = err->status == OUTBOX_EBUSY ? BUSY_DELAY_MAX : STORE_DELAY_MAX;
	char wait[DURATION_TEXT_MAX];
	bool first = !link->store_delay;

	link->store_outage_call = link_keeps_store(err->status) ? call : NULL;
	link->store_delay = first ? STORE_DELAY_MIN : link->store_delay * 2;
	if (link->store_delay > max)
		link->store_delay = max;
	link->store_at =
		now + random_between(&link->random.base, link->store_delay / 2, link->store_delay);
	if (first)
		link->store_outage_since = now;
	/* Being busy for a moment is nobody's business; a lasting outage gets one line. */
	if (!link->store_outage.status &&
	    (err->status != OUTBOX_EBUSY || now - link->store_outage_since >= WORTH_A_LINE)) {
		link->store_outage = *err;
		log_event(&link->plan->log, EVENT_STORE_AWAY, ABOUT_TARGET(link),
			  "%s; nothing is charged, next try in %s, then with pauses of at most 5 s",
			  err->message, duration_human(link->store_at - now, wait));
	}
	if (!link_keeps_store(err->status))
		link->store = store_close(link->store);
}

void link_store_answered(struct link *link, const char *call, outbox_time now)
{
	char waited[DURATION_TEXT_MAX];

	if (link->store_outage_call && strcmp(link->store_outage_call, call) != 0)
		return;
	if (link->store_outage.status)
		log_event(&link->plan->log, EVENT_STORE_BACK, ABOUT_TARGET(link),
			  "store answers again after %s",
			  duration_human(now - link->store_outage_since, waited));
	link->store_outage.status = OUTBOX_OK;
	link->store_delay = 0;
	link->store_at = 0;
	link->store_outage_call = NULL;
}

void link_connect_broker(struct link *link, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (link->transport->ops->connect(link->transport, now + link->target->publish_timeout, &err))
		link_broker_failed(link, &err, 0, now);
	else
		link->connected = true;
	failpoint("after_connect");
}

/* It said that it is gone for good: nothing more goes there until a person says so. */
static bool pause_gone_target(struct link *link, const struct outbox_error *gone)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (!link->store || store_target_pause(link->store, link->target->name, true, RELAY_ACTOR,
					       gone->message, &err)) {
		log_event(&link->plan->log, EVENT_TARGET_CLOSED, ABOUT_TARGET(link),
			  "%s; it could not be paused (%s), so that it is asked again and again",
			  gone->message, link->store ? err.message : "the store is away");
		return false;
	}
	log_event(&link->plan->log, EVENT_TARGET_CLOSED, ABOUT_TARGET(link),
		  "%s; it is paused, no attempt is charged; outbox resume %s lets it go on",
		  gone->message, link->target->name);
	return true;
}

void link_broker_failed(struct link *link, const struct outbox_error *err, outbox_time asked,
			outbox_time now)
{
	char wait[DURATION_TEXT_MAX];

	link->transport->ops->disconnect(link->transport);
	link->connected = false;
	link->outage = *err;
	if (err->status == OUTBOX_EGONE && pause_gone_target(link, err)) {
		breaker_reset(&link->breaker);
		link->lease_at = now;
		return;
	}
	if (!breaker_trip(&link->breaker, now, asked, &link->random.base))
		return;
	link->lease_at = now; /* tells the store, so that people see it */
	tally_add(&link->tally->outages, 1);
	if (link->once)
		return; /* there is no next try; what it could not reach is told at its end */
	log_event(&link->plan->log, EVENT_TARGET_OUTAGE, ABOUT_TARGET(link),
		  "%s; breaker open, no attempt is charged, next try in %s, then with pauses of at most %s",
		  err->message, duration_human(link->breaker.until - now, wait),
		  duration_human(link->breaker.max, (char[DURATION_TEXT_MAX]){ 0 }));
}

void link_broker_answered(struct link *link, outbox_time now)
{
	outbox_time since = link->breaker.since;
	char waited[DURATION_TEXT_MAX];

	if (!breaker_reset(&link->breaker))
		return;
	link->outage.status = OUTBOX_OK;
	link->lease_at = now;
	log_event(&link->plan->log, EVENT_TARGET_BACK, ABOUT_TARGET(link),
		  "breaker closed after %s", duration_human(now - since, waited));
}

enum wire_order link_wire_order(const struct link *link)
{
	return decide_order(link->target->order == OUTBOX_ORDER_STRICT, link->target->hold,
			    link->transport->ops->flags & OUTBOX_TRANSPORT_KEEPS_ORDER);
}

size_t link_take_permits(struct link *link, size_t want, outbox_time now, outbox_time *ret_at,
			 bool *ret_throttled)
{
	size_t may = 0;

	if (want)
		may = throttle_take(link->target->throttle, link->target->rank, want, now, ret_at);
	*ret_throttled = want && !may;
	return may;
}

void link_use_permits(struct link *link, const struct outbox_claim *claim, size_t taken,
		      outbox_time now)
{
	size_t used = 0;

	if (!taken && !claim->count)
		return;
	for (size_t i = 0; i < claim->count; i++)
		used += !claim->items[i].blocked;
	throttle_used(link->target->throttle, link->target->rank, taken, used, now);
}
