/* SPDX-License-Identifier: Apache-2.0 */
#include "channel.h"

#include <string.h>

static void decide_fate(struct sim_transport *t, struct channel_message *m)
{
	struct sim *s = t->sim;
	bool unroutable = wire_happens(s, FAULT_CONFIRM_RETURN, s->percent);

	if (wire_happens(s, FAULT_CONFIRM_NACKS, s->percent))
		t->channel.refusing = 2 + (int)wire_pick(s, 4);
	m->fate = ACKS;
	if (t->channel.refusing > 0)
		t->channel.refusing--, m->fate = NACKS;
	else if (sim_fault(s, FAULT_BROKER_NACK))
		m->fate = NACKS;
	else if (sim_fault(s, FAULT_BROKER_RETURN) || unroutable)
		m->fate = RETURNS;
	else if (sim_fault(s, FAULT_BROKER_ACK_LOST))
		m->fate = NEVER;
}

static void forget(struct channel *c, size_t from, size_t n)
{
	c->n_waiting -= n;
	memmove(&c->waiting[from], &c->waiting[from + n],
		(c->n_waiting - from) * sizeof(c->waiting[0]));
}

void channel_receive(struct sim_transport *t, const struct outbox_item *item)
{
	struct channel *c = &t->channel;
	struct channel_message *m;

	if (c->n_waiting == CHANNEL_MAX)
		forget(c, 0, 1); /* one that nobody waits for */
	m = &c->waiting[c->n_waiting++];
	*m = (struct channel_message){ .seq = item->seq, .tag = ++c->received };
	decide_fate(t, m);
	if ((m->fate != ACKS && m->fate != NEVER) || t->sim->canary)
		return;
	m->stored = brokers_keep(t->sim, t->target, item);
	/* Until its sender hears of it, and still has the lane then, it may come again. */
	sim_delivery(t->sim, t->target, m->seq)->explained++;
}

/* The broker has said its last word on a message; was anybody listening? */
static void told(struct sim_transport *t, const struct channel_message *m)
{
	struct sim *s = t->sim;
	struct sim_delivery *d = sim_delivery(s, t->target, m->seq);

	if (m->late) {
		s->totals->faults[FAULT_CONFIRM_LATE]++;
		if (m->stored && d->unconfirmed > 0)
			d->unconfirmed--; /* a restart will not drop it */
	} else if (m->returned) {
		s->totals->faults[FAULT_CONFIRM_RETURN]++;
	} else if (m->fate == ACKS) {
		if (!s->canary) {
			d->explained -= sim_owns(s, t->target, m->seq);
			brokers_confirm(s, t->target, m->seq);
		}
		brokers_said(s, t->target, m->seq, OUTBOX_ACKED);
	} else {
		brokers_said(s, t->target, m->seq, OUTBOX_RETRY);
	}
}

static enum answer_kind kind_of(const struct channel_message *m)
{
	return m->fate == NACKS ? ANSWER_NACK : ANSWER_ACK;
}

/* Can it be acknowledged or refused now, perhaps together with others? */
static bool is_ready(const struct channel_message *m)
{
	return m->fate != NEVER && (m->fate != RETURNS || m->returned);
}

/* Everything up to one of the oldest, as far as all get the same answer. */
static bool answer_several(struct sim_transport *t, struct channel_answer *answer)
{
	struct channel *c = &t->channel;
	size_t n = 0;

	while (n < c->n_waiting && is_ready(&c->waiting[n]) &&
	       kind_of(&c->waiting[n]) == kind_of(&c->waiting[0]))
		n++;
	if (!n)
		return false;
	n = 1 + wire_pick(t->sim, n);
	*answer = (struct channel_answer){ .kind = kind_of(&c->waiting[0]),
					   .tag = c->waiting[n - 1].tag,
					   .multiple = true };
	if (n > 1)
		t->sim->totals->faults[answer->kind == ANSWER_NACK ? FAULT_CONFIRM_NACKS
								   : FAULT_CONFIRM_MULTIPLE]++;
	for (size_t i = 0; i < n; i++)
		told(t, &c->waiting[i]);
	c->last = *answer;
	if (n == c->n_waiting && wire_pick(t->sim, 8) == 0)
		answer->tag = 0; /* AMQP's way to say "all" */
	forget(c, 0, n);
	return true;
}

/* One message: the oldest that has an answer, or any. */
static bool answer_one(struct sim_transport *t, struct channel_answer *answer)
{
	struct channel *c = &t->channel;
	size_t able[CHANNEL_MAX], n = 0, which;
	struct channel_message *m;

	for (size_t i = 0; i < c->n_waiting; i++)
		if (c->waiting[i].fate != NEVER)
			able[n++] = i;
	if (!n)
		return false;
	which = wire_happens(t->sim, FAULT_CONFIRM_REORDERED, 50) ? wire_pick(t->sim, n) : 0;
	m = &c->waiting[able[which]];
	if (!is_ready(m)) {
		*answer = (struct channel_answer){ .kind = ANSWER_RETURN,
						   .tag = m->tag,
						   .seq = m->seq };
		m->returned = true;
		if (!m->late)
			brokers_said(t->sim, t->target, m->seq, OUTBOX_RETRY);
		return true;
	}
	if (which > 0)
		t->sim->totals->faults[FAULT_CONFIRM_REORDERED]++;
	*answer = (struct channel_answer){ .kind = kind_of(m), .tag = m->tag };
	told(t, m);
	c->last = *answer;
	forget(c, able[which], 1);
	return true;
}

bool channel_next(struct sim_transport *t, struct channel_answer *ret_answer)
{
	struct channel *c = &t->channel;
	struct sim *s = t->sim;
	enum sim_fault several;

	if (wire_happens(s, FAULT_CONFIRM_UNKNOWN, s->percent)) {
		s->totals->faults[FAULT_CONFIRM_UNKNOWN]++;
		*ret_answer = (struct channel_answer){ .kind = ANSWER_ACK,
						       .tag = c->received + 1 + wire_pick(s, 3),
						       .multiple = wire_pick(s, 2) };
		return true;
	}
	if (c->last.tag && wire_happens(s, FAULT_CONFIRM_REPEATED, s->percent)) {
		s->totals->faults[FAULT_CONFIRM_REPEATED]++;
		*ret_answer = c->last;
		return true;
	}
	several = c->n_waiting && kind_of(&c->waiting[0]) == ANSWER_NACK ? FAULT_CONFIRM_NACKS
									 : FAULT_CONFIRM_MULTIPLE;
	if (wire_happens(s, several, 50) && answer_several(t, ret_answer))
		return true;
	return answer_one(t, ret_answer);
}

void channel_give_up(struct sim_transport *t)
{
	for (size_t i = 0; i < t->channel.n_waiting; i++)
		t->channel.waiting[i].late = true;
}
