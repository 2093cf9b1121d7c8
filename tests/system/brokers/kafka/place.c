/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT 60000 /* ms; a machine under load */

const char *place_broker(void)
{
	static char address[40];

	snprintf(address, sizeof(address), "127.0.0.1:%s", getenv("KAFKA_PORT"));
	return address;
}

static rd_kafka_t *make(rd_kafka_type_t type, const char *servers)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char text[300];
	rd_kafka_t *handle;

	rd_kafka_conf_set_log_cb(conf, NULL);
	rd_kafka_conf_set(conf, "bootstrap.servers", servers, NULL, 0);
	if (type == RD_KAFKA_CONSUMER) {
		rd_kafka_conf_set(conf, "group.id", "witness", NULL, 0);
		rd_kafka_conf_set(conf, "enable.partition.eof", "true", NULL, 0);
		rd_kafka_conf_set(conf, "enable.auto.commit", "false", NULL, 0);
		rd_kafka_conf_set(conf, "fetch.wait.max.ms", "20", NULL, 0);
	}
	handle = rd_kafka_new(type, conf, text, sizeof(text));
	assert_non_null(handle);
	return handle;
}

rd_kafka_t *place_admin(const char *servers)
{
	return make(RD_KAFKA_PRODUCER, servers);
}

static void await_result(rd_kafka_queue_t *queue)
{
	rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT);

	assert_non_null(event);
	if (rd_kafka_event_error(event))
		print_error("admin: %s\n", rd_kafka_event_error_string(event));
	assert_int_equal(rd_kafka_event_error(event), 0);
	rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
}

/* The controller has made it; a broker that is busy hears of it a moment later. */
static void await_topic(rd_kafka_t *admin, const char *name)
{
	rd_kafka_topic_t *handle = rd_kafka_topic_new(admin, name, NULL);
	const struct rd_kafka_metadata *metadata;
	bool there = false;

	for (int i = 0; i < WAIT / 10 && !there; i++) {
		assert_int_equal(rd_kafka_metadata(admin, 0, handle, &metadata, WAIT), 0);
		there = metadata->topic_cnt == 1 && !metadata->topics[0].err;
		rd_kafka_metadata_destroy(metadata);
		if (!there)
			usleep(10000);
	}
	assert_true(there);
	rd_kafka_topic_destroy(handle);
}

void place_topic(rd_kafka_t *admin, const char *name, int partitions, const char *const *settings)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
	rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, partitions, 1, NULL, 0);

	for (; settings && settings[0]; settings += 2)
		rd_kafka_NewTopic_set_config(topic, settings[0], settings[1]);
	rd_kafka_CreateTopics(admin, &topic, 1, NULL, queue);
	await_result(queue);
	rd_kafka_NewTopic_destroy(topic);
	await_topic(admin, name);
}

void place_drop(rd_kafka_t *admin, const char *name)
{
	rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
	rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);

	rd_kafka_DeleteTopics(admin, &topic, 1, NULL, queue);
	await_result(queue);
	rd_kafka_DeleteTopic_destroy(topic);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static void add_structured(struct arrivals *arrivals, const rd_kafka_message_t *message)
{
	json_t *json = json_loadb(message->payload, message->len, 0, NULL);
	json_t *data = json_object_get(json, "data");
	char *body = data ? json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	assert_non_null(json);
	arrivals_add(arrivals, json_string_value(json_object_get(json, "id")), body,
		     body ? strlen(body) : 0);
	free(body);
	json_decref(json);
}

static void add(struct arrivals *arrivals, const rd_kafka_message_t *message)
{
	rd_kafka_headers_t *headers = NULL;
	const char *name;
	const void *value;
	size_t size;

	assert_int_equal(rd_kafka_message_headers(message, &headers), 0);
	if (rd_kafka_header_get_last(headers, "ce_id", &value, &size)) {
		add_structured(arrivals, message);
		return;
	}
	/* Values end with a NUL that the library adds. */
	assert_non_null(message->payload);
	arrivals_add(arrivals, value, message->payload, message->len);
	for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; i++)
		arrivals_header(arrivals, name, value);
}

static int assign_all(rd_kafka_t *consumer, const char *topic)
{
	rd_kafka_topic_t *handle = rd_kafka_topic_new(consumer, topic, NULL);
	rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
	const struct rd_kafka_metadata *metadata;
	int n;

	assert_int_equal(rd_kafka_metadata(consumer, 0, handle, &metadata, WAIT), 0);
	assert_int_equal(metadata->topic_cnt, 1);
	n = metadata->topics[0].partition_cnt;
	for (int i = 0; i < n; i++)
		rd_kafka_topic_partition_list_add(list, topic, i)->offset =
			RD_KAFKA_OFFSET_BEGINNING;
	rd_kafka_metadata_destroy(metadata);
	assert_int_equal(rd_kafka_assign(consumer, list), 0);
	rd_kafka_topic_partition_list_destroy(list);
	rd_kafka_topic_destroy(handle);
	return n;
}

void place_read(const char *servers, const char *topic, struct arrivals *arrivals)
{
	rd_kafka_t *consumer = make(RD_KAFKA_CONSUMER, servers);
	int open;

	rd_kafka_poll_set_consumer(consumer);
	open = assign_all(consumer, topic);
	while (open > 0) {
		rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, WAIT);

		assert_non_null(message);
		if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
			open--;
		else if (!message->err)
			add(arrivals, message);
		rd_kafka_message_destroy(message);
	}
	rd_kafka_destroy_flags(consumer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}
