/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an acknowledgement means here. AMQP shows little of a broker: not which queues are bound to an exchange,
 * and of a queue only whether a declaration is equal to it. So the one queue that the URL names is declared
 * once more as a durable quorum queue, after a passive look that it exists, and the broker's refusal tells what
 * it is instead. Nothing is changed by that.
 */
#include "transport/rabbitmq/rabbitmq.h"

#include <stdio.h>
#include <string.h>

#define MEANING "acknowledged when every queue that it was routed to has it"

/* The queue that the URL names, or NULL: messages go through an exchange, or to queues of a template. */
static const char *queue_of(struct rabbit *rabbit)
{
	if (rabbit->declare.queue)
		return rabbit->declare.queue;
	if (!rabbit->constant || rabbit->exchange.n_parts ||
	    !template_is_constant(&rabbit->routing_key))
		return NULL;
	buf_clear(&rabbit->key);
	for (size_t i = 0; i < rabbit->routing_key.n_parts; i++)
		buf_text(&rabbit->key, rabbit->routing_key.parts[i].text);
	return buf_str(&rabbit->key);
}

static int ask(struct rabbit *rabbit, const char *queue, bool passive, outbox_time deadline,
	       struct outbox_error *err)
{
	amqp_table_entry_t type = { .key = amqp_cstring_bytes("x-queue-type"),
				    .value = { .kind = AMQP_FIELD_KIND_UTF8,
					       .value.bytes = amqp_cstring_bytes("quorum") } };
	amqp_table_t arguments = { passive ? 0 : 1, &type };
	int r = rabbit_side(rabbit, deadline, err);

	if (r != OUTBOX_OK)
		return r;
	amqp_queue_declare(rabbit->connection, RABBIT_SIDE_CHANNEL, amqp_cstring_bytes(queue),
			   passive, 1, 0, 0, arguments);
	return rabbit_reply(rabbit, RABBIT_SIDE_CHANNEL, "queue", err);
}

static int check_queue(struct rabbit *rabbit, const char *queue, outbox_time deadline, char *text,
		       size_t size)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int r;

	r = ask(rabbit, queue, true, deadline, &err);
	if (r != OUTBOX_OK) {
		snprintf(text, size, "%s", err.message);
		return 3;
	}
	r = ask(rabbit, queue, false, deadline, &err);
	if (r == OUTBOX_OK) {
		snprintf(text, size,
			 "queue \"%s\" is a quorum queue: an acknowledgement survives the loss of a "
			 "minority of its nodes",
			 queue);
		return 0;
	}
	if (strstr(err.message, "'durable'") || strstr(err.message, "'auto_delete'") ||
	    strstr(err.message, "exclusive")) {
		snprintf(text, size,
			 "queue \"%s\" does not outlive a restart or its consumers: acknowledged messages can "
			 "be lost; make it durable",
			 queue);
		return 2;
	}
	if (strstr(err.message, "current is 'stream'")) {
		snprintf(text, size,
			 "queue \"%s\" is a stream: an acknowledgement survives the loss of a minority of "
			 "its nodes, until its retention drops it",
			 queue);
		return 0;
	}
	if (strstr(err.message, "'x-queue-type'")) {
		snprintf(text, size,
			 "queue \"%s\" is a classic queue: an acknowledgement survives a restart, not the "
			 "loss of the node; consider a quorum queue",
			 queue);
		return 2;
	}
	snprintf(text, size, MEANING "; what queue \"%s\" is cannot be seen by this user", queue);
	return 1;
}

int rabbit_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct rabbit *rabbit = rabbit_downcast(transport);
	outbox_time now = rabbit->clock->mono(rabbit->clock);
	const char *queue;
	int level = 1;

	if (!rabbit->connection) {
		snprintf(text, size, "not connected");
		return 3;
	}
	rabbit_watchdog_arm(&rabbit->watchdog, deadline - now);
	queue = queue_of(rabbit);
	if (queue)
		level = check_queue(rabbit, queue, deadline, text, size);
	else if (!rabbit->mandatory_events)
		snprintf(text, size,
			 MEANING
			 ", also when that is none (mandatory=no): events without a queue are lost");
	else
		snprintf(text, size,
			 MEANING
			 ": on disk for a durable classic queue, on most nodes for a quorum queue; which are "
			 "bound, see rabbitmqctl list_bindings");
	if (!queue && !rabbit->mandatory_events)
		level = 2;
	if (rabbit_watchdog_disarm(&rabbit->watchdog))
		rabbit_drop(rabbit, false);
	return level;
}
