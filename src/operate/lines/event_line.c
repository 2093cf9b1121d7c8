/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/lines/event_line.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "core/json.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <stdio.h>
#include <string.h>

/*
 * A line of an archive is a CloudEvent as outbox_encode() writes it; this is the way back. Attributes that
 * are not ours were headers. What a payload of JSON holds is taken as it stands there, never as values.
 */
struct line {
	struct outbox_arena *arena;
	struct outbox_message message;
	struct json_piece data, base64, time;
	struct outbox_header headers[OUTBOX_HEADERS_MAX];
	size_t n_headers;
	const char *kind, *others; /* others: the headers that are no attributes, as JSON */
	int64_t sequence;          /* 0: it has none */
	bool malformed;
};

static int not_ours(struct outbox_error *err, const char *name, const char *why)
{
	char shown[80];

	return outbox_fail(err, OUTBOX_EPROTO, "\"%s\": %s", text_shown(shown, sizeof(shown), name),
			   why);
}

static int read_text(const struct line *line, const char *name, const struct json_piece *value,
		     const char **ret_text, struct outbox_error *err)
{
	char *text = outbox_arena_alloc(line->arena, value->size + 1);
	const char *why = "must be a string";

	if (!text)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (value->at[0] == '"')
		why = json_string_read(value, text);
	if (why)
		return not_ours(err, name, why);
	*ret_text = text;
	return OUTBOX_OK;
}

static bool piece_is(const struct json_piece *piece, const char *text)
{
	return piece->size == strlen(text) && memcmp(piece->at, text, piece->size) == 0;
}

/* A number, which is in quotes or not; 0: it is not one of ours. */
static int64_t read_number(const struct json_piece *value, bool quoted, int64_t min, int64_t max)
{
	int64_t number;
	char text[24];

	if ((value->at[0] == '"') != quoted || value->size >= sizeof(text))
		return 0;
	snprintf(text, sizeof(text), "%.*s", (int)value->size - 2 * quoted, value->at + quoted);
	return number_parse("", text, min, max, &number, NULL) ? 0 : number;
}

/* The members that are no plain texts of the message. False: it is none of these. */
static bool special(struct line *line, const char *name, const struct json_piece *value)
{
	if (strcmp(name, "data") == 0)
		line->data = *value;
	else if (strcmp(name, "data_base64") == 0)
		line->base64 = *value;
	else if (strcmp(name, "outboxpublished") == 0 && value->at[0] != '"')
		line->message.published = piece_is(value, "true");
	else if (strcmp(name, "outboxpriority") == 0 && value->at[0] != '"')
		line->message.priority = (int)read_number(value, false, -100, 100);
	else if (strcmp(name, "outboxmalformed") == 0)
		line->malformed = true;
	else if (strcmp(name, "sequence") == 0)
		line->sequence = read_number(value, true, 1, INT64_MAX);
	else /* of one delivery, not of the message */
		return strcmp(name, "specversion") == 0 || strcmp(name, "outboxattempt") == 0 ||
		       strncmp(name, "outboxdead", strlen("outboxdead")) == 0;
	return true;
}

/* An attribute that was a header. Other producers' may be numbers and booleans, which CloudEvents allows. */
static int take_header(struct line *line, const char *name, const struct json_piece *value,
		       struct outbox_error *err)
{
	struct outbox_header *header = &line->headers[line->n_headers];
	bool simple = value->at[0] != '"' && value->at[0] != '{' && value->at[0] != '[';
	int r = OUTBOX_OK;

	if (line->n_headers == OUTBOX_HEADERS_MAX)
		return not_ours(err, name, "more attributes than a message has headers");
	header->name = outbox_arena_text(line->arena, name);
	if (simple)
		header->value = outbox_arena_copy(line->arena, value->at, value->size);
	else
		r = read_text(line, name, value, &header->value, err);
	line->n_headers++;
	if (r == OUTBOX_OK && (!header->name || !header->value))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return r;
}

