/* SPDX-License-Identifier: Apache-2.0 */
#include "../series.h"
#include "plain.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kafka {
	rd_kafka_t *producer;
	size_t reported;
};

static void reported(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
	struct kafka *k = opaque;

	(void)producer;
	if (message->err)
		die("kafka", rd_kafka_err2str(message->err));
	k->reported++;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
	char text[300];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) != RD_KAFKA_CONF_OK)
		die(name, text);
}

static void *open_kafka(const char *url)
{
	struct kafka *k = calloc(1, sizeof(*k));
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char host[256], servers[300], text[300];
	int port;

	plain_address(url, host, &port);
	snprintf(servers, sizeof(servers), "%s:%d", host, port);
	set(conf, "bootstrap.servers", servers);
	set(conf, "enable.idempotence", "true");
	set(conf, "acks", "all");
	/* rd_kafka_flush() sends, so a window is one message set a partition, at once. Measured against linger.ms
	 * 0, 1 and 5, with and without a flush: this is the fastest, and what our driver does. */
	set(conf, "linger.ms", "900000");
	set(conf, "message.timeout.ms", "0");
	rd_kafka_conf_set_dr_msg_cb(conf, reported);
	rd_kafka_conf_set_opaque(conf, k);
	k->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!k->producer)
		die("kafka", text);
	return k;
}

/* It may be there already; anything else shows in the first message. */
static void make(void *broker)
{
	rd_kafka_t *producer = ((struct kafka *)broker)->producer;
	char text[300];
	rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new("bench", 4, 1, text, sizeof(text));
	rd_kafka_queue_t *queue = rd_kafka_queue_new(producer);

	if (!topic)
		die("topic", text);
	rd_kafka_CreateTopics(producer, &topic, 1, NULL, queue);
	rd_kafka_event_destroy(rd_kafka_queue_poll(queue, 30000));
	rd_kafka_queue_destroy(queue);
	rd_kafka_NewTopic_destroy(topic);
}

static rd_kafka_vu_t header(const char *name, const char *value)
{
	return (rd_kafka_vu_t){ .vtype = RD_KAFKA_VTYPE_HEADER,
				.u.header = { .name = name, .val = value, .size = -1 } };
}

static void produce(rd_kafka_t *producer, const struct plain_message *m)
{
	const rd_kafka_vu_t fields[] = {
		{ .vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = "bench" },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
		{ .vtype = RD_KAFKA_VTYPE_KEY, .u.mem = { (void *)m->key, strlen(m->key) } },
		{ .vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = { (void *)m->body, m->size } },
		header("ce_specversion", "1.0"),
		header("ce_id", m->id),
		header("ce_source", PLAIN_SOURCE),
		header("ce_type", m->type),
		header("ce_time", m->time),
		header("ce_partitionkey", m->key),
		header("content-type", PLAIN_CONTENT_TYPE),
	};
	rd_kafka_error_t *error =
		rd_kafka_produceva(producer, fields, sizeof(fields) / sizeof(fields[0]));

	if (error)
		die("kafka", rd_kafka_error_string(error));
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct kafka *k = broker;

	k->reported = 0;
	for (size_t i = 0; i < n; i++)
		produce(k->producer, &messages[i]);
	while (k->reported < n)
		rd_kafka_flush(k->producer, 1000);
}

static void close_kafka(void *broker)
{
	struct kafka *k = broker;

	rd_kafka_destroy(k->producer);
	free(k);
}

const struct plain_ops plain_kafka = { .name = "kafka",
				       .env = "OUTBOX_TEST_KAFKA",
				       .options = "/bench",
				       .open = open_kafka,
				       .make = make,
				       .publish = publish,
				       .close = close_kafka };
