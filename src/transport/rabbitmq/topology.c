/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange and the queue of the URL: looked for, or made when asked to. */
#include "transport/rabbitmq/driver.h"

#include <string.h>

int rabbit_find_exchange(struct rabbit *rabbit, const char *name, outbox_time deadline,
			 struct outbox_error *err)
{
	int r = rabbit_side(rabbit, deadline, err);

	if (r != OUTBOX_OK)
		return r;
	amqp_exchange_declare(rabbit->connection, RABBIT_SIDE_CHANNEL,
			      rabbit_bytes(name, strlen(name)), amqp_cstring_bytes("direct"), 1, 1,
			      0, 0, amqp_empty_table);
	return rabbit_reply(rabbit, RABBIT_SIDE_CHANNEL, "exchange", err);
}

int rabbit_declare_queue(struct rabbit *rabbit, const char *queue, const char *queue_type,
			 const char *what, struct outbox_error *err)
{
	amqp_table_entry_t type = {
		.key = amqp_cstring_bytes("x-queue-type"),
		.value = { .kind = AMQP_FIELD_KIND_UTF8,
			   .value.bytes = amqp_cstring_bytes(queue_type ? queue_type : "") },
	};
	amqp_table_t arguments = { queue_type ? 1 : 0, &type };

	amqp_queue_declare(rabbit->connection, RABBIT_SIDE_CHANNEL, amqp_cstring_bytes(queue),
			   !queue_type, 1, 0, 0, arguments);
	return rabbit_reply(rabbit, RABBIT_SIDE_CHANNEL, what, err);
}

static int make_queue(struct rabbit *rabbit, const char *exchange, struct outbox_error *err)
{
	const struct rabbit_declare *d = &rabbit->declare;
	int r = rabbit_declare_queue(rabbit, d->queue, d->queue_type, "cannot declare the queue",
				     err);

	if (r != OUTBOX_OK || !exchange[0])
		return r;
	amqp_queue_bind(rabbit->connection, RABBIT_SIDE_CHANNEL, amqp_cstring_bytes(d->queue),
			amqp_cstring_bytes(exchange), amqp_cstring_bytes(d->bind), amqp_empty_table);
	return rabbit_reply(rabbit, RABBIT_SIDE_CHANNEL, "cannot bind the queue", err);
}

int rabbit_declare_topology(struct rabbit *rabbit, outbox_time deadline, struct outbox_error *err)
{
	const struct rabbit_declare *d = &rabbit->declare;
	const char *exchange;
	int r;

	if (!rabbit->constant)
		return OUTBOX_OK;
	buf_clear(&rabbit->exchange_name);
	r = template_render(&rabbit->exchange, NULL, &rabbit->exchange_name, err);
	exchange = buf_str(&rabbit->exchange_name);
	if (r == OUTBOX_OK && (d->exchange_type || d->queue))
		r = rabbit_side(rabbit, deadline, err);
	if (r == OUTBOX_OK && d->exchange_type) {
		amqp_exchange_declare(rabbit->connection, RABBIT_SIDE_CHANNEL,
				      amqp_cstring_bytes(exchange),
				      amqp_cstring_bytes(d->exchange_type), 0, 1, 0, 0,
				      amqp_empty_table);
		r = rabbit_reply(rabbit, RABBIT_SIDE_CHANNEL, "cannot declare the exchange", err);
	} else if (r == OUTBOX_OK && exchange[0]) {
		r = rabbit_find_exchange(rabbit, exchange, deadline, err);
	}
	if (r == OUTBOX_OK && d->queue)
		r = make_queue(rabbit, exchange, err);
	return r;
}
