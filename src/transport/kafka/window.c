/* SPDX-License-Identifier: Apache-2.0 */
/* Fill a window: hand messages to the library, as many as one message set can hold. */
#include "transport/kafka/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <string.h>

/* What the format adds to a message and to a header, at most. */
#define MESSAGE_OVERHEAD 100
#define HEADER_OVERHEAD 12

static size_t wire_size(const struct outbox_message *message, const struct outbox_encoded *encoded)
{
	size_t size = MESSAGE_OVERHEAD + encoded->size + strlen(encoded->content_type) +
		      (message->key ? strlen(message->key) : 0);

	for (size_t i = 0; i < encoded->n_headers; i++)
		size += HEADER_OVERHEAD + strlen(encoded->headers[i].name) +
			strlen(encoded->headers[i].value);
	return size;
}

static rd_kafka_headers_t *make_headers(const struct outbox_encoded *encoded)
{
	rd_kafka_headers_t *headers = rd_kafka_headers_new(encoded->n_headers + 1);

	rd_kafka_header_add(headers, "content-type", -1, encoded->content_type, -1);
	for (size_t i = 0; i < encoded->n_headers; i++)
		rd_kafka_header_add(headers, encoded->headers[i].name, -1,
				    encoded->headers[i].value, -1);
	return headers;
}

static rd_kafka_resp_err_t produce(struct kafka_transport *kafka, size_t i,
				   const struct outbox_encoded *encoded)
{
	const char *key = kafka->run.batch->items[i]->message->key;
	rd_kafka_headers_t *headers = make_headers(encoded);
	rd_kafka_vu_t fields[] = {
		{ .vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = kafka->run.reports[i].topic->handle },
		{ .vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY },
		{ .vtype = RD_KAFKA_VTYPE_OPAQUE, .u.ptr = (void *)(uintptr_t)i },
		{ .vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = headers },
		{ .vtype = RD_KAFKA_VTYPE_VALUE,
		  .u.mem = { .ptr = (void *)encoded->body, .size = encoded->size } },
		{ .vtype = RD_KAFKA_VTYPE_KEY,
		  .u.mem = { .ptr = (void *)key, .size = key ? strlen(key) : 0 } },
	};
	rd_kafka_error_t *error = rd_kafka_produceva(kafka->producer, fields, ARRAY_SIZE(fields));
	rd_kafka_resp_err_t code;

	if (!error)
		return RD_KAFKA_RESP_ERR_NO_ERROR;
	code = rd_kafka_error_code(error);
	rd_kafka_error_destroy(error);
	rd_kafka_headers_destroy(headers);
	return code;
}

/* Where it is noted to which topic the message's key goes in this window; NULL: it does not matter. */
static struct kafka_key *key_slot(struct kafka_transport *kafka, size_t i)
{
	struct kafka_run *run = &kafka->run;
	const char *key = run->batch->items[i]->message->key;
	struct kafka_key *slot;
	uint64_t hash;

	if (!key || template_is_constant(&kafka->topic))
		return NULL;
	hash = text_hash(key);
	slot = &run->keys[hash & (run->n_keys - 1)];
	while (slot->window == run->window && slot->hash != hash)
		slot = slot + 1 < run->keys + run->n_keys ? slot + 1 : run->keys;
	if (slot->window != run->window)
		*slot = (struct kafka_key){ .hash = hash };
	return slot;
}

static void refuse_for_now(struct kafka_transport *kafka, size_t i, int native, const char *text)
{
	outbox_batch_verdict(kafka->run.batch, i, OUTBOX_RETRY, native, "%s", text);
	kafka_key_failed(&kafka->run, kafka->run.batch->items[i]->message);
}

