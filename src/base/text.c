/* SPDX-License-Identifier: Apache-2.0 */

#include "base/text.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character at s, 0 when it is not UTF-8. *ret_code is its code point. */
static size_t decode(const unsigned char *s, size_t size, uint32_t *ret_code)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t code;
	size_t n, i;

	if (s[0] < 0x80) {
		*ret_code = s[0];
		return 1;
	}
	n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || n > size)
		return 0;
	code = s[0] & (0x7fu >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	if (code < lowest[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	*ret_code = code;
	return n;
}

bool utf8_valid(const char *data, size_t size)
{
	const unsigned char *s = (const unsigned char *)data;
	uint32_t code;
	size_t n;

	while (size > 0) {
		uint64_t word;

		/* Most text is ASCII: eight bytes at a time. */
		if (size >= sizeof(word)) {
			memcpy(&word, s, sizeof(word));
			if ((word & UINT64_C(0x8080808080808080)) == 0) {
				s += sizeof(word);
				size -= sizeof(word);
				continue;
			}
		}
		n = decode(s, size, &code);
		if (n == 0)
			return false;
		s += n;
		size -= n;
	}
	return true;
}

bool text_has_control(const char *text, size_t size)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code;

	while (size > 0) {
		size_t n;

		if (*s >= 0x20 && *s < 0x7f) { /* nearly always */
			s++;
			size--;
			continue;
		}
		n = decode(s, size, &code);
		if (n == 0 || code < 0x20 || (code >= 0x7f && code <= 0x9f))
			return true;
		s += n;
		size -= n;
	}
	return false;
}

size_t utf8_length(const char *text)
{
	size_t length = 0;

	for (; *text; text++)
		length += ((unsigned char)*text & 0xc0) != 0x80;
	return length;
}

size_t utf8_cut(const char *text, size_t size, size_t max)
{
	size_t n = max;

	if (size <= max)
		return size;
	/* A character has at most three bytes behind its first: more is not UTF-8, cut anywhere. */
	while (n > 0 && max - n < 4 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return max - n < 4 ? n : max;
}

size_t utf8_cut_chars(const char *text, size_t max_chars)
{
	size_t n = 0;

	for (;; n++) {
		if (((unsigned char)text[n] & 0xc0) == 0x80)
			continue;
		if (!text[n] || max_chars-- == 0)
			return n;
	}
}

static void clean(char *text, bool lines)
{
	unsigned char *s = (unsigned char *)text;
	size_t size = strlen(text);
	uint32_t code;

	while (size > 0) {
		size_t n = decode(s, size, &code);

		if (n == 0) {
			n = 1;
			*s = '?';
		} else if ((code < 0x20 || (code >= 0x7f && code <= 0x9f)) &&
			   !(lines && code == '\n')) {
			memset(s, ' ', n);
		}
		s += n;
		size -= n;
	}
}

void text_clean(char *text)
{
	clean(text, false);
}

void text_clean_lines(char *text)
{
	clean(text, true);
}

/* To a terminal or to what is quoted. */
static bool is_harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == '"' || code == '\\' ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

void text_piece(struct text_piece *piece, const char *text, size_t size,
		bool (*must_escape)(uint32_t code))
{
	static const char letters[] = "\n\r\t\"\\", escapes[] = "nrt\"\\";
	const char *letter;
	uint32_t code = 0;
	size_t n = decode((const unsigned char *)text, size, &code);

	piece->size = n ? n : 1;
	piece->code = code;
	letter = code && code < 0x80 ? strchr(letters, (int)code) : NULL;
	if (n && !must_escape(code)) {
		memcpy(piece->shown, text, n);
		piece->shown[n] = '\0';
	} else if (letter) {
		snprintf(piece->shown, sizeof(piece->shown), "\\%c", escapes[letter - letters]);
	} else if (piece->size == 1) {
		snprintf(piece->shown, sizeof(piece->shown), "\\x%02x", (unsigned char)*text);
	} else {
		snprintf(piece->shown, sizeof(piece->shown), "\\u%04x", (unsigned)code);
	}
}

void text_display(struct buf *out, const char *text, size_t size)
{
	struct text_piece piece;

	for (; size > 0; text += piece.size, size -= piece.size) {
		text_piece(&piece, text, size, is_harmful);
		buf_text(out, piece.shown);
	}
}

const char *text_shown(char *out, size_t out_size, const char *text)
{
	size_t size, used = 0, cut = 0;
	struct text_piece piece;

	if (out_size == 0)
		return "";
	text = text ? text : "(none)";
	for (size = strlen(text); size > 0; text += piece.size, size -= piece.size) {
		size_t bytes;

		text_piece(&piece, text, size, is_harmful);
		bytes = strlen(piece.shown);
		if (used + bytes >= out_size) {
			snprintf(out + cut, out_size - cut, "...");
			return out;
		}
		memcpy(out + used, piece.shown, bytes);
		used += bytes;
		if (used + 3 < out_size)
			cut = used;
	}
	out[used] = '\0';
	return out;
}

static bool digits_value(const char *text, bool negative, int64_t *ret_value)
{
	int64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		int digit = *text - '0';

		if (digit < 0 || digit > 9)
			return false;
		/* Built below zero: only there does every int64 have its place. */
		if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
		    __builtin_sub_overflow(value, (int64_t)digit, &value))
			return false;
	}
	if (!negative && value == INT64_MIN)
		return false;
	*ret_value = negative ? value : -value;
	return true;
}

