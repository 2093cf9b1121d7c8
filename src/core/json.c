/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Is this text JSON (RFC 8259)? Asked of every payload that claims to be, so it builds no tree, and
 * it takes what a tree could not hold: numbers of any length, names given twice. One loop over the
 * text; what is open is a bit per level (set: an object), so depth costs no stack.
 */

#include "core/json.h"

#include "base/buf.h"
#include "base/text.h"
#include "core/message.h"

#include <stdio.h>
#include <string.h>

struct scanner {
	const char *data;
	size_t size, at;
	size_t depth;
	unsigned char objects[JSON_DEPTH_MAX / 8 + 1];
	const char *problem; /* NULL: none so far */
};

static void skip_space(struct scanner *s)
{
	for (; s->at < s->size; s->at++) {
		char c = s->data[s->at];

		if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
			return;
	}
}

static int peek(const struct scanner *s)
{
	return s->at < s->size ? (unsigned char)s->data[s->at] : -1;
}

static bool accept(struct scanner *s, char c)
{
	if (peek(s) != c)
		return false;
	s->at++;
	return true;
}

static bool refuse(struct scanner *s, const char *problem)
{
	if (!s->problem)
		s->problem = problem;
	return false;
}

static bool scan_escape(struct scanner *s)
{
	int c = peek(s), i;

	if (c <= 0 || !strchr("\"\\/bfnrtu", c))
		return refuse(s, "invalid escape in a string");
	s->at++;
	for (i = 0; c == 'u' && i < 4; i++, s->at++) {
		int digit = peek(s);

		if (digit <= 0 || hex_value((char)digit) < 0)
			return refuse(s, "\\u without four hexadecimal digits");
	}
	return true;
}

/* One bit in each byte of word that is zero, and perhaps in bytes above such a one. */
static uint64_t zero_bytes(uint64_t word)
{
	return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/* Most of a payload is inside strings: eight bytes at a time, as long as none of them means anything. */
static void skip_plain(struct scanner *s)
{
	const uint64_t quotes = UINT64_C(0x2222222222222222);
	const uint64_t slashes = UINT64_C(0x5c5c5c5c5c5c5c5c);
	const uint64_t above =
		UINT64_C(0xe0e0e0e0e0e0e0e0); /* control characters have none of these */
	uint64_t word;

	for (; s->size - s->at >= sizeof(word); s->at += sizeof(word)) {
		memcpy(&word, s->data + s->at, sizeof(word));
		if (zero_bytes(word ^ quotes) | zero_bytes(word ^ slashes) | zero_bytes(word & above))
			return;
	}
}

static bool scan_string(struct scanner *s)
{
	if (!accept(s, '"'))
		return refuse(s, "a string in double quotes expected");
	skip_plain(s);
	for (;;) {
		int c = peek(s);

		if (c < 0)
			return refuse(s, "a string does not end");
		if (c < 0x20)
			return refuse(s, "a control character inside a string");
		s->at++;
		if (c == '"')
			return true;
		if (c == '\\') {
			if (!scan_escape(s))
				return false;
			skip_plain(s);
		}
	}
}

static bool scan_digits(struct scanner *s)
{
	size_t start = s->at;

	while (peek(s) >= '0' && peek(s) <= '9')
		s->at++;
	return s->at > start || refuse(s, "a digit expected");
}

static bool scan_number(struct scanner *s)
{
	accept(s, '-');
	if (!accept(s, '0') && !scan_digits(s))
		return false;
	if (accept(s, '.') && !scan_digits(s))
		return false;
	if (accept(s, 'e') || accept(s, 'E')) {
		if (!accept(s, '+'))
			accept(s, '-');
		return scan_digits(s);
	}
	return true;
}

static bool scan_word(struct scanner *s, const char *word)
{
	size_t length = strlen(word);

	if (s->size - s->at < length || memcmp(s->data + s->at, word, length) != 0)
		return refuse(s, "a value expected");
	s->at += length;
	return true;
}

static bool in_object(const struct scanner *s)
{
	return s->objects[(s->depth - 1) / 8] >> ((s->depth - 1) % 8) & 1;
}

static bool open_level(struct scanner *s, bool object)
{
	unsigned char bit = (unsigned char)(1u << (s->depth % 8));

	if (s->depth == JSON_DEPTH_MAX)
		return refuse(s, "nested deeper than 1,000 levels");
	if (object)
		s->objects[s->depth / 8] |= bit;
	else
		s->objects[s->depth / 8] &= (unsigned char)~bit;
	s->depth++;
	s->at++;
	return true;
}

static bool scan_name(struct scanner *s)
{
	skip_space(s);
	if (!scan_string(s))
		return false;
	skip_space(s);
	return accept(s, ':') || refuse(s, "a colon expected");
}

/* Behind a value: close what ends here, and come to the place of the next value, if there is one. */
static bool scan_after(struct scanner *s, bool *ret_more)
{
	for (;;) {
		skip_space(s);
		*ret_more = s->depth > 0;
		if (s->depth == 0)
			return true;
		if (accept(s, ','))
			return !in_object(s) || scan_name(s);
		if (!accept(s, in_object(s) ? '}' : ']'))
			return refuse(s, in_object(s) ? "a comma or } expected"
						      : "a comma or ] expected");
		s->depth--;
	}
}

/* One value; of an object or array only its beginning, unless it is empty. *ret_open: go on inside. */
static bool scan_value(struct scanner *s, bool *ret_open)
{
	int c;

	skip_space(s);
	c = peek(s);
	*ret_open = false;
	switch (c) {
	case '{':
	case '[':
		if (!open_level(s, c == '{'))
			return false;
		skip_space(s);
		if (accept(s, c == '{' ? '}' : ']')) {
			s->depth--;
			return true;
		}
		*ret_open = true;
		return c == '[' || scan_name(s);
	case '"':
		return scan_string(s);
	case 't':
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	default:
		if (c == '-' || (c >= '0' && c <= '9'))
			return scan_number(s);
		return refuse(s, c < 0 ? "it ends where a value is expected" : "a value expected");
	}
}

static bool scan(struct scanner *s)
{
	bool open, more = true;

	if (!utf8_valid(s->data, s->size))
		return refuse(s, "not UTF-8");
	while (more) {
		if (!scan_value(s, &open))
			return false;
		if (!open && !scan_after(s, &more))
			return false;
	}
	return s->at == s->size || refuse(s, "more text after the value");
}

/* The place, not what stands there: this text is kept as an error, logged and listed; payloads are not. */
static int fail_at(const struct scanner *s, struct outbox_error *err)
{
	size_t line = 1, column = 1, i;

	for (i = 0; i < s->at; i++) {
		column = s->data[i] == '\n' ? 1 : column + 1;
		line += s->data[i] == '\n';
	}
	return outbox_fail(err, OUTBOX_EINVAL, "not JSON at line %zu, column %zu: %s", line, column,
			   s->problem);
}

/* Of a text that is one line in a file: which line of the file, only the caller knows. */
int json_line_check(const char *line, size_t size, struct outbox_error *err)
{
	struct scanner scanner = { .data = line, .size = size };

	if (scan(&scanner))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "not JSON at column %zu: %s", scanner.at + 1,
			   scanner.problem);
}

