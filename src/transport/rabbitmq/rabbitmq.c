/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RabbitMQ over AMQP 0-9-1: publisher confirms in a window.
 *
 * publish() writes the whole batch on one channel in confirm mode, reads answers while it writes, and waits for
 * the rest. ACKED is only what basic.ack confirmed. A message that no queue takes comes back (basic.return)
 * before its acknowledgement and is RETRY all the same.
 *
 * A window never stays half answered on a live channel: after a deadline the connection is dropped, and after
 * a channel.close a new channel is opened. So a return, which carries no tag, always belongs to a message of
 * the window, and is found by its message id.
 *
 * The broker closes the whole channel for one bad message. The driver avoids that where it can (it asks
 * once for every exchange that a template makes, on a second channel) and else finds the guilty by the
 * broker's words; the others that were not confirmed are UNKNOWN.
 */
#include "transport/rabbitmq/driver.h"

#include <stdlib.h>

extern const struct outbox_transport_ops rabbitmq_transport_ops;

static void rabbit_disconnect(struct outbox_transport *transport)
{
	rabbit_drop(rabbit_downcast(transport), true);
}

static void rabbit_close(struct outbox_transport *transport)
{
	struct rabbit *rabbit = rabbit_downcast(transport);

	rabbit_drop(rabbit, true);
	confirms_deinit(&rabbit->confirms);
	template_deinit(&rabbit->exchange);
	template_deinit(&rabbit->routing_key);
	buf_deinit(&rabbit->exchange_name);
	buf_deinit(&rabbit->key);
	free(rabbit->declare.exchange_type);
	free(rabbit->declare.queue);
	free(rabbit->declare.queue_type);
	free(rabbit->declare.bind);
	free(rabbit->vhost);
	broker_close(&rabbit->broker);
}

static int rabbit_open(const struct outbox_transport_config *config,
		       struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &rabbitmq_transport_ops,
		.title = "rabbitmq",
		.size = sizeof(struct rabbit),
		.attribute_prefix = "cloudEvents:",
		.options = RABBIT_OPTIONS,
		.configure = rabbit_configure,
	};

	return broker_open(&driver, config, ret_transport, err);
}

static const char *const schemes[] = { "amqp", "amqps", NULL };

const struct outbox_transport_ops rabbitmq_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "rabbitmq",
	.schemes = schemes,
	.help = "amqp://user@host:5672/vhost?exchange=NAME&routing_key={type}&password_file=PATH (amqps: TLS; "
		"mandatory=no, declare=topic, queue=NAME, heartbeat=30)",
	.open = rabbit_open,
	.connect = rabbit_connect,
	.publish = rabbit_publish,
	.disconnect = rabbit_disconnect,
	.close = rabbit_close,
	.check = rabbit_check,
};
