/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One error at a time, for the first field that is wrong, in a form that a person can act on:
 * field, value, what is wrong, what to do. Nothing is ever repaired silently.
 */

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "core/message.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

int message_text_check(const char *field, const char *text, size_t max, struct outbox_error *err)
{
	size_t length;
	char shown[64];

	if (!*text)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: is empty; give it a value or leave it unset", field);
	text_shown(shown, sizeof(shown), text);
	if (!utf8_valid(text, strlen(text)))
		return outbox_fail(err, OUTBOX_EINVAL, "%s: \"%s\" is not UTF-8; convert it", field,
				   shown);
	length = utf8_length(text);
	if (length > max)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: \"%s\" has %zu characters, at most %zu; shorten it", field,
				   shown, length, max);
	return OUTBOX_OK;
}

static int check_text(const char *field, const char *text, size_t max, struct outbox_error *err)
{
	char shown[64];
	int r = text ? message_text_check(field, text, max, err) : OUTBOX_OK;

	if (r != OUTBOX_OK || !text)
		return r;
	/* CloudEvents forbids them in attributes, and in a header they could start another one. */
	if (text_has_control(text, strlen(text)))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: \"%s\" has a control character; remove it", field,
				   text_shown(shown, sizeof(shown), text));
	return OUTBOX_OK;
}

static int check_texts(const struct outbox_message *message, struct outbox_error *err)
{
	const struct {
		const char *name, *text;
		size_t max;
	} fields[] = {
		{ "type", message->type, OUTBOX_TYPE_MAX },
		{ "key", message->key, OUTBOX_KEY_MAX },
		{ "id", message->id, OUTBOX_ID_MAX },
		{ "content_type", message->content_type, OUTBOX_TEXT_MAX },
		{ "source", message->source, OUTBOX_TEXT_MAX },
		{ "subject", message->subject, OUTBOX_TEXT_MAX },
		{ "topic", message->topic, OUTBOX_TEXT_MAX },
		{ "correlation_id", message->correlation_id, OUTBOX_TEXT_MAX },
		{ "causation_id", message->causation_id, OUTBOX_TEXT_MAX },
		{ "traceparent", message->traceparent, OUTBOX_TEXT_MAX },
	};

	if (!message->type)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "type: is missing; name what happened, such as order.placed");
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		int r = check_text(fields[i].name, fields[i].text, fields[i].max, err);

		if (r != OUTBOX_OK)
			return r;
	}
	return OUTBOX_OK;
}

static int check_content_type(const char *content_type, struct outbox_error *err)
{
	const char *slash = content_type ? strchr(content_type, '/') : NULL;
	const char *c = content_type;
	char shown[64];
	bool ok = slash && slash > content_type && slash[1] && slash[1] != ';' && slash[1] != ' ';

	for (; ok && *c; c++)
		ok = (unsigned char)*c < 0x80;
	if (ok || !content_type)
		return OUTBOX_OK;
	return outbox_fail(
		err, OUTBOX_EINVAL,
		"content_type: \"%s\" is not a media type; write one such as application/json",
		text_shown(shown, sizeof(shown), content_type));
}

static bool is_zero(const unsigned char *id, size_t size)
{
	static const unsigned char zeros[16];

	return memcmp(id, zeros, size) == 0;
}

/* version-traceid-parentid-flags; version 0 ends there, later ones may go on after another dash */
bool traceparent_parse(const char *text, struct traceparent *ret_traceparent)
{
	struct traceparent found;
	unsigned char version;

	if (!hex_bytes(text, &version, 1) || version == 0xff || text[2] != '-' ||
	    !hex_bytes(text + 3, found.trace, 16) || text[35] != '-' ||
	    !hex_bytes(text + 36, found.span, 8) || text[52] != '-' ||
	    !hex_bytes(text + 53, &found.flags, 1) || is_zero(found.trace, 16) ||
	    is_zero(found.span, 8))
		return false;
	if (text[55] && (version == 0 || text[55] != '-'))
		return false;
	*ret_traceparent = found;
	return true;
}

