/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka:// and kafkas://, by librdkafka's idempotent producer with acks=all.
 *
 * The engine hands over whole batches, several messages of a key among them, because this driver promises that
 * nothing of a key overtakes (OUTBOX_TRANSPORT_KEEPS_ORDER). The library alone does not give that: when a message
 * set is refused it numbers the later ones anew and sends them, and (1, 4, 5) is what arrives. So a batch goes out
 * in windows. A window is what fits into one message set, and the library sends nothing before it is complete
 * (linger.ms is endless, rd_kafka_flush() starts it). So each partition gets one message set a window; the broker
 * takes it whole or not at all, and all messages of a key are in it. The next window leaves when every report of
 * the last one is there. A key of which a message was refused for now sends nothing more in this batch: what is
 * left of it has no verdict, which means "not sent". A usual batch is one window.
 *
 * The broker refuses message sets, not messages: with one that is too large its neighbours come back too. Such a
 * set is split, half by half, before anything later is sent; a message is REJECTED when it was refused alone.
 *
 * No message has a timeout of its own, since those pass one by one. At the deadline of publish() everything is
 * purged at once and all reports are awaited (they are local then); what may have been stored is UNKNOWN, and the
 * producer is not used again: a new one has a new id, and no late answer finds anybody.
 *
 * Reports and errors are callbacks that the library makes only inside rd_kafka_poll() and rd_kafka_flush(), so
 * they run in our thread.
 */
#include "transport/kafka/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

extern const struct outbox_transport_ops kafka_transport_ops;

/* For rounding, the header of a message set and the library's own estimate. */
#define WINDOW_MARGIN 2000

static void kafka_close(struct outbox_transport *transport)
{
	struct kafka_transport *kafka;

	if (!transport)
		return;
	kafka = kafka_downcast(transport);
	kafka_disconnect(transport);
	if (kafka->conf)
		rd_kafka_conf_destroy(kafka->conf);
	kafka_run_deinit(&kafka->run);
	template_deinit(&kafka->topic);
	outbox_encoder_free(kafka->encoder);
	buf_deinit(&kafka->name);
	free(kafka->topic_text);
	free(kafka);
}

static size_t property(const struct kafka_transport *kafka, const char *name)
{
	char text[32];
	size_t size = sizeof(text);

	if (rd_kafka_conf_get(kafka->conf, name, text, &size) != RD_KAFKA_CONF_OK)
		return 0;
	return (size_t)strtoull(text, NULL, 10);
}

static void set_window(struct kafka_transport *kafka)
{
	size_t batch = property(kafka, "batch.size"), most = property(kafka, "message.max.bytes");
	size_t bytes = batch < most ? batch : most;

	kafka->window_bytes = bytes > 2 * WINDOW_MARGIN ? bytes - WINDOW_MARGIN : bytes / 2;
	kafka->window_messages = property(kafka, "batch.num.messages");
}

static int make_encoder(struct kafka_transport *kafka, int envelope, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = outbox_encoder_new(envelope, "ce_", &kafka->encoder, &why);

	return r ? outbox_fail(err, r == OUTBOX_EINVAL ? OUTBOX_ECONFIG : r, "%s", why.message) : r;
}

static int kafka_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct kafka_transport *kafka = calloc(1, sizeof(*kafka));
	int envelope = config->envelope ? config->envelope : OUTBOX_ENVELOPE_CE_BINARY;
	int r;

	if (!kafka)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	kafka->base.ops = &kafka_transport_ops;
	kafka->clock = config->clock;
	kafka->name.max = 8192;
	r = kafka_configure(kafka, config, err);
	if (!r)
		r = make_encoder(kafka, envelope, err);
	if (r) {
		kafka_close(&kafka->base);
		return r;
	}
	set_window(kafka);
	*ret_transport = &kafka->base;
	return OUTBOX_OK;
}

static const char *const schemes[] = { "kafka", "kafkas", NULL };

const struct outbox_transport_ops kafka_transport_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "kafka",
	.schemes = schemes,
	.help = "kafka://[user:password@]host:9092[,host:9092]/TOPIC (kafkas:// for TLS; TOPIC may be "
		"{topic} or shop.{type}; sasl=plain|scram-sha-256|scram-sha-512, any librdkafka property)",
	.flags = OUTBOX_TRANSPORT_KEEPS_ORDER,
	.open = kafka_open,
	.connect = kafka_connect,
	.publish = kafka_publish,
	.disconnect = kafka_disconnect,
	.close = kafka_close,
	.check = kafka_check,
};
