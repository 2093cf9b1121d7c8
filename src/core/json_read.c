/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The members of an object, and the texts of strings, without a tree: all on text that
 * json_text_check() has accepted, so nothing here looks for mistakes a second time. Nothing is
 * allocated, so nothing can be left out for want of memory.
 */

#include "core/json.h"

#include "base/text.h"

#include <string.h>

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && strchr(" \t\n\r", *at))
		at++;
	return at;
}

/* From the opening quote to behind the closing one. */
static const char *skip_string(const char *at)
{
	for (at++; *at != '"'; at++)
		at += *at == '\\';
	return at + 1;
}

static const char *skip_value(const char *at, const char *end)
{
	size_t depth = 0;

	do {
		if (*at == '"') {
			at = skip_string(at);
			continue;
		}
		if (*at == '{' || *at == '[')
			depth++;
		else if (*at == '}' || *at == ']')
			depth--;
		at++;
		/* A number or a word ends where something else begins. */
	} while (at < end && (depth > 0 || !strchr(",}] \t\n\r", *at)));
	return at;
}

static bool begin(struct json_members *members, const char *json, size_t size, char bracket)
{
	*members = (struct json_members){ skip_space(json, json + size), json + size };
	if (members->at == members->end || *members->at != bracket)
		return false;
	members->at++;
	return true;
}

bool json_members_begin(struct json_members *members, const char *json, size_t size)
{
	return begin(members, json, size, '{');
}

bool json_elements_begin(struct json_members *elements, const char *json, size_t size)
{
	return begin(elements, json, size, '[');
}

bool json_elements_next(struct json_members *elements, struct json_piece *ret_value)
{
	const char *end = elements->end, *at = skip_space(elements->at, end);

	if (*at == ',')
		at = skip_space(at + 1, end);
	if (*at == ']')
		return false;
	ret_value->at = at;
	at = skip_value(at, end);
	ret_value->size = (size_t)(at - ret_value->at);
	elements->at = at;
	return true;
}

bool json_members_next(struct json_members *members, struct json_piece *ret_name,
		       struct json_piece *ret_value)
{
	const char *end = members->end, *at = skip_space(members->at, end);

	if (*at == ',')
		at = skip_space(at + 1, end);
	if (*at == '}')
		return false;
	ret_name->at = at;
	at = skip_string(at);
	ret_name->size = (size_t)(at - ret_name->at);
	at = skip_space(skip_space(at, end) + 1, end); /* the colon */
	ret_value->at = at;
	at = skip_value(at, end);
	ret_value->size = (size_t)(at - ret_value->at);
	members->at = at;
	return true;
}

static unsigned hex4(const char *at)
{
	unsigned value = 0;

	for (int i = 0; i < 4; i++)
		value = value << 4 | (unsigned)hex_value(at[i]);
	return value;
}

/* The character behind \u and what belongs to it; 0: a NUL, which no text of ours has. */
static const char *read_unicode(const char *at, unsigned *ret_code, const char **ret_problem)
{
	unsigned code = hex4(at), low;

	at += 4;
	if (code == 0)
		*ret_problem = "a NUL (\\u0000) in a string";
	if (code >= 0xd800 && code <= 0xdfff) {
		low = code < 0xdc00 && at[0] == '\\' && at[1] == 'u' ? hex4(at + 2) : 0;
		if (low < 0xdc00 || low > 0xdfff) {
			*ret_problem = "half of a surrogate pair (\\ud800 to \\udfff) in a string";
			return at;
		}
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		at += 6;
	}
	*ret_code = code;
	return at;
}

static char *put_utf8(char *out, unsigned code)
{
	if (code < 0x80) {
		*out++ = (char)code;
		return out;
	}
	if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
	} else if (code < 0x10000) {
		*out++ = (char)(0xe0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	} else {
		*out++ = (char)(0xf0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (code & 0x3f));
	return out;
}

static char unescaped(char letter)
{
	static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
	const char *found = strchr(letters, letter);

	return found ? meant[found - letters] : letter;
}

const char *json_string_read(const struct json_piece *string, char *out)
{
	const char *at = string->at + 1, *end = string->at + string->size - 1;
	const char *problem = NULL;
	unsigned code = 0;

	while (at < end && !problem) {
		if (*at != '\\') {
			*out++ = *at++;
		} else if (at[1] != 'u') {
			*out++ = unescaped(at[1]);
			at += 2;
		} else {
			at = read_unicode(at + 2, &code, &problem);
			out = problem ? out : put_utf8(out, code);
		}
	}
	*out = '\0';
	return problem;
}