int json_text_check(const char *data, size_t size, struct outbox_error *err)
{
	struct scanner scanner = { .data = data, .size = size };

	return scan(&scanner) ? OUTBOX_OK : fail_at(&scanner, err);
}

/* 0: as it is. Else the letter behind the backslash; u: four digits. */
static char escape_of(unsigned char c)
{
	static const char letters[0x20] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
	};

	if (c == '"' || c == '\\')
		return (char)c;
	if (c >= 0x20)
		return c == 0x7f ? 'u' : 0;
	return letters[c] ? letters[c] : 'u';
}

void json_append_string(struct buf *out, const char *text, size_t size)
{
	size_t start = 0, i;

	buf_char(out, '"');
	for (i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];
		char letter = escape_of(c);

		if (!letter)
			continue;
		buf_append(out, text + start, i - start);
		start = i + 1;
		if (letter == 'u')
			buf_printf(out, "\\u%04x", c);
		else
			buf_append(out, (char[]){ '\\', letter }, 2);
	}
	buf_append(out, text + start, size - start);
	buf_char(out, '"');
}

void json_append_member(struct buf *out, char before, const char *name, const char *value)
{
	buf_char(out, before);
	json_append_string(out, name, strlen(name));
	buf_char(out, ':');
	json_append_string(out, value, strlen(value));
}

void json_append_compact(struct buf *out, const char *json, size_t size)
{
	bool in_string = false;
	size_t start = 0, i;

	for (i = 0; i < size; i++) {
		if (in_string) {
			if (json[i] == '\\')
				i++;
			else if (json[i] == '"')
				in_string = false;
		} else if (json[i] == '"') {
			in_string = true;
		} else if (strchr(" \t\n\r", json[i])) {
			buf_append(out, json + start, i - start);
			start = i + 1;
		}
	}
	buf_append(out, json + start, size - start);
}
