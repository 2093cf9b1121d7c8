/* SPDX-License-Identifier: Apache-2.0 */

#include "core/message.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

struct outbox_message message_view(const struct outbox_message *message)
{
	struct outbox_message view = { 0 };
	size_t size = message->struct_size ? message->struct_size : MESSAGE_SIZE_V1;

	memcpy(&view, message, size < sizeof(view) ? size : sizeof(view));
	view.struct_size = sizeof(view);
	return view;
}

int outbox_message_caused_by(struct outbox_message *child, const struct outbox_message *parent,
			     struct outbox_error *err)
{
	if (!child || !parent)
		return outbox_fail(err, OUTBOX_EINVAL, "child and parent must not be NULL");
	if (!parent->id || !*parent->id)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "id: the parent has none; give it one of your own before it is "
				   "published, or take the message that a handler received");
	child->causation_id = parent->id;
	child->correlation_id = parent->correlation_id ? parent->correlation_id : parent->id;
	if (!child->traceparent)
		child->traceparent = parent->traceparent;
	return OUTBOX_OK;
}

/* The media type without parameters and the space around it. */
static size_t media_type(const char *content_type, const char **ret_start)
{
	size_t length;

	content_type += strspn(content_type, " \t");
	length = strcspn(content_type, ";");
	while (length > 0 && strchr(" \t", content_type[length - 1]))
		length--;
	*ret_start = content_type;
	return length;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
	size_t n = strlen(end);

	return length > n && strncasecmp(text + length - n, end, n) == 0;
}

bool content_type_is_json(const char *content_type)
{
	const char *type;
	size_t length = media_type(content_type ? content_type : DEFAULT_CONTENT_TYPE, &type);

	return memchr(type, '/', length) &&
	       (ends_with(type, length, "/json") || ends_with(type, length, "+json"));
}

static bool is_textual(const char *content_type)
{
	static const char *const ends[] = {
		"/json",       "+json",
		"/xml",        "+xml",
		"/yaml",       "+yaml",
		"/javascript", "/graphql",
		"/jwt",        "/sql",
		"/x-ndjson",   "/json-seq",
		"/toml",       "/x-www-form-urlencoded",
	};
	const char *type;
	size_t length, i;

	length = media_type(content_type ? content_type : DEFAULT_CONTENT_TYPE, &type);
	if (length > 5 && strncasecmp(type, "text/", 5) == 0)
		return true;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		if (ends_with(type, length, ends[i]))
			return true;
	}
	return false;
}

bool message_is_text(const struct outbox_message *message)
{
	if (!is_textual(message->content_type))
		return false;
	return message->size == 0 || (utf8_valid(message->data, message->size) &&
				      !memchr(message->data, '\0', message->size));
}
