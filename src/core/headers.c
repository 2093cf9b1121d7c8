/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"
#include "base/text.h"
#include "core/json.h"
#include "core/message.h"

#include <string.h>
#include <strings.h>

/* Names under which envelopes write what is ours: a second one would shadow it at the consumer. */
static bool is_reserved(const char *name)
{
	return strncasecmp(name, "outbox-", 7) == 0 || strncasecmp(name, "ce-", 3) == 0 ||
	       strncasecmp(name, "ce_", 3) == 0 || strcasecmp(name, "content-type") == 0;
}

int header_name_check(const char *name, struct outbox_error *err)
{
	char shown[80];

	if (!name || !*name)
		return outbox_fail(err, OUTBOX_EINVAL, "headers: a name is empty; give it one");
	text_shown(shown, sizeof(shown), name);
	if (!text_is_token(name, strlen(name))) /* legal on every broker */
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: name \"%s\" has a character that headers cannot have; use "
				   "letters, digits and - . _",
				   shown);
	if (is_reserved(name))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: name \"%s\" is reserved (outbox-*, ce-*, ce_*, content-type); "
				   "choose another or use the message's own field",
				   shown);
	return OUTBOX_OK;
}

static int check_value(const struct outbox_header *header, struct outbox_error *err)
{
	char shown[80], value[80];

	text_shown(shown, sizeof(shown), header->name);
	if (!header->value)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: \"%s\" has no value; give it one or leave it out",
				   shown);
	text_shown(value, sizeof(value), header->value);
	if (!utf8_valid(header->value, strlen(header->value)))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: the value \"%s\" of \"%s\" is not UTF-8; convert it",
				   value, shown);
	if (strpbrk(header->value, "\r\n"))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: the value \"%s\" of \"%s\" has a line break; remove it",
				   value, shown);
	return OUTBOX_OK;
}

int headers_check(const struct outbox_header *headers, size_t n, struct outbox_error *err)
{
	size_t bytes = 0, i, j;
	char shown[80];
	int r;

	if (n > OUTBOX_HEADERS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: %zu of them, at most %d; remove some", n,
				   OUTBOX_HEADERS_MAX);
	if (n > 0 && !headers)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: NULL with a count of %zu; set both", n);
	for (i = 0; i < n; i++) {
		r = header_name_check(headers[i].name, err);
		if (r == OUTBOX_OK)
			r = check_value(&headers[i], err);
		if (r != OUTBOX_OK)
			return r;
		bytes += strlen(headers[i].name) + strlen(headers[i].value);
		for (j = 0; j < i; j++) {
			if (strcasecmp(headers[i].name, headers[j].name) == 0)
				return outbox_fail(err, OUTBOX_EINVAL,
						   "headers: \"%s\" is given twice; keep one of them",
						   text_shown(shown, sizeof(shown), headers[i].name));
		}
	}
	if (bytes > OUTBOX_HEADER_BYTES_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers: %zu bytes in all, at most %d; shorten them", bytes,
				   OUTBOX_HEADER_BYTES_MAX);
	return OUTBOX_OK;
}

void headers_append(struct buf *out, const struct outbox_header *headers, size_t n)
{
	if (n == 0)
		buf_char(out, '{');
	for (size_t i = 0; i < n; i++)
		json_append_member(out, i ? ',' : '{', headers[i].name, headers[i].value);
	buf_char(out, '}');
}

int headers_format(const struct outbox_header *headers, size_t n, struct buf *out,
		   struct outbox_error *err)
{
	int r;

	if (n == 0)
		return OUTBOX_OK;
	r = headers_check(headers, n, err);
	if (r != OUTBOX_OK)
		return r;
	headers_append(out, headers, n);
	return out->failed ? outbox_fail(err, OUTBOX_ENOMEM, "headers: out of memory") : OUTBOX_OK;
}

static int no_memory(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "headers: out of memory");
}

/* A string's text; of a number or a boolean the text as it is written. */
static int take_text(const struct json_piece *piece, struct outbox_arena *arena,
		     const char **ret_text, struct outbox_error *err)
{
	const char *problem = NULL;
	char *text;

	if (*piece->at != '"') {
		*ret_text = outbox_arena_copy(arena, piece->at, piece->size);
		return *ret_text ? OUTBOX_OK : no_memory(err);
	}
	text = outbox_arena_alloc(arena, piece->size);
	if (!text)
		return no_memory(err);
	problem = json_string_read(piece, text);
	if (problem)
		return outbox_fail(err, OUTBOX_EPROTO, "headers: %s", problem);
	*ret_text = text;
	return OUTBOX_OK;
}

static int take_headers(struct json_members members, struct outbox_arena *arena,
			struct outbox_header *headers, struct outbox_error *err)
{
	struct json_piece name, value;
	char shown[80];
	int r = OUTBOX_OK;

	for (; r == OUTBOX_OK && json_members_next(&members, &name, &value); headers++) {
		r = take_text(&name, arena, &headers->name, err);
		if (r != OUTBOX_OK)
			return r;
		/* an object, an array, null */
		if (strchr("{[n", *value.at))
			return outbox_fail(err, OUTBOX_EPROTO,
					   "headers: the value of \"%s\" is not a string",
					   text_shown(shown, sizeof(shown), headers->name));
		r = take_text(&value, arena, &headers->value, err);
	}
	return r;
}

static size_t count_members(struct json_members members)
{
	struct json_piece name, value;
	size_t n = 0;

	while (json_members_next(&members, &name, &value))
		n++;
	return n;
}

static int parse(struct json_members members, struct outbox_arena *arena,
		 struct outbox_header **ret_headers, size_t *ret_count, struct outbox_error *err)
{
	size_t n = count_members(members);
	struct outbox_header *headers = NULL;
	struct outbox_error cause;
	int r = OUTBOX_OK;

	/* Too many are not even taken: headers_check() refuses their number. */
	if (n <= OUTBOX_HEADERS_MAX) {
		headers = outbox_arena_alloc(arena, (n ? n : 1) * sizeof(*headers));
		r = headers ? take_headers(members, arena, headers, err) : no_memory(err);
	}
	if (r != OUTBOX_OK)
		return r;
	/* Rows come from anybody's INSERT: what the library would refuse is refused here too. */
	if (headers_check(headers, n, &cause) != OUTBOX_OK)
		return outbox_fail(err, OUTBOX_EPROTO, "%s", cause.message);
	*ret_headers = headers;
	*ret_count = n;
	return OUTBOX_OK;
}

int headers_parse(const char *json, struct outbox_arena *arena, struct outbox_header **ret_headers,
		  size_t *ret_count, struct outbox_error *err)
{
	size_t size = json ? strlen(json) : 0;
	struct json_members members;
	struct outbox_error cause;

	if (json && json_text_check(json, size, &cause) != OUTBOX_OK)
		return outbox_fail(err, OUTBOX_EPROTO, "headers: %s", cause.message);
	if (json && json_members_begin(&members, json, size))
		return parse(members, arena, ret_headers, ret_count, err);
	if (json && json[strspn(json, " \t\n\r")] != 'n')
		return outbox_fail(err, OUTBOX_EPROTO, "headers: not a JSON object");
	*ret_headers = NULL;
	*ret_count = 0;
	return OUTBOX_OK;
}
