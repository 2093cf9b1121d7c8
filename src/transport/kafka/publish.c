/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/kafka/driver.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

void kafka_run_deinit(struct kafka_run *run)
{
	free(run->reports);
	free(run->list);
	free(run->keys);
	free(run->failed);
	*run = (struct kafka_run){ 0 };
}

static int make_room(struct kafka_run *run, size_t count, struct outbox_error *err)
{
	uint64_t window = run->window;
	size_t n = 64;

	while (n < count)
		n *= 2;
	if (n > run->capacity) {
		kafka_run_deinit(run);
		run->window = window;
		run->reports = calloc(n, sizeof(*run->reports));
		run->list = calloc(n, sizeof(*run->list));
		run->keys = calloc(2 * n, sizeof(*run->keys));
		run->failed = calloc(n, sizeof(*run->failed));
		if (!run->reports || !run->list || !run->keys || !run->failed) {
			kafka_run_deinit(run);
			return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		}
		run->capacity = n;
		run->n_keys = 2 * n;
	}
	memset(run->reports, 0, count * sizeof(*run->reports));
	run->n_failed = run->open = 0;
	return OUTBOX_OK;
}

/* Find the topic of message i; left NULL without an error: it has its verdict. */
static int route(struct kafka_transport *kafka, size_t i, struct outbox_error *err)
{
	struct outbox_batch *batch = kafka->run.batch;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	char shown[100];
	const char *name;
	int r;

	buf_clear(&kafka->name);
	r = template_render(&kafka->topic, batch->items[i]->message, &kafka->name, &why);
	name = buf_str(&kafka->name);
	if (r == OUTBOX_EINVAL) {
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s", why.message);
		return OUTBOX_OK;
	}
	if (r || kafka->name.failed || !kafka_topic_name_ok(name)) {
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
				     "topic: \"%s\" is not a topic's name; Kafka takes letters, digits, "
				     "'.', '_' and '-', at most 249",
				     text_shown(shown, sizeof(shown), name));
		return OUTBOX_OK;
	}
	r = kafka_topic_get(kafka, name, &kafka->run.reports[i].topic, err);
	if (!r)
		kafka->run.reports[i].topic->wanted = true;
	return r;
}

/* Find every message's topic, and see that the topics are there. */
static int route_all(struct kafka_transport *kafka, struct outbox_error *err)
{
	struct kafka_run *run = &kafka->run;
	bool constant = template_is_constant(&kafka->topic);
	int r = OUTBOX_OK;

	for (size_t i = 0; i < run->batch->count && !r; i++) {
		if (constant && i > 0)
			run->reports[i].topic = run->reports[0].topic;
		else
			r = route(kafka, i, err);
	}
	if (!r)
		r = kafka_topics_look(kafka, run->deadline, err);
	for (size_t i = 0; i < run->batch->count; i++)
		if (run->reports[i].topic)
			run->reports[i].topic->wanted = false;
	if (!r && constant && run->batch->count)
		r = kafka_topic_check(kafka, run->reports[0].topic, err);
	return r;
}

/* The messages that name a topic, in order; whether it is there counts when their turn comes. */
static size_t make_list(struct kafka_run *run)
{
	size_t n = 0;

	for (size_t i = 0; i < run->batch->count; i++)
		if (run->reports[i].topic)
			run->list[n++] = i;
	return n;
}

/* Send what the list names, window by window. What a broker refused as a set is split first. */
static int send_list(struct kafka_transport *kafka, size_t *list, size_t n, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	for (size_t at = 0; at < n && !r;) {
		size_t taken = kafka_window_fill(kafka, list + at, n - at), back;

		r = kafka_window_await(kafka, err);
		back = kafka_window_report(kafka, list + at, taken);
		if (!r && kafka->trouble.status)
			r = kafka_fail(kafka, err);
		if (!r && back) {
			r = send_list(kafka, list + at, back / 2, err);
			if (!r)
				r = send_list(kafka, list + at + back / 2, back - back / 2, err);
		}
		at += taken;
	}
	return r;
}

int kafka_publish(struct outbox_transport *transport, struct outbox_batch *batch,
		  outbox_time deadline, struct outbox_error *err)
{
	struct kafka_transport *kafka = kafka_downcast(transport);
	int r = broker_ready(&kafka->broker, kafka->producer && !kafka->dead, deadline, err);

	if (!r)
		r = make_room(&kafka->run, batch->count, err);
	if (r)
		return r;
	kafka->run.batch = batch;
	kafka->run.deadline = deadline;
	r = route_all(kafka, err);
	if (!r)
		r = send_list(kafka, kafka->run.list, make_list(&kafka->run), err);
	kafka->run.batch = NULL;
	kafka->dead = r != OUTBOX_OK;
	return r;
}
