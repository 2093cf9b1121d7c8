/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a message is called in a line: our own names are those of `outbox show --json` and of the table's columns, so
 * that what was shown can be published. A payload that is JSON is taken as it stands there, never as values: no number
 * loses a digit.
 */
#include "operate/lines/message_line.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/text.h"
#include "core/json.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "operate/lines/event_line.h"

#include <stdio.h>
#include <string.h>

const char *const line_format_names[] = { NULL, "json", "cloudevents", "archive", NULL };

#define NAME_MAX_BYTES 600

struct line {
	struct outbox_arena *arena;
	struct outbox_message message;
	struct json_piece payload, base64;
	uint32_t seen; /* members, by their place in the table */
};

static int wrong(struct outbox_error *err, const char *name, const char *why)
{
	return outbox_fail(err, OUTBOX_EINVAL, "%s: %s", name, why);
}

static int no_memory(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static bool piece_is(const struct json_piece *piece, const char *text)
{
	return piece->size == strlen(text) && memcmp(piece->at, text, piece->size) == 0;
}

/* The value, cut, between what is said of it. */
static int wrong_value(struct outbox_error *err, const char *name, const struct json_piece *value,
		       const char *why)
{
	const char *mark = value->at[0] == '"' ? "\"" : "";
	size_t quote = strlen(mark), size = value->size - 2 * quote;
	char text[100], shown[120];

	snprintf(text, sizeof(text), "%.*s", (int)(size < 80 ? size : 80), value->at + quote);
	return outbox_fail(err, OUTBOX_EINVAL, "%s: %s%s%s %s", name, mark,
			   text_shown(shown, sizeof(shown), text), mark, why);
}

/* ---- values, each by its type --------------------------------------------------------------- */

static int take_text(struct line *line, const char *name, const struct json_piece *value,
		     const char **ret_text, struct outbox_error *err)
{
	const char *why;
	char *text;

	if (value->at[0] != '"')
		return wrong_value(err, name, value, "is not a string; put it in quotes");
	text = outbox_arena_alloc(line->arena, value->size + 1);
	if (!text)
		return no_memory(err);
	why = json_string_read(value, text);
	if (why)
		return outbox_fail(err, OUTBOX_EINVAL, "%s: has %s; remove it", name, why);
	*ret_text = text;
	return OUTBOX_OK;
}

static int take_time(struct line *line, const char *name, const struct json_piece *value,
		     outbox_time *ret_time, struct outbox_error *err)
{
	const char *text;
	int r = take_text(line, name, value, &text, err);

	if (r)
		return r;
	/* one that counts from now would be another one each time the file is read */
	if (text[0] == '+' || time_parse(text, 0, ret_time, NULL))
		return wrong_value(err, name, value,
				   "is not a time; write one such as \"2026-11-15T18:00:00Z\"");
	return OUTBOX_OK;
}

static int take_kind(struct line *line, const char *name, const struct json_piece *value,
		     struct outbox_error *err)
{
	const char *text;
	int r = take_text(line, name, value, &text, err);

	if (r)
		return r;
	line->message.kind = kind_parse(text, 0);
	return line->message.kind ? OUTBOX_OK
				  : wrong_value(err, name, value,
						"is not a kind; write \"event\" or \"command\"");
}

static int take_published(struct line *line, const char *name, const struct json_piece *value,
			  struct outbox_error *err)
{
	line->message.published = piece_is(value, "true");
	return line->message.published || piece_is(value, "false")
		       ? OUTBOX_OK
		       : wrong_value(err, name, value, "is not a boolean; write true or false");
}

static int take_priority(struct line *line, const char *name, const struct json_piece *value,
			 struct outbox_error *err)
{
	char text[24];
	int64_t number = 0;

	snprintf(text, sizeof(text), "%.*s", (int)(value->size < 20 ? value->size : 20), value->at);
	if (number_parse("", text, -100, 100, &number, NULL))
		return wrong_value(err, name, value, "is not a whole number from -100 to 100");
	line->message.priority = (int)number;
	return OUTBOX_OK;
}

static int take_headers(struct line *line, const char *name, const struct json_piece *value,
			struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	struct outbox_header *headers = NULL;
	char *json = outbox_arena_copy(line->arena, value->at, value->size);
	int r;

	if (!json)
		return no_memory(err);
	if (json[0] != '{')
		return wrong_value(err, name, value, "is not an object; write {\"name\":\"value\"}");
	r = headers_parse(json, line->arena, &headers, &m->n_headers, err);
	m->headers = headers;
	return r == OUTBOX_ENOMEM || !r ? r : wrong(err, name, error_behind(err, "headers"));
}

/* What `outbox show --json` has in its place when it was not asked for. */
static int refuse_left_out(const char *name, struct outbox_error *err)
{
	return wrong(
		err, name,
		"the payload and the headers are masked; write the file with outbox show --payload");
}

/* ---- members --------------------------------------------------------------------------------- */

enum member_type {
	MEMBER_TEXT,
	MEMBER_TIME,
	MEMBER_KIND,
	MEMBER_PUBLISHED,
	MEMBER_PRIORITY,
	MEMBER_HEADERS,
	MEMBER_PAYLOAD,
	MEMBER_BASE64,
	MEMBER_LEFT_OUT,
	MEMBER_SHOWN /* the store's: nothing that can be published */
};

#define MEMBER(name_, type_)                                                   \
	{                                                                      \
#name_, MEMBER_##type_, offsetof(struct outbox_message, name_) \
	}
static const struct member {
	const char *name;
	enum member_type type;
	size_t offset; /* of a text or a time in the message */
} members[] = {
	MEMBER(id, TEXT),
	MEMBER(type, TEXT),
	MEMBER(key, TEXT),
	MEMBER(source, TEXT),
	MEMBER(subject, TEXT),
	MEMBER(topic, TEXT),
	MEMBER(content_type, TEXT),
	MEMBER(correlation_id, TEXT),
	MEMBER(causation_id, TEXT),
	MEMBER(traceparent, TEXT),
	MEMBER(event_time, TIME),
	MEMBER(due_at, TIME),
	MEMBER(expires_at, TIME),
	MEMBER(kind, KIND),
	MEMBER(published, PUBLISHED),
	MEMBER(priority, PRIORITY),
	MEMBER(headers, HEADERS),
	{ "payload", MEMBER_PAYLOAD, 0 },
	{ "payload_base64", MEMBER_BASE64, 0 },
	{ "payload_left_out", MEMBER_LEFT_OUT, 0 },
	{ "seq", MEMBER_SHOWN, 0 },
	{ "created_at", MEMBER_SHOWN, 0 },
	{ "malformed", MEMBER_SHOWN, 0 },
	{ "size", MEMBER_SHOWN, 0 },
};

static int unknown(const char *name, struct outbox_error *err)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (members[i].type < MEMBER_LEFT_OUT)
			nearest_offer(&nearest, members[i].name);
	return nearest_fail(&nearest, OUTBOX_EINVAL, "field", err);
}

