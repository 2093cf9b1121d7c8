/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/metrics.h"

#include "relay/relay.h"

#include <string.h>

bool relay_running(const struct outbox_relay *relay)
{
	return atomic_load(&relay->started) && !atomic_load(&relay->stopping);
}

void relay_set_replay(struct outbox_relay *relay)
{
	relay->plan.replay = true;
}

size_t relay_target_count(const struct outbox_relay *relay)
{
	return relay->plan.n_targets;
}

/* Open is worse than probing: then nothing at all is tried. */
static int badness(enum breaker_state breaker)
{
	return breaker == BREAKER_OPEN ? 2 : breaker == BREAKER_PROBING;
}

void relay_target_metrics(const struct outbox_relay *relay, size_t target,
			  struct target_metrics *ret_metrics)
{
	tally_view(&relay->tallies[target], ret_metrics);
	ret_metrics->target = relay->plan.targets[target].name;
	ret_metrics->throttled = throttle_holds(relay->plan.targets[target].throttle,
						relay->plan.clock->mono(relay->plan.clock));
	for (size_t i = 0; i < relay->n_threads; i++) {
		const struct worker *w = relay->threads[i].worker;
		enum breaker_state breaker;

		if (w->tally != &relay->tallies[target])
			continue;
		breaker = (enum breaker_state)atomic_load_explicit(&w->shown_breaker,
								   memory_order_relaxed);
		if (badness(breaker) > badness(ret_metrics->breaker))
			ret_metrics->breaker = breaker;
		ret_metrics->lanes += atomic_load_explicit(&w->shown_lanes, memory_order_relaxed);
		ret_metrics->transport = w->transport->ops->name;
	}
}

void relay_observe(struct outbox_relay *relay, batch_observer observer, void *context)
{
	for (size_t i = 0; i < relay->plan.n_targets; i++) {
		relay->tallies[i].observer = observer;
		relay->tallies[i].observer_context = context;
	}
}

void outbox_relay_counts(const struct outbox_relay *relay, struct outbox_relay_counts *ret_counts)
{
	struct outbox_relay_counts sum = { 0 };
	size_t size;

	if (!ret_counts)
		return;
	size = ret_counts->struct_size;
	for (size_t i = 0; relay && i < relay->plan.n_targets; i++) {
		struct target_metrics m;

		tally_view(&relay->tallies[i], &m);
		sum.delivered += m.delivered;
		sum.failed += m.failed;
		sum.retried += m.retried;
		sum.parked += m.parked;
		sum.deferred += m.deferred;
		sum.returned += m.returned;
		sum.batches += m.batches;
		sum.outages += m.outages;
		sum.takeovers += m.takeovers;
		sum.fenced += m.fenced;
		sum.unknown += m.duplicates_unknown;
		sum.possible_duplicates += m.duplicates_takeover + m.duplicates_fenced;
		sum.duplicates += m.duplicates_recognised;
	}
	if (!size || size > sizeof(sum))
		size = sizeof(sum);
	sum.struct_size = size;
	memcpy(ret_counts, &sum, size);
}

void relay_counts_add(struct outbox_relay_counts *sum, const struct outbox_relay_counts *more)
{
	sum->delivered += more->delivered;
	sum->failed += more->failed;
	sum->retried += more->retried;
	sum->parked += more->parked;
	sum->deferred += more->deferred;
	sum->returned += more->returned;
	sum->batches += more->batches;
	sum->outages += more->outages;
	sum->takeovers += more->takeovers;
	sum->fenced += more->fenced;
	sum->unknown += more->unknown;
	sum->possible_duplicates += more->possible_duplicates;
	sum->duplicates += more->duplicates;
}

void outbox_relay_in_flight(const struct outbox_relay *relay, size_t *ret_batches,
			    size_t *ret_messages)
{
	uint64_t batches = 0, messages = 0;

	for (size_t i = 0; relay && i < relay->plan.n_targets; i++) {
		const struct tally *t = &relay->tallies[i];

		batches += atomic_load_explicit(&t->in_flight_batches, memory_order_relaxed);
		messages += atomic_load_explicit(&t->in_flight_messages, memory_order_relaxed);
	}
	if (ret_batches)
		*ret_batches = (size_t)batches;
	if (ret_messages)
		*ret_messages = (size_t)messages;
}
