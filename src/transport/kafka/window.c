/* SPDX-License-Identifier: Apache-2.0 */
/* Fill a window: hand messages to the library, as many as one message set can hold. */
#include "transport/kafka/kafka.h"

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

/* Does the key go to another topic in this window? Two message sets may end in two ways. */
static bool key_goes_elsewhere(struct kafka_transport *kafka, size_t i)
{
	struct kafka_run *run = &kafka->run;
	const char *key = run->batch->items[i]->message->key;
	struct kafka_key *slot;
	uint64_t hash;

	if (!key || template_is_constant(&kafka->topic))
		return false;
	hash = text_hash(key);
	slot = &run->keys[hash & (run->n_keys - 1)];
	while (slot->window == run->window && slot->hash != hash)
		slot = slot + 1 < run->keys + run->n_keys ? slot + 1 : run->keys;
	if (slot->window == run->window)
		return slot->topic != run->reports[i].topic;
	*slot = (struct kafka_key){ .hash = hash,
				    .topic = run->reports[i].topic,
				    .window = run->window };
	return false;
}

/* The library did not take message i. True: the window ends here, and it is the next one's first. */
static bool not_taken(struct kafka_transport *kafka, size_t i, rd_kafka_resp_err_t code, bool empty)
{
	struct outbox_batch *batch = kafka->run.batch;

	if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && !empty)
		return true;
	switch (kafka_classify(code)) {
	case KAFKA_REFUSED:
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, code, "%s", rd_kafka_err2str(code));
		return false;
	case KAFKA_FOR_NOW:
		outbox_batch_verdict(batch, i, OUTBOX_RETRY, code, "%s", rd_kafka_err2str(code));
		kafka_key_failed(&kafka->run, batch->items[i]->message);
		return false;
	default:
		kafka_note_trouble(kafka, code);
		return true;
	}
}

static bool encode(struct kafka_transport *kafka, size_t i, struct outbox_encoded *ret_encoded)
{
	struct outbox_batch *batch = kafka->run.batch;
	struct outbox_error why = OUTBOX_ERROR_INIT;
	int r = outbox_encode(kafka->encoder, batch->items[i], ret_encoded, &why);

	if (r == OUTBOX_EINVAL) {
		outbox_batch_verdict(batch, i, OUTBOX_REJECTED, 0, "%s", why.message);
	} else if (r) {
		outbox_batch_verdict(batch, i, OUTBOX_RETRY, 0, "%s", why.message);
		kafka_key_failed(&kafka->run, batch->items[i]->message);
	}
	return r == OUTBOX_OK;
}

size_t kafka_window_fill(struct kafka_transport *kafka, const size_t *list, size_t n)
{
	struct kafka_run *run = &kafka->run;
	size_t most = kafka->window_bytes, bytes = 0, at;

	if (kafka->learned_bytes && kafka->learned_bytes < most)
		most = kafka->learned_bytes;
	run->window++;
	for (at = 0; at < n; at++) {
		size_t i = list[at];
		struct kafka_report *report = &run->reports[i];
		struct outbox_encoded encoded;
		rd_kafka_resp_err_t code;

		report->state = KAFKA_LEFT;
		if (kafka_key_has_failed(run, run->batch->items[i]->message) ||
		    !encode(kafka, i, &encoded))
			continue;
		report->bytes = wire_size(run->batch->items[i]->message, &encoded);
		if (run->open &&
		    (bytes + report->bytes > most || run->open >= kafka->window_messages ||
		     key_goes_elsewhere(kafka, i)))
			break;
		if (!run->open)
			key_goes_elsewhere(kafka, i); /* noted */
		code = produce(kafka, i, &encoded);
		if (code && not_taken(kafka, i, code, run->open == 0))
			break;
		if (code)
			continue;
		report->state = KAFKA_OPEN;
		run->open++;
		bytes += report->bytes;
	}
	return at ? at : 1;
}