static int take_value(struct line *line, const struct member *member,
		      const struct json_piece *value, struct outbox_error *err)
{
	char *at = (char *)&line->message + member->offset;

	switch (member->type) {
	case MEMBER_TEXT:
		return take_text(line, member->name, value, (const char **)at, err);
	case MEMBER_TIME:
		return take_time(line, member->name, value, (outbox_time *)at, err);
	case MEMBER_KIND:
		return take_kind(line, member->name, value, err);
	case MEMBER_PUBLISHED:
		return take_published(line, member->name, value, err);
	case MEMBER_PRIORITY:
		return take_priority(line, member->name, value, err);
	case MEMBER_HEADERS:
		return take_headers(line, member->name, value, err);
	case MEMBER_PAYLOAD:
		line->payload = *value;
		return OUTBOX_OK;
	case MEMBER_BASE64:
		line->base64 = *value;
		return OUTBOX_OK;
	case MEMBER_LEFT_OUT:
		return refuse_left_out(member->name, err);
	case MEMBER_SHOWN:
		return OUTBOX_OK;
	}
	return OUTBOX_OK;
}

static int take_member(struct line *line, const char *name, const struct json_piece *value,
		       struct outbox_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		if (strcmp(members[i].name, name) != 0)
			continue;
		if (line->seen & 1u << i)
			return wrong(err, name, "is there twice; keep one of them");
		line->seen |= 1u << i;
		/* null is what was not given, but a payload may be JSON's null */
		if (piece_is(value, "null") && members[i].type != MEMBER_PAYLOAD)
			return OUTBOX_OK;
		return take_value(line, &members[i], value, err);
	}
	return unknown(name, err);
}

static int take_bytes(struct line *line, struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	const char *text = "";
	void *bytes;
	int r = take_text(line, "payload_base64", &line->base64, &text, err);

	if (r)
		return r;
	bytes = outbox_arena_alloc(line->arena, strlen(text) + 1);
	if (!bytes)
		return no_memory(err);
	if (!base64_decode(text, strlen(text), bytes, &m->size))
		return wrong(err, "payload_base64", "is not base64; encode it with padding");
	m->data = bytes;
	if (!m->content_type)
		m->content_type = DEFAULT_BYTES_TYPE;
	return OUTBOX_OK;
}

