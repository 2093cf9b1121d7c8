/* SPDX-License-Identifier: Apache-2.0 */
#include "../series.h"
#include "plain.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>

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

/* It may be there already; anything else shows in the first message. */
static void make_topic(rd_kafka_t *producer)
{
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
	set(conf, "linger.ms", "1");
	rd_kafka_conf_set_dr_msg_cb(conf, reported);
	rd_kafka_conf_set_opaque(conf, k);
	k->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	if (!k->producer)
		die("kafka", text);
	make_topic(k->producer);
	return k;
}

static void publish(void *broker, const struct plain_message *messages, size_t n)
{
	struct kafka *k = broker;

	k->reported = 0;
	for (size_t i = 0; i < n; i++) {
		const struct plain_message *m = &messages[i];
		rd_kafka_resp_err_t error =
			rd_kafka_producev(k->producer, RD_KAFKA_V_TOPIC("bench"),
					  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
					  RD_KAFKA_V_KEY(m->key, __builtin_strlen(m->key)),
					  RD_KAFKA_V_VALUE((void *)m->body, m->size),
					  RD_KAFKA_V_HEADER("ce_specversion", "1.0", -1),
					  RD_KAFKA_V_HEADER("ce_id", m->id, -1),
					  RD_KAFKA_V_HEADER("ce_source", PLAIN_SOURCE, -1),
					  RD_KAFKA_V_HEADER("ce_type", m->type, -1),
					  RD_KAFKA_V_HEADER("ce_time", m->time, -1),
					  RD_KAFKA_V_HEADER("ce_partitionkey", m->key, -1),
					  RD_KAFKA_V_HEADER("content-type", PLAIN_CONTENT_TYPE, -1),
					  RD_KAFKA_V_END);

		if (error)
			die("kafka", rd_kafka_err2str(error));
	}
	while (k->reported < n)
		rd_kafka_poll(k->producer, 100);
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
				       .publish = publish,
				       .close = close_kafka };