int number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret_number,
		 struct outbox_error *err)
{
	bool negative = min < 0 && text && text[0] == '-';
	char shown[80];
	int64_t value;

	if (!text || !digits_value(text + negative, negative, &value) || value < min || value > max)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s: \"%s\" is not a whole number from %" PRId64 " to %" PRId64,
				   what, text_shown(shown, sizeof(shown), text), min, max);
	*ret_number = value;
	return OUTBOX_OK;
}

const char *count_human(int64_t count, char out[COUNT_TEXT_MAX])
{
	uint64_t rest = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
	char reversed[COUNT_TEXT_MAX];
	size_t n = 0, digits = 0, i;

	do {
		if (digits > 0 && digits % 3 == 0)
			reversed[n++] = ',';
		reversed[n++] = (char)('0' + rest % 10);
		rest /= 10;
		digits++;
	} while (rest > 0);
	if (count < 0)
		reversed[n++] = '-';
	for (i = 0; i < n; i++)
		out[i] = reversed[n - 1 - i];
	out[n] = '\0';
	return out;
}

static const char *next_char(const char *text)
{
	uint32_t code;
	size_t n = decode((const unsigned char *)text, strlen(text), &code);

	return text + (n ? n : 1);
}

/* Only the last star needs to be gone back to, so this takes |glob| * |text| steps at the most. */
bool glob_match(const char *glob, const char *text)
{
	const char *star = NULL, *retry = NULL;

	while (*text) {
		if (*glob == '*') {
			star = ++glob;
			retry = text;
		} else if (*glob == '?') {
			glob++;
			text = next_char(text);
		} else if (*glob && *glob == *text) {
			glob++;
			text++;
		} else if (star) {
			glob = star;
			retry = next_char(retry);
			text = retry;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return !*glob;
}

uint64_t text_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash;
}

int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool hex_bytes(const char *text, unsigned char *out, size_t size)
{
	if (strspn(text, "0123456789abcdef") < 2 * size)
		return false;
	for (size_t i = 0; i < size; i++)
		out[i] = (unsigned char)(hex_value(text[2 * i]) * 16 + hex_value(text[2 * i + 1]));
	return true;
}

int percent_value(const char *text, size_t size)
{
	int high = size > 2 && text[0] == '%' ? hex_value(text[1]) : -1;
	int low = high >= 0 ? hex_value(text[2]) : -1;

	return low < 0 ? -1 : high * 16 + low;
}

bool percent_decode(const char *text, size_t size, bool plus, char *out)
{
	for (size_t i = 0; i < size; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			c = percent_value(text + i, size - i);
			i += 2;
		} else if (c == '+' && plus) {
			c = ' ';
		}
		if (c <= 0)
			return false;
		*out++ = (char)c;
	}
	*out = '\0';
	return true;
}

bool text_is_token(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(c >= '0' && c <= '9') && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return size > 0;
}
