/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka:// and kafkas://, by librdkafka's idempotent producer with acks=all.
 *
 * The engine hands over whole batches, several messages of a key among them, because this driver promises that
 * nothing of a key overtakes (OUTBOX_TRANSPORT_KEEPS_ORDER). The library alone does not give that: when a message
 * set is refused it numbers the later ones again and sends them, and (1, 4, 5) is what arrives. So a batch goes out
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

#include <stdlib.h>

extern const struct outbox_transport_ops kafka_transport_ops;

static void kafka_close(struct outbox_transport *transport)
{
	struct kafka_transport *kafka = kafka_downcast(transport);

	kafka_disconnect(transport);
	if (kafka->conf)
		rd_kafka_conf_destroy(kafka->conf);
	kafka_run_deinit(&kafka->run);
	template_deinit(&kafka->topic);
	buf_deinit(&kafka->name);
	free(kafka->topic_text);
	broker_close(&kafka->broker);
}

static int kafka_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	static const struct broker_driver driver = {
		.ops = &kafka_transport_ops,
		.title = "kafka",
		.size = sizeof(struct kafka_transport),
		.attribute_prefix = "ce_",
		.options = ENDPOINT_OPTIONS
		", sasl, partitioner, and librdkafka's properties (compression.type ...)",
		.configure = kafka_configure,
	};

	return broker_open(&driver, config, ret_transport, err);
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