/* A string is the payload's text, as it is shown; anything else is JSON and the payload itself. */
static int take_payload(struct line *line, struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	const char *text = NULL;
	int r;

	if (line->payload.at && line->base64.at)
		return wrong(err, "payload_base64", "there is a payload as well; keep one of them");
	if (line->base64.at)
		return take_bytes(line, err);
	if (!line->payload.at)
		return wrong(err, "payload", "is missing; give it, or payload_base64 for bytes");
	if (line->payload.at[0] == '"') {
		r = take_text(line, "payload", &line->payload, &text, err);
		m->data = text;
		m->size = text ? strlen(text) : 0;
		return r;
	}
	m->data = outbox_arena_copy(line->arena, line->payload.at, line->payload.size);
	m->size = line->payload.size;
	return m->data ? OUTBOX_OK : no_memory(err);
}

static int read_json(const char *text, size_t size, struct outbox_arena *arena,
		     struct outbox_message *ret_message, struct outbox_error *err)
{
	struct line line = { .arena = arena, .message = OUTBOX_MESSAGE_INIT };
	struct json_members at;
	struct json_piece name, value;
	char name_text[NAME_MAX_BYTES];
	int r = OUTBOX_OK;

	if (!json_members_begin(&at, text, size))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "not a JSON object; write {\"type\":..., \"payload\":...}");
	while (r == OUTBOX_OK && json_members_next(&at, &name, &value)) {
		if (name.size >= sizeof(name_text) || json_string_read(&name, name_text))
			return outbox_fail(err, OUTBOX_EINVAL, "has a name that no field has");
		r = take_member(&line, name_text, &value, err);
	}
	if (r == OUTBOX_OK)
		r = take_payload(&line, err);
	if (r == OUTBOX_OK)
		*ret_message = line.message;
	return r;
}

static int read_event(const char *text, size_t size, struct outbox_arena *arena,
		      struct outbox_message *ret_message, struct outbox_error *err)
{
	struct outbox_claimed found = { 0 };
	bool malformed = false;
	int r = event_line_read(text, size, arena, &found, &malformed, err);

	if (r == OUTBOX_EPROTO)
		return outbox_fail(err, OUTBOX_EINVAL, "%s", err->message);
	if (r)
		return r;
	if (malformed)
		return wrong(
			err, "outboxmalformed",
			"it made no sense when it was archived and was never delivered; leave it out");
	*ret_message = found.message;
	return OUTBOX_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static bool is_event(const char *text, size_t size)
{
	struct json_members at;
	struct json_piece name, value;

	if (!json_members_begin(&at, text, size))
		return false;
	while (json_members_next(&at, &name, &value))
		if (piece_is(&name, "\"specversion\""))
			return true;
	return false;
}

/* The message's own checks name the message's fields; the line may call them otherwise. */
static int check(const struct outbox_message *message, bool event, struct outbox_error *err)
{
	static const struct {
		const char *field, *attribute;
	} names[] = {
		{ "key", "partitionkey" },         { "content_type", "datacontenttype" },
		{ "event_time", "time" },          { "correlation_id", "correlationid" },
		{ "causation_id", "causationid" },
	};
	struct outbox_error found = OUTBOX_ERROR_INIT;
	char field[32];
	int r = outbox_message_validate(message, 0, &found);

	if (r == OUTBOX_OK && !event && !message->size &&
	    (!message->content_type || content_type_is_json(message->content_type)))
		return wrong(err, "payload", "is empty, which is not JSON; set content_type");
	if (r == OUTBOX_OK)
		return OUTBOX_OK;
	error_field(&found, field, sizeof(field));
	for (size_t i = 0; event && i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].field, field) == 0)
			return wrong(err, names[i].attribute, error_rest(&found));
	if (!event && strcmp(field, "data") == 0)
		return wrong(err, "payload", error_rest(&found));
	return outbox_fail(err, r, "%s", found.message);
}

int message_line_read(const char *line, size_t size, int format, struct outbox_arena *arena,
		      struct outbox_message *ret_message, struct outbox_error *err)
{
	struct outbox_message message;
	bool event;
	int r = json_line_check(line, size, err);

	if (r)
		return r;
	event = is_event(line, size);
	if (!event && format > LINE_JSON)
		return wrong(err, "specversion", "is missing: this is not a CloudEvent");
	event = event && format != LINE_JSON;
	r = (event ? read_event : read_json)(line, size, arena, &message, err);
	if (r == OUTBOX_OK)
		r = check(&message, event, err);
	if (r == OUTBOX_OK)
		*ret_message = message;
	return r;
}
