/* SPDX-License-Identifier: Apache-2.0 */
/* For `outbox doctor`: what an acknowledgement means here, from the topic's (or the brokers') settings. */
#include "transport/kafka/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct durability {
	int replicas; /* the least of all partitions; 0: not known */
	int in_sync;  /* min.insync.replicas; 0: not known */
	bool unclean; /* a replica that lags behind may become leader */
};

static void note_entry(const rd_kafka_ConfigEntry_t *entry, struct durability *d)
{
	const char *name = rd_kafka_ConfigEntry_name(entry),
		   *value = rd_kafka_ConfigEntry_value(entry);

	if (!value)
		return;
	if (strcmp(name, "min.insync.replicas") == 0)
		d->in_sync = (int)strtol(value, NULL, 10);
	else if (strcmp(name, "unclean.leader.election.enable") == 0)
		d->unclean = strcmp(value, "true") == 0;
	else if (strcmp(name, "default.replication.factor") == 0)
		d->replicas = (int)strtol(value, NULL, 10);
}

static void note_configs(const rd_kafka_event_t *event, struct durability *d)
{
	const rd_kafka_ConfigResource_t **resources;
	const rd_kafka_ConfigEntry_t **entries;
	size_t n = 0, n_entries = 0;

	resources = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(
								      (rd_kafka_event_t *)event),
							      &n);
	for (size_t i = 0; i < n; i++) {
		if (rd_kafka_ConfigResource_error(resources[i]))
			continue;
		entries = rd_kafka_ConfigResource_configs(resources[i], &n_entries);
		for (size_t k = 0; k < n_entries; k++)
			note_entry(entries[k], d);
	}
}

/* Settings that we may not read stay unknown. */
static void read_settings(struct kafka_transport *kafka, rd_kafka_ResourceType_t type,
			  const char *name, outbox_time deadline, struct durability *d)
{
	rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(type, name);
	rd_kafka_queue_t *queue = rd_kafka_queue_new(kafka->producer);
	rd_kafka_event_t *event;

	rd_kafka_DescribeConfigs(kafka->producer, &resource, 1, NULL, queue);
	event = rd_kafka_queue_poll(queue, kafka_remaining(kafka, deadline, INT32_MAX));
	if (event && !rd_kafka_event_error(event) && rd_kafka_event_DescribeConfigs_result(event))
		note_configs(event, d);
	if (event)
		rd_kafka_event_destroy(event);
	rd_kafka_queue_destroy(queue);
	rd_kafka_ConfigResource_destroy(resource);
}

static void note_replicas(const struct rd_kafka_metadata_topic *topic, struct durability *d)
{
	for (int i = 0; i < topic->partition_cnt; i++)
		if (!d->replicas || topic->partitions[i].replica_cnt < d->replicas)
			d->replicas = topic->partitions[i].replica_cnt;
}

static int describe_durability(const struct durability *d, const char *what, char *text, size_t size)
{
	if (!d->replicas || !d->in_sync) {
		snprintf(text, size,
			 "acknowledged by all replicas in sync (acks=all) of %s; how many that are could "
			 "not be read: let the relay's user describe its configuration",
			 what);
		return 1;
	}
	if (d->replicas < 2) {
		snprintf(text, size,
			 "acknowledged by the one replica of %s: it survives the broker's process, not the "
			 "loss of the machine; use replication factor 3 and min.insync.replicas=2",
			 what);
		return 2;
	}
	if (d->in_sync < 2 || d->unclean) {
		snprintf(text, size,
			 "%s has %d replicas, but %s: an acknowledged message can be lost with "
			 "one broker; set %s",
			 what, d->replicas,
			 d->unclean ? "one that lags behind may become leader"
				    : "one of them may acknowledge alone",
			 d->unclean ? "unclean.leader.election.enable=false"
				    : "min.insync.replicas=2");
		return 2;
	}
	snprintf(text, size, "acknowledged when at least %d of the %d replicas of %s have it",
		 d->in_sync, d->replicas, what);
	return 0;
}

int kafka_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	struct kafka_transport *kafka = kafka_downcast(transport);
	bool constant = template_is_constant(&kafka->topic);
	const struct rd_kafka_metadata *metadata = NULL;
	struct kafka_topic *topic = NULL;
	struct durability d = { 0 };
	char what[KAFKA_TOPIC_MAX + 40] = "new topics", broker[16];

	if (!kafka->producer ||
	    (constant && kafka_topic_get(kafka, kafka->topic_text, &topic, NULL)) ||
	    rd_kafka_metadata(kafka->producer, 0, NULL, &metadata,
			      kafka_remaining(kafka, deadline, INT32_MAX))) {
		snprintf(text, size, "%s does not answer", kafka->broker.shown);
		return 3;
	}
	if (topic) {
		snprintf(what, sizeof(what), "topic %s", topic->name);
		for (int i = 0; i < metadata->topic_cnt; i++)
			if (strcmp(metadata->topics[i].topic, topic->name) == 0)
				note_replicas(&metadata->topics[i], &d);
		read_settings(kafka, RD_KAFKA_RESOURCE_TOPIC, topic->name, deadline, &d);
	} else if (metadata->broker_cnt > 0) {
		snprintf(broker, sizeof(broker), "%d", (int)metadata->brokers[0].id);
		read_settings(kafka, RD_KAFKA_RESOURCE_BROKER, broker, deadline, &d);
	}
	rd_kafka_metadata_destroy(metadata);
	return describe_durability(&d, what, text, size);
}
