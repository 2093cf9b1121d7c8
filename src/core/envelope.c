/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages in the forms in which they leave. One table names every attribute in each envelope and
 * says which are internal; the external envelope is what that table allows, not what it forgets.
 *
 * Rows come from anybody's INSERT, so nothing here trusts that a message was validated: what cannot
 * be put into an envelope without harm (a line break in a header, text that is not UTF-8 in JSON) is
 * refused with EINVAL.
 */

#include "core/envelope.h"

#include "base/cleanup.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX ((size_t)1 << 30)
#define BODY_KEEP ((size_t)4 << 20) /* one huge message is not remembered for ever */
#define STRUCTURED_TYPE "application/cloudevents+json"

const struct attribute_name attribute_names[ATTRIBUTES] = {
	[ATTRIBUTE_ID] = { "id", "outbox-id", false },
	[ATTRIBUTE_SOURCE] = { "source", "outbox-source", false },
	[ATTRIBUTE_TYPE] = { "type", "outbox-type", false },
	[ATTRIBUTE_SUBJECT] = { "subject", "outbox-subject", false },
	[ATTRIBUTE_TIME] = { "time", "outbox-time", false },
	[ATTRIBUTE_KEY] = { "partitionkey", "outbox-key", false },
	[ATTRIBUTE_CORRELATION] = { "correlationid", "outbox-correlation-id", false },
	[ATTRIBUTE_CAUSATION] = { "causationid", "outbox-causation-id", true },
	[ATTRIBUTE_TRACE] = { "traceparent", "traceparent", false },
	[ATTRIBUTE_KIND] = { "kind", "outbox-kind", true },
	[ATTRIBUTE_TOPIC] = { "topic", NULL, true },
	[ATTRIBUTE_SEQUENCE] = { "sequence", NULL, true },
	[ATTRIBUTE_ATTEMPT] = { "outboxattempt", "outbox-attempt", true },
};

static outbox_time time_of(const struct outbox_item *item)
{
	return item->message->event_time ? item->message->event_time : item->created_at;
}

/* The values of this item by attribute, NULL where there is none. Borrowed from item and encoder. */
static void take_values(struct outbox_encoder *encoder, const struct outbox_item *item,
			const char *values[ATTRIBUTES])
{
	const struct outbox_message *message = item->message;
	outbox_time time = time_of(item);

	snprintf(encoder->sequence, sizeof(encoder->sequence), "%" PRId64, item->seq);
	values[ATTRIBUTE_ID] = message->id;
	values[ATTRIBUTE_SOURCE] = message->source;
	values[ATTRIBUTE_TYPE] = message->type;
	values[ATTRIBUTE_SUBJECT] = message->subject;
	values[ATTRIBUTE_TIME] = time ? time_format(time, encoder->time) : NULL;
	values[ATTRIBUTE_KEY] = message->key;
	values[ATTRIBUTE_CORRELATION] = message->correlation_id;
	values[ATTRIBUTE_CAUSATION] = message->causation_id;
	values[ATTRIBUTE_TRACE] = message->traceparent;
	values[ATTRIBUTE_KIND] = kind_name(message->kind);
	values[ATTRIBUTE_TOPIC] = message->topic;
	values[ATTRIBUTE_SEQUENCE] = encoder->sequence;
	/* An event is the same however often it is tried, so the first try of one says nothing of it. */
	values[ATTRIBUTE_ATTEMPT] = NULL;
	if (item->attempts > 0 || encoder->envelope == OUTBOX_ENVELOPE_NATIVE) {
		snprintf(encoder->attempt, sizeof(encoder->attempt), "%" PRId64,
			 (int64_t)item->attempts + 1);
		values[ATTRIBUTE_ATTEMPT] = encoder->attempt;
	}
}

static int check_value(const char *name, const char *value, bool in_header, struct outbox_error *err)
{
	size_t size = strlen(value);
	char shown[64];

	if (!utf8_valid(value, size))
		return outbox_fail(err, OUTBOX_EINVAL, "%s: \"%s\" is not UTF-8", name,
				   text_shown(shown, sizeof(shown), value));
	if (in_header && text_has_control(value, size))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: \"%s\" has a control character, which a header cannot carry",
				   name, text_shown(shown, sizeof(shown), value));
	return OUTBOX_OK;
}

/* Consumers parse it: a year of five digits (nanoseconds in the column?) would stop them. */
static int check_time(outbox_time time, struct outbox_error *err)
{
	char text[TIME_TEXT_MAX];

	if (time >= TIME_FIRST && time <= TIME_LAST)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "time: %s is not within the years 0 to 9999; event_time is in microseconds",
			   time_format(time, text));
}

/* Without a dead letter's, which the relay puts at the end and no publisher can. */
static size_t own_headers(const struct outbox_message *message)
{
	size_t n = message->n_headers;

	while (n > 0 && message->headers && message->headers[n - 1].name &&
	       strncmp(message->headers[n - 1].name, DEAD_LETTER_HEADER,
		       strlen(DEAD_LETTER_HEADER)) == 0)
		n--;
	return n;
}

