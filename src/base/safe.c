/* SPDX-License-Identifier: Apache-2.0 */
#include "base/safe.h"

#include "base/buf.h"
#include "base/cleanup.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#define CUT_MARK "..."
#define TEXT_MAX ((size_t)32 << 20)

/* Characters without a width that change how others are shown: direction, joiners, byte order mark. */
static bool is_treacherous(wchar_t c)
{
	return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe0fff);
}

/* One character of text as it is shown, into piece; returns its bytes in text, writes its columns. */
static size_t next_piece(const char *text, size_t size, char piece[16], size_t *ret_columns)
{
	mbstate_t state = { 0 };
	wchar_t c = 0;
	size_t n = mbrtowc(&c, text, size, &state); /* NOLINT(concurrency-mt-unsafe): its own state */
	int width = n > 0 && n <= size ? wcwidth(c) : -1;

	if (width >= 0 && !is_treacherous(c)) {
		memcpy(piece, text, n);
		piece[n] = '\0';
		*ret_columns = (size_t)width;
		return n;
	}
	if (*text == '\n' || *text == '\t' || *text == '\r') {
		snprintf(piece, 16, "\\%c", *text == '\n' ? 'n' : *text == '\t' ? 't' : 'r');
		n = 1;
	} else if (n > 1 && n <= size) {
		snprintf(piece, 16, "\\u%04x", (unsigned)c);
	} else {
		snprintf(piece, 16, "\\x%02x", (unsigned char)*text);
		n = 1;
	}
	*ret_columns = strlen(piece);
	return n;
}

void safe_append(struct buf *out, const char *text, size_t size, size_t columns)
{
	size_t used = 0, kept = out->size; /* kept: where the cut mark would still fit */
	size_t room = columns > strlen(CUT_MARK) ? columns - strlen(CUT_MARK) : 0;
	char piece[16];

	while (size > 0) {
		size_t wide, n = next_piece(text, size, piece, &wide);

		if (used + wide > columns) {
			out->size = kept;
			buf_append(out, CUT_MARK, columns < 3 ? columns : strlen(CUT_MARK));
			return;
		}
		buf_text(out, piece);
		used += wide;
		if (used <= room)
			kept = out->size;
		text += n;
		size -= n;
	}
}

size_t safe_width(const char *text)
{
	size_t columns = 0, size = strlen(text);
	char piece[16];

	while (size > 0) {
		size_t wide, n = next_piece(text, size, piece, &wide);

		columns += wide;
		text += n;
		size -= n;
	}
	return columns;
}

void safe_line(FILE *stream, const char *prefix, const char *text)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(TEXT_MAX);

	safe_append(&line, text, strlen(text), UNCUT);
	fprintf(stream, "%s%s\n", prefix, buf_str(&line));
}

/* How many bytes of an already safe text fit into so many columns; at least one character. */
static size_t fitting(const char *text, size_t length, size_t columns, size_t *ret_columns)
{
	size_t at = 0, used = 0;
	char piece[16];

	while (at < length) {
		size_t wide, n = next_piece(text + at, length - at, piece, &wide);

		if (at && used + wide > columns)
			break;
		used += wide;
		at += n;
	}
	*ret_columns = used;
	return at;
}

void safe_wrap(FILE *stream, const struct wrap *wrap, const char *text)
{
	_cleanup_(buf_deinit) struct buf safe = BUF_INIT(TEXT_MAX);
	size_t at = wrap->at;
	const char *word;
	bool begun = false; /* there is a word on this line */

	safe_append(&safe, text, strlen(text), UNCUT);
	word = buf_str(&safe);
	while (*word) {
		size_t length = strcspn(word, " "), wide, n;

		/* of a word that is longer than a whole line, what fits goes first */
		n = fitting(word, length, wrap->width - wrap->indent, &wide);
		if (begun && at + 1 + wide > wrap->width) {
			fprintf(stream, "\n%*s", (int)wrap->indent, "");
			at = wrap->indent;
		} else if (begun && word[-1] == ' ') {
			fputc(' ', stream);
			at++;
		}
		fwrite(word, 1, n, stream);
		at += wide;
		begun = true;
		word += n;
		word += strspn(word, " ");
	}
	fputc('\n', stream);
}

void safe_say(FILE *stream, const char *format, ...)
{
	char line[2000];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	safe_wrap(stream, &(struct wrap){ 0, 2, 80 }, line);
}

void safe_shell_word(struct buf *out, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._:@%+,/-";

	if (*text && *text != '-' && text[strspn(text, plain)] == '\0') {
		buf_text(out, text);
		return;
	}
	buf_char(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_text(out, "'\\''");
		else
			buf_char(out, *text);
	buf_char(out, '\'');
}