/* A topic that is not there costs its own messages an attempt, and nobody else's. */
static void refuse_topic(struct kafka_transport *kafka, size_t i)
{
	const struct kafka_topic *topic = kafka->run.reports[i].topic;
	bool for_ever = kafka_classify(topic->error) == KAFKA_REFUSED;

	outbox_batch_verdict(kafka->run.batch, i, for_ever ? OUTBOX_REJECTED : OUTBOX_RETRY,
			     topic->error, "topic %s: %s", topic->name,
			     rd_kafka_err2str(topic->error));
	if (!for_ever)
		kafka_key_failed(&kafka->run, kafka->run.batch->items[i]->message);
}

/* The library did not take message i. True: the window ends here, and it is the next one's first. */
static bool not_taken(struct kafka_transport *kafka, size_t i, rd_kafka_resp_err_t code, bool empty)
{
	struct outbox_batch *batch = kafka->run.batch;

	if (kafka_classify(code) == KAFKA_FOR_NOW && !empty)
		return true;
	if (kafka_lost_place(kafka, kafka->run.reports[i].topic, code))
		return true;
	switch (kafka_classify(code)) {
	case KAFKA_REFUSED:
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, code, "%s", rd_kafka_err2str(code));
		return false;
	case KAFKA_FOR_NOW:
		kafka->run.reports[i].topic->stale = true;
		refuse_for_now(kafka, i, code, rd_kafka_err2str(code));
		return false;
	default:
		kafka_note_trouble(kafka, code);
		return true;
	}
}

/* OUTBOX_OK, EINVAL: it is REJECTED, or what may be better in a moment. */
static int encode(struct kafka_transport *kafka, size_t i, struct outbox_encoded *ret_encoded)
{
	struct outbox_batch *batch = kafka->run.batch;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = outbox_encode(kafka->broker.encoder, batch->items[i], ret_encoded, &why);

	if (r == OUTBOX_EINVAL)
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s", why.message);
	else if (r && !kafka->run.open)
		refuse_for_now(kafka, i, 0, why.message);
	return r;
}

/*
 * Hand message i over, or settle it. False: the window ends before it.
 *
 * A message that is refused for now holds its key back, so that must not happen while earlier ones of the key are
 * under way: should their message set come back to be split, they could not be sent again. The window ends first.
 */
static bool hand_over(struct kafka_transport *kafka, size_t i, size_t left)
{
	struct kafka_run *run = &kafka->run;
	struct kafka_report *report = &run->reports[i];
	struct kafka_key *slot = key_slot(kafka, i);
	struct outbox_encoded encoded;
	rd_kafka_resp_err_t code;
	int r;

	report->state = KAFKA_LEFT;
	report->bytes = 0;
	if (kafka_key_has_failed(run, run->batch->items[i]->message))
		return true;
	/* Two topics are two message sets, which may end in two ways. */
	if (slot && slot->topic && slot->topic != report->topic)
		return false;
	if (!report->topic->known) {
		refuse_topic(kafka, i);
		return true;
	}
	r = encode(kafka, i, &encoded);
	if (r)
		return r == OUTBOX_EINVAL || !run->open;
	report->bytes = wire_size(run->batch->items[i]->message, &encoded);
	if (run->open && (report->bytes > left || run->open >= kafka->window_messages))
		return false;
	code = produce(kafka, i, &encoded);
	if (code)
		return !not_taken(kafka, i, code, run->open == 0);
	if (slot) {
		slot->topic = report->topic;
		slot->window = run->window;
	}
	report->state = KAFKA_OPEN;
	run->open++;
	return true;
}

size_t kafka_window_fill(struct kafka_transport *kafka, const size_t *list, size_t n)
{
	struct kafka_run *run = &kafka->run;
	size_t most = kafka->window_bytes, bytes = 0, at;

	if (kafka->learned_bytes && kafka->learned_bytes < most)
		most = kafka->learned_bytes;
	run->window++;
	for (at = 0; at < n; at++) {
		if (!hand_over(kafka, list[at], most > bytes ? most - bytes : 0))
			break;
		if (run->reports[list[at]].state == KAFKA_OPEN)
			bytes += run->reports[list[at]].bytes;
	}
	return at ? at : 1;
}
