/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything here refuses in doubt: a request that can be read in two ways is read differently by somebody. Nothing
 * is decoded twice, and a path is compared as it was sent, so that no spelling of it gets past a check.
 */
#include "http/parse.h"

#include "base/text.h"
#include "http/access_tokens.h"

#include <string.h>
#include <strings.h>

/* NULL: a broken escape, a control character, not UTF-8, or no memory. */
static char *decode_percent(const char *text, size_t size, bool plus, struct outbox_arena *arena)
{
	char *out = outbox_arena_copy(arena, text, size);

	if (!out || !percent_decode(text, size, plus, out) || text_has_control(out, strlen(out)))
		return NULL;
	return out;
}

const char *query_find(const struct query *query, const char *name)
{
	for (size_t i = 0; i < query->count; i++)
		if (strcmp(query->names[i], name) == 0)
			return query->values[i];
	return NULL;
}

static const char *add_pair(struct query *query, const char *pair, size_t size,
			    struct outbox_arena *arena)
{
	const char *equals = memchr(pair, '=', size);
	size_t length = equals ? (size_t)(equals - pair) : size;
	const char *name = decode_percent(pair, length, true, arena);
	const char *value = equals ? decode_percent(equals + 1, size - length - 1, true, arena) : "";

	if (!name || !value)
		return "the query has an invalid escape or character";
	if (!name[0])
		return "the query has a value without a name";
	if (query_find(query, name))
		return "the query has a parameter twice";
	if (query->count == QUERY_MAX)
		return "the query has too many parameters";
	query->names[query->count] = name;
	query->values[query->count++] = value;
	return NULL;
}

const char *query_parse(const char *text, struct outbox_arena *arena, struct query *ret_query)
{
	struct query query = { .count = 0 };

	while (text && *text) {
		size_t size = strcspn(text, "&");
		const char *wrong = size ? add_pair(&query, text, size, arena) : NULL;

		if (wrong)
			return wrong;
		text += size + (text[size] == '&');
	}
	*ret_query = query;
	return NULL;
}

bool path_match(const char *route, const char *path, struct outbox_arena *arena,
		const char *captured[CAPTURED_MAX])
{
	size_t n = 0;

	while (*route) {
		size_t size = strcspn(path, "/");

		if (*route != '{') {
			if (*route++ != *path++)
				return false;
			continue;
		}
		if (!size || n == CAPTURED_MAX)
			return false;
		captured[n] = decode_percent(path, size, false, arena);
		if (!captured[n++])
			return false;
		route += strcspn(route, "}");
		route += *route == '}';
		path += size;
	}
	return !*path;
}

bool target_is_plain(const char *target)
{
	if (target[0] != '/')
		return false;
	for (; *target; target++) {
		unsigned char c = (unsigned char)*target;

		if (c <= ' ' || c >= 0x7f || c == '\\' || c == '#')
			return false;
	}
	return true;
}

const char *bearer_parse(const char *header)
{
	if (strncasecmp(header, "bearer ", 7) != 0)
		return NULL;
	header += 7;
	return *header && header[strspn(header, TOKEN_CHARACTERS)] == '\0' ? header : NULL;
}

bool body_is_json(const char *header)
{
	static const char json[] = "application/json";

	if (strncasecmp(header, json, strlen(json)) != 0)
		return false;
	header += strlen(json);
	header += strspn(header, " \t");
	if (!*header)
		return true;
	if (*header++ != ';')
		return false;
	header += strspn(header, " \t");
	return strcasecmp(header, "charset=utf-8") == 0 ||
	       strcasecmp(header, "charset=\"utf-8\"") == 0;
}

bool content_length_parse(const char *header, size_t max, size_t *ret_length)
{
	size_t length = 0;

	if (!*header)
		return false;
	for (; *header; header++) {
		if (*header < '0' || *header > '9')
			return false;
		length = length * 10 + (size_t)(*header - '0');
		if (length > max)
			return false;
	}
	*ret_length = length;
	return true;
}

static bool is_one_of(const struct hosts *hosts, size_t first, const char *header)
{
	for (size_t i = first; i < hosts->count; i++)
		if (strcasecmp(hosts->items[i], header) == 0)
			return true;
	return false;
}

bool host_is_ours(const struct hosts *hosts, const char *header)
{
	return is_one_of(hosts, 0, header);
}

bool origin_is_ours(const struct hosts *hosts, bool tls, const char *header)
{
	if (strncmp(header, "https://", 8) == 0)
		return is_one_of(hosts, tls ? 0 : hosts->named, header + 8);
	return !tls && strncmp(header, "http://", 7) == 0 && is_one_of(hosts, 0, header + 7);
}
