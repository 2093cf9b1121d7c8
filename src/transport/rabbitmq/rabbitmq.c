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

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct outbox_transport_ops rabbitmq_transport_ops;

static void rabbit_disconnect(struct outbox_transport *transport)
{
	rabbit_drop(rabbit_downcast(transport), true);
}

static void rabbit_close(struct outbox_transport *transport)
{
	struct rabbit *rabbit = transport ? rabbit_downcast(transport) : NULL;

	if (!rabbit)
		return;
	rabbit_drop(rabbit, true);
	confirms_deinit(&rabbit->confirms);
	outbox_encoder_free(rabbit->encoder);
	endpoint_deinit(&rabbit->endpoint);
	template_deinit(&rabbit->exchange);
	template_deinit(&rabbit->routing_key);
	buf_deinit(&rabbit->exchange_name);
	buf_deinit(&rabbit->key);
	free(rabbit->declare.exchange_type);
	free(rabbit->declare.queue);
	free(rabbit->declare.queue_type);
	free(rabbit->declare.bind);
	free(rabbit->vhost);
	free(rabbit);
}

static int rabbit_open(const struct outbox_transport_config *config,
		       struct outbox_transport **ret_transport, struct outbox_error *err)
{
	int envelope = config->envelope ? config->envelope : OUTBOX_ENVELOPE_CE_BINARY;
	struct rabbit *rabbit = calloc(1, sizeof(*rabbit));
	char shown[80];
	int r;

	if (!rabbit)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (envelope < OUTBOX_ENVELOPE_CE_STRUCTURED || envelope > OUTBOX_ENVELOPE_EXTERNAL) {
		free(rabbit);
		return outbox_fail(err, OUTBOX_ECONFIG, "amqp: envelope %d is unknown", envelope);
	}
	rabbit->base.ops = &rabbitmq_transport_ops;
	rabbit->clock = config->clock;
	rabbit->confirms = (struct confirms)CONFIRMS_INIT;
	rabbit->exchange_name.max = rabbit->key.max = (size_t)64 << 10;
	rabbit->external = envelope == OUTBOX_ENVELOPE_EXTERNAL;
	snprintf(rabbit->name, sizeof(rabbit->name), "outbox %s",
		 text_shown(shown, sizeof(shown), config->target ? config->target : ""));
	r = rabbit_options(rabbit, config->url, err);
	if (r == OUTBOX_OK)
		r = outbox_encoder_new(envelope, "cloudEvents:", &rabbit->encoder, err);
	if (r != OUTBOX_OK) {
		rabbit_close(&rabbit->base);
		return r;
	}
	*ret_transport = &rabbit->base;
	return OUTBOX_OK;
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
