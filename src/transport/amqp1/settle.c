/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From outcomes to verdicts, and from all verdicts of a batch to what they say of the target.
 *
 * A queue that is full, missing or forbidden refuses everything, and that is an outage: nobody is to be charged for it. With
 * one address for all messages every such refusal is one. With a template it is the address' own problem, and its messages
 * are charged, as soon as another message was accepted behind it; a missing or forbidden address always is.
 *
 * A link that is closed in the middle says nothing of what is in flight on it: these are UNKNOWN. Only a message that was
 * alone there can be the reason.
 */

#include "transport/amqp1/driver.h"

#include <stdint.h>
#include <stdio.h>

#include <proton/condition.h>
#include <proton/delivery.h>
#include <proton/disposition.h>

/* ---- one message ------------------------------------------------------------------------------------ */

static void close_slot(struct amqp1_transport *t, struct slot *slot, enum slot_state state)
{
	struct window *w = &t->window;

	if (slot->state == SLOT_SENT) {
		slot->link->in_flight--;
		w->in_flight--;
	} else {
		if (slot->state == SLOT_WAITING)
			slot->link->waiting--;
		w->open--;
	}
	w->acked += state == SLOT_ACKED;
	slot->state = state;
}

static void settle_rejected(struct amqp1_transport *t, size_t i, pn_delivery_t *delivery)
{
	pn_condition_t *condition = pn_disposition_condition(pn_delivery_remote(delivery));
	struct slot *slot = &t->window.slots[i];
	char why[AMQP1_WHY_MAX];
	const struct amqp1_condition *row = amqp1_condition_read(condition, why, sizeof(why));

	outbox_batch_verdict(t->window.batch, i, row->verdict, (int)PN_REJECTED,
			     "\"%s\" rejected it: %s", slot->link->address, why);
	outbox_batch_retry_after(t->window.batch, i, row->back_off);
	slot->outage = row->only;
	slot->back_off = row->back_off;
}

void amqp1_settle_delivery(struct amqp1_transport *t, pn_delivery_t *delivery)
{
	size_t i = (size_t)(uintptr_t)pn_delivery_get_context(delivery);
	uint64_t outcome = pn_delivery_remote_state(delivery);
	struct window *w = &t->window;
	enum slot_state state = SLOT_DONE;

	if (!w->batch || i >= w->batch->count || w->slots[i].state != SLOT_SENT ||
	    w->slots[i].link->link != pn_delivery_link(delivery))
		return;
	switch (outcome) {
	case PN_ACCEPTED:
		outbox_batch_verdict(w->batch, i, OUTBOX_ACKED, 0, NULL);
		state = SLOT_ACKED;
		break;
	case PN_REJECTED:
		settle_rejected(t, i, delivery);
		break;
	case PN_RELEASED:
	case PN_MODIFIED:
		outbox_batch_verdict(w->batch, i, OUTBOX_RETRY, (int)outcome,
				     "\"%s\" did not take it (%s)", w->slots[i].link->address,
				     outcome == PN_RELEASED ? "released" : "modified");
		break;
	default:
		/* On its way (received), or settled without a word. */
		if (!pn_delivery_settled(delivery))
			return;
		outbox_batch_verdict(w->batch, i, OUTBOX_UNKNOWN, (int)outcome,
				     "\"%s\" settled it without an outcome",
				     w->slots[i].link->address);
		break;
	}
	close_slot(t, &w->slots[i], state);
	pn_delivery_settle(delivery);
}

void amqp1_settle_unsent(struct amqp1_transport *t, size_t i, const struct amqp1_condition *row,
			 const char *why)
{
	outbox_batch_verdict(t->window.batch, i, OUTBOX_RETRY, 0, "%s", why);
	outbox_batch_retry_after(t->window.batch, i, row->back_off);
	t->window.slots[i].outage = row->closed;
	t->window.slots[i].back_off = row->back_off;
	close_slot(t, &t->window.slots[i], SLOT_DONE);
}

/* ---- a link that was closed --------------------------------------------------------------------------- */

