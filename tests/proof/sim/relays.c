/* SPDX-License-Identifier: Apache-2.0 */
/* Relay processes: started, stepped, killed, stopped, drained. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void choose_targets(struct sim *s, struct outbox_target_config *targets)
{
	static const char *const names[] = { "t0", "t1" }, *const some[] = { "a" };

	for (int t = 0; t < s->n_targets; t++) {
		targets[t] = (struct outbox_target_config)OUTBOX_TARGET_CONFIG_INIT;
		targets[t].name = names[t];
		targets[t].to = "sim:";
		targets[t].hold = s->hold;
		targets[t].start = s->starts_now[t] ? OUTBOX_START_NOW : OUTBOX_START_OLDEST;
		targets[t].route.nothing = s->gets[t] == GETS_NOTHING;
		targets[t].route.types = some;
		targets[t].route.n_types = s->gets[t] == GETS_SOME;
		targets[t].policy = &s->policy;
	}
}

void relays_start(struct sim *s, int place)
{
	struct sim_relay *r = &s->relays[place];
	struct outbox_target_config targets[SIM_TARGETS];
	struct outbox_relay_config c = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;
	char instance[32];
	int failed;

	if (r->starting)
		return;
	choose_targets(s, targets);
	snprintf(instance, sizeof(instance), "relay-%d.%d", place, r->life + 1);
	c.store = "sim:";
	c.targets = targets;
	c.n_targets = (size_t)s->n_targets;
	c.instance = instance;
	c.batch_messages = s->batch;
	c.lease = SIM_LEASE;
	c.poll_min = 50 * OUTBOX_MILLISECONDS;
	c.poll_max = 2 * OUTBOX_SECONDS;
	c.breaker_max = 4 * OUTBOX_SECONDS;
	c.retain_delivered = 30 * OUTBOX_SECONDS;
	c.purge_interval = s->enabled[FAULT_OPERATOR_PURGE] ? 10 * OUTBOX_SECONDS : OUTBOX_NEVER;
	c.registry = s->registry;
	c.clock = &s->clock.base;
	c.seed = sim_pick(s, UINT64_MAX - 1) + 1;
	s->current = r;
	r->doomed = false;
	r->starting = true;
	failed = outbox_relay_new(&relay, &c, &err);
	r->starting = false;
	if (failed || r->doomed) {
		sim_say(s, "%s does not start: %s", instance, err.message);
		if (!failed)
			outbox_relay_free(relay);
		r->doomed = false;
		return;
	}
	r->relay = relay;
	r->life++;
	r->stopped = r->draining = r->busy = false;
	for (int t = 0; t < s->n_targets; t++) {
		r->workers[t] = r->relay->threads[t].worker;
		r->next[t] = sim_mono(s);
	}
	sim_say(s, "%s starts", instance);
}

void relays_end(struct sim *s, int place, const char *how)
{
	struct sim_relay *r = &s->relays[place];

	if (!r->relay)
		return;
	sim_say(s, "relay-%d.%d %s", place, r->life, how);
	/* Its threads never ran: freeing it settles and releases nothing. */
	r->relay = outbox_relay_free(r->relay);
}

struct sim_relay *relays_find(struct sim *s, const char *owner)
{
	int place = owner[6] - '0';
	struct sim_relay *r = &s->relays[place];

	return r->relay && atoi(owner + 8) == r->life ? r : NULL;
}

static bool has_left(struct sim *s, const struct sim_relay *r)
{
	for (int t = 0; t < s->n_targets; t++)
		if (!worker_is_gone(r->workers[t]))
			return false;
	return true;
}

static bool refuses(const struct sim *s, int t)
{
	for (int lane = 0; lane < s->lanes; lane++)
		if (s->refused[t][lane])
			return true;
	return false;
}

/*
 * A drained relay has left nothing unsettled before its time was over, and holds nothing: but for lanes
 * without a claim when the store cannot be reached, whose leases end by themselves.
 */
