/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch goes out as fast as the broker gives credit, and outcomes are read meanwhile. Every message is a delivery that
 * carries its place in the batch; it is settled by us when the broker has said what became of it, so that an outcome counts
 * for exactly one message.
 *
 * A batch that ends with messages in flight ends the connection: what still lies in the library's memory must not leave with
 * the next batch, and a late outcome has nobody to go to.
 */

#include "transport/amqp1/driver.h"

#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

#include <proton/delivery.h>

#define WRITE_AT 65536 /* write what has been gathered */
#define PATIENCE \
	(2 * OUTBOX_SECONDS) /* so long nothing happens, and there is no credit: it is full */

/* ---- the window ------------------------------------------------------------------------------------- */

static int begin(struct amqp1_transport *t, struct outbox_batch *batch, struct outbox_error *err)
{
	struct window *w = &t->window;

	if (batch->count > w->capacity) {
		struct slot *slots = reallocarray(w->slots, batch->count, sizeof(*slots));

		if (!slots)
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		w->slots = slots;
		w->capacity = batch->count;
	}
	if (batch->count)
		memset(w->slots, 0, batch->count * sizeof(*w->slots));
	w->batch = batch;
	w->low = w->in_flight = w->acked = 0;
	w->open = batch->count;
	w->refused = (struct outbox_error){ 0 };
	for (int64_t i = 0; i < t->n_links; i++)
		t->links[i].attached_again = false;
	return OUTBOX_OK;
}

static void reject(struct amqp1_transport *t, size_t i)
{
	struct slot *slot = &t->window.slots[i];

	if (slot->state == SLOT_WAITING)
		slot->link->waiting--;
	slot->state = SLOT_DONE;
	t->window.open--;
}

/* ---- a link for each message ------------------------------------------------------------------------------ */

/* All tokens are made with one key: whose is refused once is not asked again in this batch, and nobody is charged. */
static void stop_sending(struct amqp1_transport *t, const struct outbox_error *why)
{
	struct window *w = &t->window;

	w->refused = *why;
	for (size_t i = w->low; i < w->batch->count; i++)
		if (w->slots[i].state == SLOT_NEW)
			reject(t, i);
}

/* OK also when it has to wait for a link, or has its verdict. */
static int assign(struct amqp1_transport *t, size_t i, outbox_time deadline, struct outbox_error *err)
{
	struct window *w = &t->window;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	enum amqp1_capability capability;
	struct amqp1_link *link;
	int r = amqp1_address(t, w->batch->items[i]->message, &capability, &why);

	if (r != OUTBOX_OK) {
		reject(t, i);
		return transport_reject(w->batch, i, r, &why, err);
	}
	r = links_get(t, buf_str(&t->text), capability, deadline, &link, &why);
	if (r != OUTBOX_OK && r != OUTBOX_EAUTH)
		return outbox_fail_native(err, r, why.native, "%s", why.message);
	if (r != OUTBOX_OK)
		stop_sending(t, &why);
	if (r != OUTBOX_OK || !link)
		return OUTBOX_OK;
	w->slots[i].link = link;
	w->slots[i].state = SLOT_WAITING;
	link->waiting++;
	return OUTBOX_OK;
}

/* ---- sending ------------------------------------------------------------------------------------------ */

/* EINVAL: larger than the broker takes. It would close the link, and with it end what is in flight. */
static int check_size(const struct amqp1_link *link, size_t size, struct outbox_error *err)
{
	uint64_t max = pn_link_remote_max_message_size(link->link);

	if (max == 0 || size <= max)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "the message has %zu bytes; \"%s\" takes %llu at most", size,
			   link->address, (unsigned long long)max);
}

static int send_one(struct amqp1_transport *t, size_t i, size_t *gathered, struct outbox_error *err)
{
	struct window *w = &t->window;
	struct slot *slot = &w->slots[i];
	struct outbox_error why = OUTBOX_ERROR_INIT;
	pn_delivery_t *delivery;
	size_t size = 0;
	int r = amqp1_message(t, w->batch->items[i], &size, &why);

	if (r == OUTBOX_OK)
		r = check_size(slot->link, size, &why);
	if (r != OUTBOX_OK) {
		reject(t, i);
		return transport_reject(w->batch, i, r, &why, err);
	}
	t->number++;
	delivery =
		pn_delivery(slot->link->link, pn_dtag((const char *)&t->number, sizeof(t->number)));
	pn_delivery_set_context(delivery, (void *)(uintptr_t)i);
	slot->state = SLOT_SENT;
	slot->link->waiting--;
	slot->link->in_flight++;
	slot->link->proven = true;
	w->open--;
	w->in_flight++;
	pn_link_send(slot->link->link, t->encoded.start, size);
	pn_link_advance(slot->link->link);
	*gathered += size;
	return OUTBOX_OK;
}

static bool may_go(const struct slot *slot)
{
	return slot->state == SLOT_WAITING && slot->link->state == LINK_READY &&
	       pn_link_credit(slot->link->link) > 0;
}

