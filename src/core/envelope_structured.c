/* SPDX-License-Identifier: Apache-2.0 */

/*
 * CloudEvents 1.0 in its JSON format, always on one line, so that a file of them is JSON lines.
 *
 * A user's header becomes an extension attribute when its name and value are legal there; the others
 * travel in one attribute, `outboxheaders`, a string that holds a JSON object. Nothing is renamed but the
 * headers of a dead letter, and nothing is lost.
 */

#include "core/envelope.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "core/json.h"
#include "core/message.h"

#include <string.h>

#define NAME_MAX_CHARS 20

/* Taken by the specification or by us, also where this event does not carry it. */
static bool is_taken(const char *name)
{
	static const char *const taken[] = { "specversion", "datacontenttype", "dataschema",
					     "data",        "database64",      "outboxheaders" };

	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		if (strcmp(taken[i], name) == 0)
			return true;
	}
	for (size_t i = 0; i < ATTRIBUTES; i++) {
		if (strcmp(attribute_names[i].cloudevents, name) == 0)
			return true;
	}
	return false;
}

static bool is_extension(const struct outbox_header *header)
{
	size_t length = strspn(header->name, "abcdefghijklmnopqrstuvwxyz0123456789");

	if (header->name[length] || length > NAME_MAX_CHARS || is_taken(header->name))
		return false;
	/* An attribute's value has no control characters; an empty one is legal. */
	return !text_has_control(header->value, strlen(header->value));
}

/* A dead letter's: "outbox-dead-reason" is outboxdeadreason here. They are internal: nothing of it goes outside. */
static void append_dead(struct outbox_encoder *encoder, const struct outbox_header *header)
{
	char name[NAME_MAX_CHARS + 1] = "outboxdead";
	size_t length = strlen(name);

	if (encoder->envelope == OUTBOX_ENVELOPE_EXTERNAL)
		return;
	for (const char *c = header->name + strlen(DEAD_LETTER_HEADER);
	     *c && length < NAME_MAX_CHARS; c++)
		name[length++] = *c;
	json_append_member(&encoder->body, ',', name, header->value);
}

static void append_headers(struct outbox_encoder *encoder, const struct outbox_message *message)
{
	struct buf *others = &encoder->scratch;

	buf_clear(others);
	for (size_t i = 0; i < message->n_headers; i++) {
		const struct outbox_header *header = &message->headers[i];

		if (strncmp(header->name, DEAD_LETTER_HEADER, strlen(DEAD_LETTER_HEADER)) == 0) {
			append_dead(encoder, header);
			continue;
		}
		if (is_extension(header)) {
			json_append_member(&encoder->body, ',', header->name, header->value);
			continue;
		}
		json_append_member(others, others->size ? ',' : '{', header->name, header->value);
	}
	if (others->size == 0 && !others->failed)
		return;
	buf_char(others, '}');
	if (others->failed)
		encoder->body.failed = true;
	else
		json_append_member(&encoder->body, ',', "outboxheaders", others->data);
}

static void append_data(struct buf *out, const struct outbox_message *message)
{
	const char *data = message->data;

	if (message->size == 0)
		return;
	if (content_type_is_json(message->content_type)) {
		buf_text(out, ",\"data\":");
		/* Strings cannot hold raw line breaks: these are between its parts. */
		if (memchr(data, '\n', message->size) || memchr(data, '\r', message->size))
			json_append_compact(out, data, message->size);
		else
			buf_append(out, data, message->size);
	} else if (message_is_text(message)) {
		buf_text(out, ",\"data\":");
		json_append_string(out, data, message->size);
	} else {
		buf_text(out, ",\"data_base64\":\"");
		base64_append(out, data, message->size);
		buf_char(out, '"');
	}
}

void envelope_structured(struct outbox_encoder *encoder, const struct outbox_message *message,
			 const char *const values[ATTRIBUTES])
{
	bool external = encoder->envelope == OUTBOX_ENVELOPE_EXTERNAL;

	buf_text(&encoder->body, "{\"specversion\":\"1.0\"");
	for (size_t i = 0; i < ATTRIBUTES; i++) {
		if (values[i] && !(external && attribute_names[i].internal))
			json_append_member(&encoder->body, ',', attribute_names[i].cloudevents,
					   values[i]);
	}
	append_headers(encoder, message);
	if (message->size > 0)
		json_append_member(&encoder->body, ',', "datacontenttype",
				   message->content_type ? message->content_type
							 : DEFAULT_CONTENT_TYPE);
	append_data(&encoder->body, message);
	buf_char(&encoder->body, '}');
}
