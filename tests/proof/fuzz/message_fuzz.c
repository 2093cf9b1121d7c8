/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Validation. A message that passes keeps the published limits, and with an id and a source it goes
 * into every envelope: nobody learns only from the relay that a message was no good.
 */

#include "base/cleanup.h"
#include "core/message.h"
#include "fuzz_message.h"

#include <outbox/transport.h>

#include <string.h>

static void check_text(const char *text, size_t max)
{
	size_t chars = 0;

	if (!text)
		return;
	CHECK(*text);
	CHECK(reference_utf8_valid(text, strlen(text)));
	for (const char *c = text; *c; c++) {
		CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
		chars += ((unsigned char)*c & 0xc0) != 0x80;
	}
	CHECK(chars <= max);
}

static void check_valid(const struct outbox_message *m)
{
	CHECK(m->type);
	check_text(m->type, OUTBOX_TYPE_MAX);
	check_text(m->key, OUTBOX_KEY_MAX);
	check_text(m->id, OUTBOX_ID_MAX);
	check_text(m->content_type, OUTBOX_TEXT_MAX);
	check_text(m->source, OUTBOX_TEXT_MAX);
	check_text(m->subject, OUTBOX_TEXT_MAX);
	check_text(m->topic, OUTBOX_TEXT_MAX);
	check_text(m->correlation_id, OUTBOX_TEXT_MAX);
	check_text(m->causation_id, OUTBOX_TEXT_MAX);
	check_text(m->traceparent, OUTBOX_TEXT_MAX);
	CHECK(!m->traceparent || (strlen(m->traceparent) >= 55 && m->traceparent[35] == '-'));
	CHECK(!m->content_type || strchr(m->content_type, '/'));
	CHECK(m->n_headers <= OUTBOX_HEADERS_MAX);
	CHECK(m->kind >= OUTBOX_KIND_UNSET && m->kind <= OUTBOX_KIND_COMMAND);
	CHECK(m->priority >= -100 && m->priority <= 100);
	CHECK(m->event_time >= 0 && m->due_at >= 0 && m->expires_at >= 0);
	CHECK(!m->expires_at || m->expires_at > m->due_at);
	if (m->size && (!m->content_type || strcmp(m->content_type, "application/json") == 0))
		CHECK(json_text_check(m->data, m->size, NULL) == OUTBOX_OK);
}

static void check_encodes(const struct outbox_message *valid)
{
	struct outbox_message message = *valid;
	struct outbox_item item = { .message = &message, .seq = 1, .created_at = 1 };
	int envelope;

	/* As a store fills them in. */
	message.id = message.id ? message.id : "0190163d-8694-739b-aea5-966c26f8ad90";
	message.source = message.source ? message.source : "/outbox/app";
	for (envelope = OUTBOX_ENVELOPE_CE_STRUCTURED; envelope <= OUTBOX_ENVELOPE_EXTERNAL;
	     envelope++) {
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_encoder *encoder;
		struct outbox_encoded encoded;

		CHECK(outbox_encoder_new(envelope, NULL, &encoder, &err) == OUTBOX_OK);
		CHECK(outbox_encode(encoder, &item, &encoded, &err) == OUTBOX_OK);
		outbox_encoder_free(encoder);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	size_t payload_max = input_byte(&in);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct fuzz_message fuzz;
	const struct outbox_message *message = &fuzz.message;
	int r;

	input_message(&in, &fuzz);
	r = outbox_message_validate(message, payload_max, &err);
	check_error(r, &err);
	CHECK(r == OUTBOX_OK || r == OUTBOX_EINVAL);
	CHECK(outbox_message_validate(message, payload_max, NULL) == r);
	if (r == OUTBOX_OK) {
		CHECK(payload_max == 0 || message->size <= payload_max);
		check_valid(message);
		check_encodes(message);
	}
	fuzz.message.struct_size = 0; /* the first version's size, today the same */
	CHECK(outbox_message_validate(message, payload_max, NULL) == r);
	fuzz.message.struct_size = 1 + payload_max % (MESSAGE_SIZE_V1 - 1);
	CHECK(outbox_message_validate(message, payload_max, NULL) == OUTBOX_EINVAL);
	input_end(&in);
	return 0;
}
