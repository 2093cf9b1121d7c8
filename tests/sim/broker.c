/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers with the habits of real ones: refusals, returns, lost acknowledgements, cut connections,
 * blocking, deduplication, restarts that drop what was not confirmed.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct sim_transport {
	struct outbox_transport base;
	struct sim *sim;
	int target;
};

static int transport_open(const struct outbox_transport_config *config,
			  struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct sim_transport *t = calloc(1, sizeof(*t));

	(void)err;
	t->base.ops = &sim_transport_ops;
	t->sim = config->context;
	t->target = sim_target(config->target);
	*ret_transport = &t->base;
	return OUTBOX_OK;
}

static int transport_connect(struct outbox_transport *base, outbox_time deadline,
			     struct outbox_error *err)
{
	struct sim_transport *t = (struct sim_transport *)base;

	(void)deadline;
	if (t->sim->brokers[t->target].away)
		return outbox_fail(err, OUTBOX_ECONN, "connection refused");
	return OUTBOX_OK;
}

/* The broker keeps a message, unless it knows that it has it already. */
static void keep(struct sim *s, int target, const struct outbox_item *item, bool confirm)
{
	struct sim_delivery *d = sim_delivery(s, target, item->seq);
	bool owner = sim_owns(s, target, item->seq);

	if (!owner)
		d->explained++; /* somebody else has the lane: this one's settlement will be refused */
	if (s->brokers[target].dedupes && d->accepted > 0 && s->enabled[FAULT_BROKER_DEDUPE]) {
		s->totals->faults[FAULT_BROKER_DEDUPE]++;
	} else {
		check_accepted(s, target, item);
		d->accepted++;
		d->unconfirmed++;
	}
	if (!confirm) {
		d->explained++;
		return;
	}
	d->unconfirmed = 0;
	if (!owner)
		return;
	d->acked_unsettled = true;
	d->by = s->current->number;
	d->by_life = s->current->life;
}

static void verdict(struct sim *s, int target, struct outbox_batch *batch, size_t i, int verdict)
{
	struct sim_delivery *d = sim_delivery(s, target, batch->items[i]->seq);

	if (sim_owns(s, target, batch->items[i]->seq))
		d->verdict = verdict;
	outbox_batch_verdict(batch, i, verdict, 0, verdict == OUTBOX_ACKED ? NULL : "sim");
}

/* One message. False: the connection is gone. */
static bool take_one(struct sim *s, int target, struct outbox_batch *batch, size_t i)
{
	const struct outbox_item *item = batch->items[i];
	const struct sim_message *m = sim_message(s, item->seq);

	if (m->nature == KILLS) {
		s->current->doomed = true;
		sim_say(s, "%d kills its relay", (int)item->seq);
		return false;
	}
	if (m->nature == CUTS && !s->healing) {
		sim_say(s, "%d makes the broker cut the connection", (int)item->seq);
		return false;
	}
	if (m->nature == REJECTED) {
		verdict(s, target, batch, i, OUTBOX_REJECTED);
	} else if (sim_fault(s, FAULT_BROKER_NACK) || sim_fault(s, FAULT_BROKER_RETURN)) {
		/* A return is a failure though an acknowledgement follows: drivers say RETRY. */
		verdict(s, target, batch, i, OUTBOX_RETRY);
	} else if (sim_fault(s, FAULT_BROKER_ACK_LOST)) {
		keep(s, target, item, false);
		verdict(s, target, batch, i, OUTBOX_UNKNOWN);
	} else {
		if (!s->canary)
			keep(s, target, item, true);
		verdict(s, target, batch, i, OUTBOX_ACKED);
	}
	return true;
}

/* The connection goes after some messages; what was kept of them is not confirmed. */
static int cut(struct sim *s, int target, struct outbox_batch *batch, struct outbox_error *err)
{
	size_t kept = sim_pick(s, batch->count + 1);

	for (size_t i = 0; i < kept; i++) {
		if (sim_message(s, batch->items[i]->seq)->nature != TAME)
			break;
		if (sim_chance(s, 50)) {
			keep(s, target, batch->items[i], true);
			verdict(s, target, batch, i, OUTBOX_ACKED);
		} else {
			keep(s, target, batch->items[i], false);
		}
	}
	sim_say(s, "connection cut");
	return outbox_fail(err, OUTBOX_ECONN, "connection reset");
}

static int transport_publish(struct outbox_transport *base, struct outbox_batch *batch,
			     outbox_time deadline, struct outbox_error *err)
{
	struct sim_transport *t = (struct sim_transport *)base;
	struct sim *s = t->sim;
	struct sim_relay *relay = s->current;
	size_t i = 0;

	for (size_t k = 0; k < batch->count; k++)
		check_sent(s, t->target, batch->items[k]);
	sim_say(s, "relay-%d.%d sends %zu messages to t%d, first %d", relay->number, relay->life,
		batch->count, t->target, (int)batch->items[0]->seq);
	for (size_t k = 0; k < batch->count; k++)
		sim_delivery(s, t->target, batch->items[k]->seq)->alone = batch->count == 1;
	if (sim_fault(s, FAULT_BROKER_SLOW))
		sim_interlude(s, relay);
	if (s->brokers[t->target].away)
		return outbox_fail(err, OUTBOX_ECONN, "broker is away");
	if (sim_fault(s, FAULT_BROKER_BLOCK)) {
		if (sim_mono(s) < deadline)
			frozen_clock_step(&s->clock, deadline - sim_mono(s));
		return outbox_fail(err, OUTBOX_ETIMEDOUT, "blocked");
	}
	if (sim_fault(s, FAULT_BROKER_CUT))
		return cut(s, t->target, batch, err);
	while (i < batch->count && take_one(s, t->target, batch, i))
		i++;
	if (sim_fault(s, FAULT_RELAY_CRASH_CALL))
		relay->doomed = true;
	return i == batch->count ? OUTBOX_OK : outbox_fail(err, OUTBOX_ECONN, "connection lost");
}

static void transport_disconnect(struct outbox_transport *base)
{
	(void)base;
}

static void transport_close(struct outbox_transport *base)
{
	free(base);
}

static const char *const schemes[] = { "sim", NULL };

const struct outbox_transport_ops sim_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "sim",
	.schemes = schemes,
	.help = "sim:",
	.open = transport_open,
	.connect = transport_connect,
	.publish = transport_publish,
	.disconnect = transport_disconnect,
	.close = transport_close,
};

void brokers_trouble(struct sim *s)
{
	int t = (int)sim_pick(s, (uint64_t)s->n_targets);
	struct sim_broker *b = &s->brokers[t];

	if (b->away) {
		b->away = false;
		sim_say(s, "broker t%d is back", t);
		return;
	}
	if (!sim_fault(s, FAULT_BROKER_OUTAGE))
		return;
	b->away = true;
	sim_say(s, "broker t%d goes away", t);
	if (!sim_fault(s, FAULT_BROKER_RESTART))
		return;
	/* It had them in memory only; nobody was told that it has them. */
	for (size_t i = 0; i < s->n_messages; i++) {
		s->deliveries[t][i].accepted -= s->deliveries[t][i].unconfirmed;
		s->deliveries[t][i].unconfirmed = 0;
	}
}

void brokers_heal(struct sim *s)
{
	for (int t = 0; t < s->n_targets; t++)
		s->brokers[t].away = false;
}