static int take_member(struct line *line, const char *name, const struct json_piece *value,
		       struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	const char *time = NULL;
	const struct {
		const char *name, **text;
	} texts[] = {
		{ "id", &m->id },
		{ "source", &m->source },
		{ "type", &m->type },
		{ "subject", &m->subject },
		{ "time", &time },
		{ "partitionkey", &m->key },
		{ "correlationid", &m->correlation_id },
		{ "causationid", &m->causation_id },
		{ "traceparent", &m->traceparent },
		{ "kind", &line->kind },
		{ "topic", &m->topic },
		{ "datacontenttype", &m->content_type },
		{ "outboxheaders", &line->others },
	};
	int r;

	if (piece_is(value, "null") || special(line, name, value))
		return OUTBOX_OK;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(texts[i].name, name) != 0)
			continue;
		r = read_text(line, name, value, texts[i].text, err);
		if (r == OUTBOX_OK && time && time_parse(time, 0, &m->event_time, NULL))
			return not_ours(err, name, "is not a time");
		return r;
	}
	return take_header(line, name, value, err);
}

static int take_data(struct line *line, struct outbox_error *err)
{
	struct outbox_message *m = &line->message;
	const char *text = NULL;
	void *bytes;
	int r;

	if (line->base64.at) {
		r = read_text(line, "data_base64", &line->base64, &text, err);
		bytes = r ? NULL : outbox_arena_alloc(line->arena, strlen(text) + 1);
		if (r || !bytes)
			return r ? r : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		m->data = bytes;
		return base64_decode(text, strlen(text), bytes, &m->size)
			       ? OUTBOX_OK
			       : not_ours(err, "data_base64", "is not base64");
	}
	if (!line->data.at)
		return OUTBOX_OK;
	if (!m->content_type || content_type_is_json(m->content_type)) {
		m->data = outbox_arena_copy(line->arena, line->data.at, line->data.size);
		m->size = line->data.size;
		return m->data ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	r = read_text(line, "data", &line->data, &text, err);
	m->data = text;
	m->size = text ? strlen(text) : 0;
	return r;
}

static int take_headers(struct line *line, struct outbox_error *err)
{
	struct outbox_header *others = NULL, *all;
	size_t n = 0;
	int r = line->others ? headers_parse(line->others, line->arena, &others, &n, err)
			     : OUTBOX_OK;

	if (r)
		return outbox_wrap(err, "outboxheaders");
	if (n + line->n_headers == 0)
		return OUTBOX_OK;
	all = outbox_arena_alloc(line->arena, (n + line->n_headers) * sizeof(*all));
	if (!all)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	memcpy(all, line->headers, line->n_headers * sizeof(*all));
	if (n)
		memcpy(all + line->n_headers, others, n * sizeof(*all));
	line->message.headers = all;
	line->message.n_headers = n + line->n_headers;
	return OUTBOX_OK;
}

int event_line_read(const char *text, size_t size, struct outbox_arena *arena,
		    struct outbox_claimed *ret_found, bool *ret_malformed, struct outbox_error *err)
{
	struct line line = { .arena = arena, .message = OUTBOX_MESSAGE_INIT };
	struct json_members members;
	struct json_piece name, value;
	char name_text[600];
	int r = json_text_check(text, size, err);

	if (r)
		return outbox_fail(err, OUTBOX_EPROTO, "not a JSON line");
	if (!json_members_begin(&members, text, size))
		return outbox_fail(err, OUTBOX_EPROTO, "not a JSON object");
	while (r == OUTBOX_OK && json_members_next(&members, &name, &value)) {
		if (name.size >= sizeof(name_text) || json_string_read(&name, name_text))
			return outbox_fail(err, OUTBOX_EPROTO, "a name that no attribute can have");
		r = take_member(&line, name_text, &value, err);
	}
	if (r == OUTBOX_OK)
		r = take_data(&line, err);
	if (r == OUTBOX_OK)
		r = take_headers(&line, err);
	if (r)
		return r;
	if (!line.message.id || !line.message.type)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "no id or no type: not a message that outbox archived");
	line.message.kind = line.kind ? kind_parse(line.kind, 0) : OUTBOX_KIND_EVENT;
	if (!line.message.kind)
		return not_ours(err, "kind", "is neither event nor command");
	ret_found->message = line.message;
	ret_found->seq = line.sequence;
	*ret_malformed = line.malformed;
	return OUTBOX_OK;
}