static void check_left(struct sim *s, int place)
{
	struct sim_relay *r = &s->relays[place];
	bool early = sim_mono(s) < r->drain_until;

	for (int t = 0; t < s->n_targets; t++) {
		const struct worker *w = r->workers[t];

		if (refuses(s, t))
			continue; /* what was in flight there cannot be settled */
		if (early && w->lanes.count && w->link.store)
			sim_violation(s, "drain",
				      "relay-%d left its lanes before its time was over", place);
		for (size_t i = 0; i < s->n_messages && (early || !w->lanes.count); i++)
			if (s->deliveries[t][i].acked_unsettled && s->deliveries[t][i].by == place &&
			    s->deliveries[t][i].by_life == r->life)
				sim_violation(s, "drain",
					      "relay-%d left with %d acknowledged and unsettled",
					      place, (int)s->messages[i].seq);
		for (size_t i = 0; early && i < w->lanes.count; i++)
			if (lane_batch(w->lanes.list[i])->claim.count)
				sim_violation(s, "drain",
					      "relay-%d left a claim before its time was over",
					      place);
	}
}

static bool is_due(const struct sim *s, const struct sim_relay *r, int t, outbox_time now)
{
	(void)s;
	return r->relay && !r->stopped && !r->busy && r->next[t] <= now &&
	       !worker_is_gone(r->workers[t]);
}

static void step(struct sim *s, int place, int t)
{
	struct sim_relay *r = &s->relays[place], *outer = s->current;

	r->busy = true;
	s->current = r;
	r->next[t] = worker_step(r->workers[t]);
	s->current = outer;
	r->busy = false;
	if (r->doomed) {
		relays_end(s, place, "dies");
	} else if (has_left(s, r)) {
		check_left(s, place);
		relays_end(s, place, "has left");
	}
}

bool relays_step(struct sim *s)
{
	outbox_time now = sim_mono(s);
	int all = s->n_relays * s->n_targets, first = (int)sim_pick(s, (uint64_t)all);

	for (int i = 0; i < all; i++) {
		int place = (first + i) % all / s->n_targets, t = (first + i) % all % s->n_targets;

		if (!is_due(s, &s->relays[place], t, now))
			continue;
		step(s, place, t);
		return true;
	}
	return false;
}

outbox_time relays_next(struct sim *s)
{
	outbox_time next = OUTBOX_NEVER;

	for (int i = 0; i < s->n_relays; i++)
		for (int t = 0; t < s->n_targets; t++) {
			const struct sim_relay *r = &s->relays[i];

			if (r->relay && !r->stopped && !r->busy && r->next[t] < next &&
			    !worker_is_gone(r->workers[t]))
				next = r->next[t];
		}
	return next;
}

static void drain(struct sim *s, struct sim_relay *r)
{
	size_t batches, messages;

	outbox_relay_in_flight(r->relay, &batches, &messages);
	if (batches)
		sim_premise(s, PREMISE_DRAINED);
	r->drain_until = sim_mono(s) + 30 * OUTBOX_SECONDS;
	for (int t = 0; t < s->n_targets; t++) {
		worker_drain(r->workers[t], r->drain_until);
		r->next[t] = sim_mono(s);
	}
	r->draining = true;
	sim_say(s, "relay-%d.%d is asked to leave", r->number, r->life);
}

void relays_trouble(struct sim *s)
{
	int place = (int)sim_pick(s, (uint64_t)s->n_relays);
	struct sim_relay *r = &s->relays[place];

	if (!r->relay) {
		relays_start(s, place);
	} else if (r->stopped) {
		r->stopped = false;
		sim_say(s, "relay-%d.%d goes on", place, r->life);
	} else if (sim_fault(s, FAULT_RELAY_CRASH)) {
		if (r->busy)
			r->doomed = true;
		else
			relays_end(s, place, "dies");
	} else if (sim_fault(s, FAULT_RELAY_PAUSE)) {
		r->stopped = true;
		sim_say(s, "relay-%d.%d is stopped", place, r->life);
	} else if (!r->draining && sim_fault(s, FAULT_RELAY_DRAIN)) {
		drain(s, r);
	}
}