/* What it had in flight. */
static void settle_link_sent(struct amqp1_transport *t, struct amqp1_link *link)
{
	struct window *w = &t->window;
	bool guilty = link->in_flight == 1 && link->row->verdict == OUTBOX_REJECTED;

	for (size_t i = 0; i < w->batch->count && link->in_flight > 0; i++) {
		if (w->slots[i].state != SLOT_SENT || w->slots[i].link != link)
			continue;
		outbox_batch_verdict(w->batch, i, guilty ? OUTBOX_REJECTED : OUTBOX_UNKNOWN, 0,
				     "the link to \"%s\" was closed: %s", link->address, link->why);
		close_slot(t, &w->slots[i], SLOT_DONE);
	}
}

/* What waits for it, when it is not attached again. */
static void settle_link_waiting(struct amqp1_transport *t, struct amqp1_link *link)
{
	char why[AMQP1_WHY_MAX + AMQP1_ADDRESS_MAX + 40];
	struct window *w = &t->window;

	snprintf(why, sizeof(why), "the address \"%s\" was refused: %s", link->address, link->why);
	for (size_t i = w->low; i < w->batch->count && link->waiting > 0; i++)
		if (w->slots[i].state == SLOT_WAITING && w->slots[i].link == link)
			amqp1_settle_unsent(t, i, link->row, why);
}

/* An idle one is closed by the service, and a message can make it close one: nothing is wrong with the address then. */
static bool is_worth_another(const struct amqp1_link *link)
{
	return link->row->closed == OUTBOX_ECONN;
}

void amqp1_settle_links(struct amqp1_transport *t)
{
	for (int64_t i = 0; i < t->n_links; i++) {
		struct amqp1_link *link = &t->links[i];

		if (link->state != LINK_CLOSED)
			continue;
		if (t->window.batch)
			settle_link_sent(t, link);
		if (link->waiting > 0 && is_worth_another(link) && links_attach_again(t, link))
			continue;
		if (t->window.batch)
			settle_link_waiting(t, link);
		links_free_one(link);
	}
}

/* ---- the batch ---------------------------------------------------------------------------------------- */

size_t amqp1_settle_in_flight(struct amqp1_transport *t, const char *why)
{
	struct window *w = &t->window;
	size_t unknown = w->in_flight;

	for (size_t i = 0; i < w->batch->count && w->in_flight > 0; i++) {
		if (w->slots[i].state != SLOT_SENT)
			continue;
		outbox_batch_verdict(w->batch, i, OUTBOX_UNKNOWN, 0,
				     "sent, and no outcome came: %s", why);
		close_slot(t, &w->slots[i], SLOT_DONE);
	}
	return unknown;
}

/* Was it the target that was refused? */
static int outage_of(const struct amqp1_transport *t, const struct slot *slot)
{
	return slot->outage == OUTBOX_EAUTH && !t->constant ? OUTBOX_OK : slot->outage;
}

int amqp1_settle_batch(struct amqp1_transport *t, struct outbox_error *err)
{
	struct window *w = &t->window;
	size_t n = w->batch->count, first = 0, last_acked = 0;
	const struct outbox_item *item;
	int status;

	while (first < n && outage_of(t, &w->slots[first]) == OUTBOX_OK)
		first++;
	for (size_t i = 0; i < n; i++)
		if (w->slots[i].state == SLOT_ACKED)
			last_acked = i;
	if (first == n || (last_acked > first && !t->constant))
		return OUTBOX_OK;
	item = w->batch->items[first];
	status = outage_of(t, &w->slots[first]);
	outbox_fail_native(err, status, item->native, "%s: %s", t->broker.shown,
			   item->reason ? item->reason : "refused");
	outbox_batch_back_off(w->batch, w->slots[first].back_off);
	for (size_t i = first; i < n; i++)
		if (outage_of(t, &w->slots[i]) != OUTBOX_OK)
			outbox_batch_verdict(w->batch, i, OUTBOX_VERDICT_UNSET, 0, NULL);
	return status;
}