static int check_traceparent(const char *text, struct outbox_error *err)
{
	struct traceparent found;
	char shown[80];

	if (!text || traceparent_parse(text, &found))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL,
			   "traceparent: \"%s\" is not a W3C trace context; write "
			   "00-<32 hex digits>-<16 hex digits>-<2 hex digits>",
			   text_shown(shown, sizeof(shown), text));
}

static int check_headers(const struct outbox_message *message, struct outbox_error *err)
{
	int r = headers_check(message->headers, message->n_headers, err);

	if (r != OUTBOX_OK || !message->traceparent)
		return r;
	for (size_t i = 0; i < message->n_headers; i++) {
		if (strcasecmp(message->headers[i].name, "traceparent") == 0)
			return outbox_fail(
				err, OUTBOX_EINVAL,
				"headers: \"traceparent\" is also set as a field; keep one of them");
	}
	return OUTBOX_OK;
}

static int check_numbers(const struct outbox_message *message, struct outbox_error *err)
{
	const struct {
		const char *name;
		outbox_time value;
	} times[] = {
		{ "event_time", message->event_time },
		{ "due_at", message->due_at },
		{ "expires_at", message->expires_at },
	};
	char due[TIME_TEXT_MAX], expires[TIME_TEXT_MAX];

	if (message->kind < OUTBOX_KIND_UNSET || message->kind > OUTBOX_KIND_COMMAND)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "kind: %d is unknown; use OUTBOX_KIND_EVENT or OUTBOX_KIND_COMMAND",
				   message->kind);
	if (message->priority < -100 || message->priority > 100)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "priority: %d is out of range; use -100 to 100, 0 is normal",
				   message->priority);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (times[i].value < 0)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "%s: %" PRId64
					   " is before 1970; use microseconds since then, "
					   "or 0 for unset",
					   times[i].name, times[i].value);
	}
	if (message->event_time > TIME_LAST)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "event_time: %" PRId64
				   " is after the year 9999; use microseconds since 1970",
				   message->event_time);
	if (message->expires_at != 0 && message->expires_at <= message->due_at)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "expires_at: %s is not after due_at, %s; it could never be delivered",
				   time_format(message->expires_at, expires),
				   time_format(message->due_at, due));
	return OUTBOX_OK;
}

static int check_data(const struct outbox_message *message, size_t payload_max,
		      struct outbox_error *err)
{
	size_t max = payload_max ? payload_max : OUTBOX_PAYLOAD_MAX;
	struct outbox_error cause;

	if (!message->data && message->size > 0)
		return outbox_fail(err, OUTBOX_EINVAL, "data: NULL with a size of %zu; set both",
				   message->size);
	if (message->size > max)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "data: has %zu bytes, at most %zu; store it elsewhere and send a "
				   "reference",
				   message->size, max);
	if (message->size == 0 || !content_type_is_json(message->content_type))
		return OUTBOX_OK;
	if (json_text_check(message->data, message->size, &cause) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "data: %s; repair it or set another content_type",
			   cause.message);
}

static int validate(const struct outbox_message *message, size_t payload_max,
		    struct outbox_error *err)
{
	struct outbox_message view;
	int r;

	if (!message)
		return outbox_fail(err, OUTBOX_EINVAL, "message: is NULL; hand one in");
	if (message->struct_size != 0 && message->struct_size < MESSAGE_SIZE_V1)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "struct_size: %zu is not the size of a message; start from "
				   "OUTBOX_MESSAGE_INIT",
				   message->struct_size);
	view = message_view(message);
	r = check_texts(&view, err);
	if (r == OUTBOX_OK)
		r = check_content_type(view.content_type, err);
	if (r == OUTBOX_OK)
		r = check_traceparent(view.traceparent, err);
	if (r == OUTBOX_OK)
		r = check_headers(&view, err);
	if (r == OUTBOX_OK)
		r = check_numbers(&view, err);
	return r ? r : check_data(&view, payload_max, err);
}

int outbox_message_validate(const struct outbox_message *message, size_t payload_max,
			    struct outbox_error *err)
{
	return error_names_field(validate(message, payload_max, err), err);
}