static int check_message(const struct outbox_message *message, const char *const values[ATTRIBUTES],
			 bool in_headers, struct outbox_error *err)
{
	static const int required[] = { ATTRIBUTE_ID, ATTRIBUTE_SOURCE, ATTRIBUTE_TYPE };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
		if (!values[required[i]] || !*values[required[i]])
			return outbox_fail(err, OUTBOX_EINVAL, "%s: is missing",
					   attribute_names[required[i]].cloudevents);
	}
	for (size_t i = 0; i < ATTRIBUTES; i++) {
		if (!values[i])
			continue;
		r = check_value(attribute_names[i].cloudevents, values[i], in_headers, err);
		if (r != OUTBOX_OK)
			return r;
	}
	if (message->content_type) {
		r = check_value("content_type", message->content_type, true, err);
		if (r != OUTBOX_OK)
			return r;
	}
	r = headers_check(message->headers, own_headers(message), err);
	if (r != OUTBOX_OK || message->size == 0 || !content_type_is_json(message->content_type))
		return r;
	return json_text_check(message->data, message->size, err) == OUTBOX_OK
		       ? OUTBOX_OK
		       : outbox_wrap(err, "data");
}

int outbox_encode(struct outbox_encoder *encoder, const struct outbox_item *item,
		  struct outbox_encoded *ret_encoded, struct outbox_error *err)
{
	const struct outbox_message *message = item->message;
	bool in_headers = encoder->envelope == OUTBOX_ENVELOPE_CE_BINARY ||
			  encoder->envelope == OUTBOX_ENVELOPE_NATIVE;
	const char *values[ATTRIBUTES];
	struct outbox_error cause;
	int r;

	take_values(encoder, item, values);
	r = check_time(time_of(item), &cause);
	if (r == OUTBOX_OK)
		r = check_message(message, values, in_headers, &cause);
	if (r != OUTBOX_OK)
		return outbox_fail(err, r, "%s", cause.message);
	if (in_headers) {
		size_t n = encoder->envelope == OUTBOX_ENVELOPE_NATIVE
				   ? envelope_native(encoder, message, values)
				   : envelope_binary(encoder, message, values);

		*ret_encoded = (struct outbox_encoded){
			.body = message->data ? message->data : "",
			.size = message->size,
			.content_type = message->content_type ? message->content_type
							      : DEFAULT_CONTENT_TYPE,
			.headers = encoder->headers,
			.n_headers = n,
		};
		return OUTBOX_OK;
	}
	if (encoder->body.capacity > BODY_KEEP)
		buf_deinit(&encoder->body);
	buf_clear(&encoder->body);
	envelope_structured(encoder, message, values);
	if (encoder->body.failed)
		return outbox_fail(err, OUTBOX_ENOMEM,
				   "out of memory for an envelope of a %zu byte payload",
				   message->size);
	*ret_encoded = (struct outbox_encoded){
		.body = encoder->body.data,
		.size = encoder->body.size,
		.content_type = STRUCTURED_TYPE,
	};
	return OUTBOX_OK;
}

static bool make_names(struct outbox_encoder *encoder, const char *prefix)
{
	for (size_t i = 0; i <= ATTRIBUTES; i++) {
		const char *name = i < ATTRIBUTES ? attribute_names[i].cloudevents : "specversion";

		if (asprintf(&encoder->names[i], "%s%s", prefix, name) < 0) {
			encoder->names[i] = NULL;
			return false;
		}
	}
	return true;
}

int outbox_encoder_new(int envelope, const char *attribute_prefix,
		       struct outbox_encoder **ret_encoder, struct outbox_error *err)
{
	struct outbox_encoder *encoder;

	if (envelope < OUTBOX_ENVELOPE_CE_STRUCTURED || envelope > OUTBOX_ENVELOPE_EXTERNAL)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "envelope: %d is unknown; use one of enum outbox_envelope",
				   envelope);
	encoder = calloc(1, sizeof(*encoder));
	if (!encoder)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	encoder->envelope = envelope;
	encoder->body = (struct buf)BUF_INIT(BODY_MAX);
	encoder->scratch = (struct buf)BUF_INIT(OUTBOX_HEADER_BYTES_MAX * 8);
	if (!make_names(encoder, attribute_prefix ? attribute_prefix : "ce-")) {
		outbox_encoder_free(encoder);
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	*ret_encoder = encoder;
	return OUTBOX_OK;
}

struct outbox_encoder *outbox_encoder_free(struct outbox_encoder *encoder)
{
	if (!encoder)
		return NULL;
	for (size_t i = 0; i <= ATTRIBUTES; i++)
		free(encoder->names[i]);
	buf_deinit(&encoder->body);
	buf_deinit(&encoder->scratch);
	free(encoder);
	return NULL;
}
