/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library knows the protocol and nothing of sockets: its connection driver takes bytes and gives bytes. So every wait
 * has a deadline, no thread is started, TLS verifies what ours verifies, and a descriptor of the application's is never
 * looked at. As in NATS, I/O is done by the worker that publishes. Between two batches nobody answers the broker, which
 * after a minute or so ends the idle connection or its links; publish() sees that before it sends anything.
 */

#include "transport/amqp1/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/event.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/transport.h>

#define OUT_HIGH ((size_t)1 << 20) /* the socket is full: the library keeps the rest */

/* ---- what happened ------------------------------------------------------------------------------------ */

/* The first reason stays: what follows is its consequence. */
static void note_closed(struct amqp1_transport *t, pn_condition_t *condition)
{
	char why[AMQP1_WHY_MAX];

	if (t->closed)
		return;
	t->closed = true;
	t->row = amqp1_condition_read(condition, why, sizeof(why));
	/* Its words explain more than the end of the connection that perhaps came with them. */
	t->wire.ended = false;
	wire_end(&t->wire, t->row->closed, why);
}

/* The library gave up: nonsense on the wire, or a login that failed. */
static void note_transport(struct amqp1_transport *t)
{
	pn_condition_t *condition = pn_transport_condition(t->driver.transport);
	pn_sasl_outcome_t outcome = pn_sasl_outcome(pn_sasl(t->driver.transport));

	if (t->closed || !pn_condition_is_set(condition))
		return;
	note_closed(t, condition);
	if (outcome == PN_SASL_SYS || outcome == PN_SASL_TEMP)
		t->wire.status = OUTBOX_ECONN;
}

static void drain(pn_link_t *link)
{
	if (link && pn_link_is_sender(link) && pn_link_get_drain(link))
		pn_link_drained(link);
}

static void handle(struct amqp1_transport *t, pn_event_t *event)
{
	pn_link_t *link = pn_event_link(event);

	switch (pn_event_type(event)) {
	case PN_CONNECTION_REMOTE_CLOSE:
		note_closed(t, pn_connection_remote_condition(t->driver.connection));
		break;
	case PN_SESSION_REMOTE_CLOSE:
		note_closed(t, pn_session_remote_condition(pn_event_session(event)));
		break;
	case PN_LINK_REMOTE_OPEN:
		links_opened(t, link);
		break;
	case PN_LINK_REMOTE_CLOSE:
	case PN_LINK_REMOTE_DETACH:
		if (!request_closed(t, link))
			links_closed(t, link);
		break;
	case PN_LINK_FLOW:
		drain(link);
		break;
	case PN_DELIVERY:
		if (!request_delivery(t, pn_event_delivery(event)))
			amqp1_settle_delivery(t, pn_event_delivery(event));
		break;
	case PN_TRANSPORT_ERROR:
	case PN_TRANSPORT_CLOSED:
		note_transport(t);
		break;
	default:
		break;
	}
}

static void handle_all(struct amqp1_transport *t)
{
	pn_event_t *event;

	while ((event = pn_connection_driver_next_event(&t->driver)))
		handle(t, event);
}

/* ---- bytes -------------------------------------------------------------------------------------------- */

static void push_in(struct amqp1_transport *t)
{
	struct wire *wire = &t->wire;

	while (wire->taken < wire->in.size) {
		pn_rwbytes_t room = pn_connection_driver_read_buffer(&t->driver);
		size_t n = wire->in.size - wire->taken;

		/* The library wants no more: it closed, or gave up. */
		if (room.size == 0) {
			wire->taken = wire->in.size;
			break;
		}
		n = n < room.size ? n : room.size;
		memcpy(room.start, wire->in.data + wire->taken, n);
		wire->taken += n;
		pn_connection_driver_read_done(&t->driver, n);
		handle_all(t);
	}
}

static void pull_out(struct amqp1_transport *t)
{
	int64_t now = t->broker.clock->mono(t->broker.clock) / OUTBOX_MILLISECONDS;

	pn_transport_tick(t->driver.transport, now > 0 ? now : 1);
	while (wire_unsent(&t->wire) < OUT_HIGH) {
		pn_bytes_t bytes = pn_connection_driver_write_buffer(&t->driver);

		if (bytes.size == 0)
			return;
		buf_append(&t->wire.out, bytes.start, bytes.size);
		pn_connection_driver_write_done(&t->driver, bytes.size);
	}
}

/* A broker that hears nothing from us for so long hangs up: twice in that time it gets an empty frame. */
static outbox_time heartbeat(struct amqp1_transport *t, outbox_time wait)
{
	outbox_time idle =
		pn_transport_get_remote_idle_timeout(t->driver.transport) * OUTBOX_MILLISECONDS / 2;

	return idle > 0 && idle < wait ? idle : wait;
}

bool amqp1_pump(struct amqp1_transport *t, outbox_time wait)
{
	bool moved;

	if (!t->driver.connection)
		return false;
	handle_all(t);
	do {
		outbox_time step = heartbeat(t, wait);

		pull_out(t);
		handle_all(t); /* a login that cannot be is noticed when there is nothing to write */
		if (t->closed)
			return true;
		moved = wire_wait(&t->wire, step);
		wait -= step;
	} while (!moved && wait > 0);
	push_in(t);
	handle_all(t);
	return moved;
}

/* ---- the end ------------------------------------------------------------------------------------------ */

bool amqp1_ended(const struct amqp1_transport *t)
{
	return !t->driver.connection || t->closed || t->wire.ended;
}

int amqp1_why(const struct amqp1_transport *t, struct outbox_error *err)
{
	return outbox_fail(err, t->wire.status ? t->wire.status : OUTBOX_ECONN,
			   "%s: the connection ended: %s", t->broker.shown,
			   t->wire.why[0] ? t->wire.why : "closed by the broker");
}

int amqp1_await(struct amqp1_transport *t, bool (*done)(const struct amqp1_transport *t),
		const char *what, outbox_time deadline, struct outbox_error *err)
{
	amqp1_pump(t, 0);
	while (!done(t)) {
		outbox_time left = broker_time_left(&t->broker, deadline);

		if (amqp1_ended(t))
			return amqp1_why(t, err);
		if (left <= 0 || !amqp1_pump(t, left))
			return outbox_fail(err, OUTBOX_ETIMEDOUT, "%s: no answer in time while %s",
					   t->broker.shown, what);
	}
	return OUTBOX_OK;
}
