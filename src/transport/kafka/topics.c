/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topics that messages named. A topic is looked up at the broker before the first message goes to it: so one
 * that does not exist fails at once and alone, nothing creates it by accident, and the library knows its
 * partitions when a window is filled (what it does not know yet it would send in pieces).
 */
#include "transport/kafka/driver.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define CREATE_TRIES 20
#define TOPICS_MAX 20000 /* a template that makes a topic of every message */

bool kafka_topic_name_ok(const char *name)
{
	size_t length =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

	return length > 0 && length <= KAFKA_TOPIC_MAX && !name[length] && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct kafka_topic *)a)->name, ((const struct kafka_topic *)b)->name);
}

/* NULL: no message named it. */
static struct kafka_topic *find(const struct kafka_topics *topics, const char *name)
{
	const struct kafka_topic key = { .name = (char *)(uintptr_t)name };
	struct kafka_topic **found = tfind(&key, &topics->root, by_name);

	return found ? *found : NULL;
}

static void topic_free(void *argument)
{
	struct kafka_topic *topic = argument;

	if (topic->handle)
		rd_kafka_topic_destroy(topic->handle);
	free(topic->name);
	free(topic);
}

void kafka_topics_clear(struct kafka_topics *topics)
{
	tdestroy(topics->root, topic_free);
	*topics = (struct kafka_topics){ 0 };
}

static struct kafka_topic *add(struct kafka_transport *kafka, const char *name)
{
	struct kafka_topic *topic = calloc(1, sizeof(*topic));

	if (!topic)
		return NULL;
	topic->name = strdup(name);
	topic->handle = topic->name ? rd_kafka_topic_new(kafka->producer, name, NULL) : NULL;
	if (!topic->handle || !tsearch(topic, &kafka->topics.root, by_name)) {
		topic_free(topic);
		return NULL;
	}
	kafka->topics.count++;
	return topic;
}

int kafka_topic_get(struct kafka_transport *kafka, const char *name, struct kafka_topic **ret_topic,
		    struct outbox_error *err)
{
	struct kafka_topic *topic = find(&kafka->topics, name);

	if (!topic && kafka->topics.count >= TOPICS_MAX)
		return outbox_fail(err, OUTBOX_ECONN,
				   "%s: more than %d topics are in use; connecting again",
				   kafka->broker.shown, TOPICS_MAX);
	if (!topic)
		topic = add(kafka, name);
	if (!topic)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	*ret_topic = topic;
	return OUTBOX_OK;
}

int kafka_topic_check(const struct kafka_transport *kafka, const struct kafka_topic *topic,
		      struct outbox_error *err)
{
	int status = kafka_place_status(topic->error);
	bool missing = status == OUTBOX_ECONFIG;

	if (topic->known)
		return OUTBOX_OK;
	return outbox_fail_native(err, status ? status : OUTBOX_ECONN, topic->error,
				  "%s: topic %s: %s%s", kafka->broker.shown, topic->name,
				  rd_kafka_err2str(topic->error),
				  missing ? "; create it, or set allow.auto.create.topics=true" : "");
}

static void update_topics(struct kafka_transport *kafka, const struct rd_kafka_metadata *metadata)
{
	for (int i = 0; i < metadata->topic_cnt; i++) {
		const struct rd_kafka_metadata_topic *found = &metadata->topics[i];
		struct kafka_topic *topic = find(&kafka->topics, found->topic);

		if (!topic)
			continue;
		topic->stale = false;
		topic->known = !found->err && found->partition_cnt > 0;
		topic->error = topic->known || found->err ? found->err
							  : RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
	}
}

static void look_at_topic(const void *node, VISIT visit, void *closure)
{
	struct kafka_topic *topic = *(struct kafka_topic *const *)node;

	if ((visit == preorder || visit == leaf) && topic->wanted && (!topic->known || topic->stale))
		*(struct kafka_topic **)closure = topic;
}

/* One of those that this batch names and that the broker must be asked for. */
static struct kafka_topic *unknown_topic(const struct kafka_transport *kafka)
{
	struct kafka_topic *unknown = NULL;

	twalk_r(kafka->topics.root, look_at_topic, &unknown);
	return unknown;
}

/* A broker that is there and slow answers at last; one that is gone is noticed between two tries. */
static int ask(struct kafka_transport *kafka, struct kafka_topic *topic, outbox_time deadline,
	       struct outbox_error *err)
{
	const struct rd_kafka_metadata *metadata = NULL;
	rd_kafka_resp_err_t e = RD_KAFKA_RESP_ERR__TIMED_OUT;

	for (int slice = 1000; e; slice *= 2) {
		int wait = kafka_remaining(kafka, deadline, slice);

		if (!wait)
			return outbox_fail_native(err, OUTBOX_ETIMEDOUT, e, "%s: topics: %s",
						  kafka->broker.shown, rd_kafka_err2str(e));
		/* Named alone the broker may create it; else all are asked for at once. */
		e = rd_kafka_metadata(kafka->producer, 0, kafka->auto_create ? topic->handle : NULL,
				      &metadata, wait);
		rd_kafka_poll(kafka->producer, 0);
		if (e && kafka_is_cut_off(kafka))
			return kafka_fail(kafka, err);
	}
	update_topics(kafka, metadata);
	rd_kafka_metadata_destroy(metadata);
	return OUTBOX_OK;
}

int kafka_topics_look(struct kafka_transport *kafka, outbox_time deadline, struct outbox_error *err)
{
	struct kafka_topic *topic = unknown_topic(kafka);
	int r = OUTBOX_OK;

	/* A topic that the broker is making is there after a moment. */
	for (int tries = kafka->auto_create ? CREATE_TRIES : 1; !r && topic && tries > 0; tries--) {
		r = ask(kafka, topic, deadline, err);
		topic = unknown_topic(kafka);
		if (!r && topic && tries > 1)
			rd_kafka_poll(kafka->producer, KAFKA_TICK);
	}
	return r;
}