/* Send what may go now. With one address, what stands behind a message that may not go may not, either. */
static int send_ready(struct amqp1_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct window *w = &t->window;
	size_t gathered = 0;
	bool blocked = false;
	int r = OUTBOX_OK;

	while (w->low < w->batch->count && w->slots[w->low].state > SLOT_WAITING)
		w->low++;
	for (size_t i = w->low; i < w->batch->count && r == OUTBOX_OK; i++) {
		struct slot *slot = &w->slots[i];

		if (slot->state == SLOT_NEW)
			r = assign(t, i, deadline, err);
		if (r == OUTBOX_OK && !blocked && may_go(slot))
			r = send_one(t, i, &gathered, err);
		else
			blocked |= t->constant && slot->state == SLOT_WAITING;
		if (gathered < WRITE_AT || r != OUTBOX_OK)
			continue;
		gathered = 0;
		amqp1_pump(t, 0);
		amqp1_settle_links(t);
		/* The rest when the socket has taken this, and in time. */
		if (amqp1_ended(t) || wire_unsent(&t->wire) > 0 ||
		    broker_time_left(&t->broker, deadline) <= 0)
			break;
	}
	return r;
}

/* ---- waiting ------------------------------------------------------------------------------------------ */

/* Nothing is under way, and the messages that are left have links without credit. */
static bool lacks_credit(const struct amqp1_transport *t)
{
	return t->window.in_flight == 0 && !links_any_attaching(t) && wire_unsent(&t->wire) == 0;
}

static int fail_late(struct amqp1_transport *t, struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ETIMEDOUT,
			   "%s: %zu messages not answered, %zu not sent in time", t->broker.shown,
			   t->window.in_flight, t->window.open);
}

/* Of those that wait: they have no credit, or their address was not answered for. */
static void settle_starved(struct amqp1_transport *t)
{
	struct window *w = &t->window;

	for (size_t i = w->low; i < w->batch->count; i++) {
		char why[AMQP1_ADDRESS_MAX + 100];

		if (w->slots[i].state != SLOT_WAITING)
			continue;
		snprintf(why, sizeof(why), "the address \"%s\" %s", w->slots[i].link->address,
			 w->slots[i].link->state == LINK_READY
				 ? "gives no credit: it is full, or blocked"
				 : "was not answered for");
		amqp1_settle_unsent(t, i, &amqp1_no_credit, why);
	}
}

/* One turn of waiting. OK: look again; *ret_done: there is nothing more to wait for. */
static int wait_turn(struct amqp1_transport *t, outbox_time deadline, bool *ret_done,
		     struct outbox_error *err)
{
	outbox_time left = broker_time_left(&t->broker, deadline);
	bool starved = lacks_credit(t);
	outbox_time wait = starved && left > 2 * PATIENCE ? PATIENCE : starved ? left / 2 : left;
	bool moved = left > 0 && amqp1_pump(t, wait);

	amqp1_settle_links(t);
	if (amqp1_ended(t))
		return amqp1_why(t, err);
	if (moved)
		return OUTBOX_OK;
	if (!starved && t->window.in_flight > 0)
		return fail_late(t, err);
	if (!starved && t->window.acked == 0)
		return fail_late(t, err);
	settle_starved(t);
	*ret_done = true;
	return OUTBOX_OK;
}

/* The session or the connection ended when an address was attached, before anything was sent there: that address did it. */
static void settle_guilty_address(struct amqp1_transport *t)
{
	struct window *w = &t->window;

	if (!t->closed || t->constant)
		return;
	for (size_t i = w->low; i < w->batch->count; i++)
		if (w->slots[i].state == SLOT_WAITING && !w->slots[i].link->proven)
			amqp1_settle_unsent(t, i, t->row, t->wire.why);
}

static int exchange(struct amqp1_transport *t, outbox_time deadline, struct outbox_error *err)
{
	struct window *w = &t->window;
	bool done = false;
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK && !done) {
		r = send_ready(t, deadline, err);
		if (r == OUTBOX_OK && amqp1_ended(t))
			r = amqp1_why(t, err);
		if (r != OUTBOX_OK || (w->open == 0 && w->in_flight == 0))
			break;
		r = wait_turn(t, deadline, &done, err);
	}
	if (r != OUTBOX_OK) {
		settle_guilty_address(t);
		amqp1_settle_in_flight(t, t->wire.why[0] ? t->wire.why : "not in time");
		return r;
	}
	r = amqp1_settle_batch(t, err);
	if (r != OUTBOX_OK || w->refused.status == OUTBOX_OK)
		return r;
	return outbox_fail_native(err, w->refused.status, w->refused.native, "%s",
				  w->refused.message);
}

/* Nobody looked at the connection since the last batch. Did it end? Then nothing is lost by another one. */
static int wake_up(struct amqp1_transport *t, outbox_time deadline, struct outbox_error *err)
{
	while (!amqp1_ended(t) && amqp1_pump(t, 0))
		if (broker_time_left(&t->broker, deadline) <= 0)
			return outbox_fail(err, OUTBOX_ETIMEDOUT,
					   "%s: the broker sends without end, so nothing could be sent",
					   t->broker.shown);
	amqp1_settle_links(t);
	return amqp1_ended(t) ? amqp1_connect(&t->broker.base, deadline, err) : OUTBOX_OK;
}

int amqp1_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err)
{
	struct amqp1_transport *t = amqp1_downcast(transport);
	int r = broker_ready(&t->broker, t->driver.connection, deadline, err);

	if (r == OUTBOX_OK)
		r = wake_up(t, deadline, err);
	if (r == OUTBOX_OK)
		r = begin(t, batch, err);
	if (r == OUTBOX_OK)
		r = exchange(t, deadline, err);
	t->window.batch = NULL;
	for (int64_t i = 0; i < t->n_links; i++)
		t->links[i].waiting = t->links[i].in_flight = 0;
	if (r != OUTBOX_OK)
		amqp1_drop(t, false);
	return r;
}
