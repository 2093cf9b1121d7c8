/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

/* UTF-8, safe display of foreign text, and the small formats people write: durations, times, sizes. */

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* Well-formed UTF-8 without overlongs and surrogates. NUL bytes are legal here: check apart. */
bool utf8_valid(const char *data, size_t size);

/* Does a text hold a control character: C0, DEL, C1, or a byte that is not UTF-8? */
bool text_has_control(const char *text, size_t size);

/* Code points of a valid text. */
size_t utf8_length(const char *text);

/* The largest n <= max at which text (size bytes) can be cut without splitting a character. */
size_t utf8_cut(const char *text, size_t size, size_t max);

/* The same counted in characters, for a text with a NUL at its end: bytes of the first max_chars. */
size_t utf8_cut_chars(const char *text, size_t max_chars);

/* Make foreign text one clean line, in place: control characters become spaces, bytes that are not
 * UTF-8 question marks. For texts that are stored, where text_display()'s escapes would be in the way. */
void text_clean(char *text);

/* The same for a text of several lines: line feeds stay. */
void text_clean_lines(char *text);

/* One character of foreign text as it may be shown. */
struct text_piece {
	size_t size;    /* its bytes in the text */
	uint32_t code;  /* its code point; 0 also for a byte that is not UTF-8 */
	char shown[12]; /* the character itself, or an escape: \n, \x1b, \u202e */
};
/* The first one of text (size > 0). Bytes that are not UTF-8 are escaped, and what must_escape() says. */
void text_piece(struct text_piece *piece, const char *text, size_t size,
		bool (*must_escape)(uint32_t code));

/*
 * Append text for a person's terminal or a log line: control characters (C0, C1, DEL), bytes that are
 * not UTF-8, line separators and characters that turn the writing direction, quotes and backslashes
 * escaped.
 */
void text_display(struct buf *out, const char *text, size_t size);

/* The same cut to a fixed array, for error messages: `char shown[80]; text_shown(shown, sizeof(shown), v)`. */
const char *text_shown(char *out, size_t out_size, const char *text);

/* "500ms", "5s", "90s", "1m30s", "7d", "2h", "20us"; a bare "0" too. EINVAL names the value and the remedy. */
int duration_parse(const char *text, outbox_time *ret_duration,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* "+5m" (from now) or RFC 3339, "2026-11-15T18:00:00Z", with offset or Z, seconds optional. UTC.
 * EINVAL also for what is not after 1970 or not before the year 10000. */
int time_parse(const char *text, outbox_time now, outbox_time *ret_time,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A whole number within [min, max], digits only. what names the field in the error. */
int number_parse(const char *what, const char *text, int64_t min, int64_t max, int64_t *ret_number,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Bytes above 0: "65536", "64KiB", "8M", "1GiB". EINVAL names the value and the remedy. */
int size_parse(const char *text, int64_t *ret_size, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* The reverse: "8MiB", "1000". */
#define SIZE_TEXT_MAX 32
const char *size_exact(int64_t size, char out[SIZE_TEXT_MAX]);

/* RFC 3339 has years of four digits: nothing before or after these can be written. */
#define TIME_FIRST (-62167219200 * OUTBOX_SECONDS)
#define TIME_LAST (253402300800 * OUTBOX_SECONDS - 1)

/* RFC 3339 in UTC with microseconds cut to what is needed: "2026-11-15T09:00:00.25Z". */
#define TIME_TEXT_MAX 40
const char *time_format(outbox_time time, char out[TIME_TEXT_MAX]);

/* For people: "0.2 s", "38 s", "2 min", "3 h", "5 d". Negative durations as "0 s". */
#define DURATION_TEXT_MAX 40
const char *duration_human(outbox_time duration, char out[DURATION_TEXT_MAX]);

/* Exact and parseable: "1m30s", "250ms", "7d". */
const char *duration_exact(outbox_time duration, char out[DURATION_TEXT_MAX]);

/* 1204 -> "1,204". */
#define COUNT_TEXT_MAX 40
const char *count_human(int64_t count, char out[COUNT_TEXT_MAX]);

/* The value of a hexadecimal digit, -1 when it is none. */
int hex_value(char c);

/* size bytes from 2 * size lower-case hexadecimal digits. False: there is something else among them. */
bool hex_bytes(const char *text, unsigned char *out, size_t size);

/* The byte that a percent escape at text (%41) stands for, -1 when it is none. */
int percent_value(const char *text, size_t size);

/* Percent escapes decoded into out, which has room for size + 1; plus: a + is a space. False: an escape that is none, or a
 * NUL, which would cut the text silently. */
bool percent_decode(const char *text, size_t size, bool plus, char *out);

/* A token of RFC 9110, such as a header's name: letters, digits and !#$%&'*+-.^_`|~, at least one. */
bool text_is_token(const char *text, size_t size);

/* FNV-1a, for hash tables and for telling names apart. Not stored anywhere. */
uint64_t text_hash(const char *text);

/* Globs of routes and filters: * any run, ? any one character; the whole text must match. */
bool glob_match(const char *glob, const char *text);

#endif
