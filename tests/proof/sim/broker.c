/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers with the habits of real ones: refusals, returns, lost acknowledgements, cut connections,
 * blocking, deduplication, restarts that drop what was not confirmed.
 */
#include "channel.h"

#include <stdlib.h>
#include <string.h>

static int transport_open(const struct outbox_transport_config *config,
			  struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct sim_transport *t = calloc(1, sizeof(*t));

	(void)err;
	t->base.ops = &sim_transport_ops;
	t->sim = config->context;
	t->target = sim_target(config->target);
	t->confirms = (struct confirms)CONFIRMS_INIT;
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
	t->epoch = t->sim->brokers[t->target].epoch;
	memset(&t->channel, 0, sizeof(t->channel));
	confirms_reset(&t->confirms);
	return OUTBOX_OK;
}

bool brokers_keep(struct sim *s, int target, const struct outbox_item *item)
{
	struct sim_delivery *d = sim_delivery(s, target, item->seq);

	if (!sim_owns(s, target, item->seq))
		d->explained++; /* somebody else has the lane: this one's settlement will be refused */
	if (s->brokers[target].dedupes && d->accepted > 0 && s->enabled[FAULT_BROKER_DEDUPE]) {
		s->totals->faults[FAULT_BROKER_DEDUPE]++;
		return false;
	}
	check_accepted(s, target, item);
	d->accepted++;
	d->unconfirmed++;
	return true;
}

void brokers_confirm(struct sim *s, int target, int64_t seq)
{
	struct sim_delivery *d = sim_delivery(s, target, seq);

	d->unconfirmed = 0;
	if (!sim_owns(s, target, seq))
		return;
	d->acked_unsettled = true;
	d->by = s->current->number;
	d->by_life = s->current->life;
}

void brokers_said(struct sim *s, int target, int64_t seq, int verdict)
{
	if (sim_owns(s, target, seq))
		sim_delivery(s, target, seq)->verdict = verdict;
}

static void keep(struct sim *s, int target, const struct outbox_item *item, bool confirm)
{
	brokers_keep(s, target, item);
	if (confirm)
		brokers_confirm(s, target, item->seq);
	else
		sim_delivery(s, target, item->seq)->explained++;
}

static void verdict(struct sim *s, int target, struct outbox_batch *batch, size_t i, int verdict)
{
	brokers_said(s, target, batch->items[i]->seq, verdict);
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

/* A broker that answers each message before the next one is sent. */
static int answer_each(struct sim_transport *t, struct outbox_batch *batch, struct outbox_error *err)
{
	size_t i = 0;

	if (sim_fault(t->sim, FAULT_BROKER_CUT))
		return cut(t->sim, t->target, batch, err);
	while (i < batch->count && take_one(t->sim, t->target, batch, i))
		i++;
	return i == batch->count ? OUTBOX_OK : outbox_fail(err, OUTBOX_ECONN, "connection lost");
}

static int transport_publish(struct outbox_transport *base, struct outbox_batch *batch,
			     outbox_time deadline, struct outbox_error *err)
{
	struct sim_transport *t = (struct sim_transport *)base;
	struct sim *s = t->sim;
	struct sim_relay *relay = s->current;
	int r;

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
	r = s->brokers[t->target].confirms ? confirm_publish(t, batch, deadline, err)
					   : answer_each(t, batch, err);
	if (sim_fault(s, FAULT_RELAY_CRASH_CALL))
		relay->doomed = true;
	return r;
}

static void transport_disconnect(struct outbox_transport *base)
{
	(void)base;
}

static void transport_close(struct outbox_transport *base)
{
	struct sim_transport *t = (struct sim_transport *)base;

	if (t)
		confirms_deinit(&t->confirms);
	free(t);
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
	b->epoch++;
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
