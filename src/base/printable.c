/* SPDX-License-Identifier: Apache-2.0 */
#include "base/printable.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <wchar.h>

#define CUT_MARK "..."
#define TEXT_MAX ((size_t)32 << 20)

/* What has no width at all, control characters among them, and what changes how others are shown: direction,
 * joiners, byte order mark. */
static bool is_treacherous(uint32_t c)
{
	return c == 0 || wcwidth((wchar_t)c) < 0 || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

/* The first character of text as it is shown; returns its columns. */
static size_t next_piece(struct text_piece *piece, const char *text, size_t size)
{
	text_piece(piece, text, size, is_treacherous);
	/* ASCII, and that is what every escape is, has one column each */
	return piece->shown[0] & 0x80 ? (size_t)wcwidth((wchar_t)piece->code) : strlen(piece->shown);
}

void printable_append(struct buf *out, const char *text, size_t size, size_t columns)
{
	size_t used = 0, kept = out->size; /* kept: where the cut mark would still fit */
	size_t room = columns > strlen(CUT_MARK) ? columns - strlen(CUT_MARK) : 0;
	struct text_piece piece;

	for (; size > 0; text += piece.size, size -= piece.size) {
		size_t wide = next_piece(&piece, text, size);

		if (used + wide > columns) {
			out->size = kept;
			buf_append(out, CUT_MARK, columns < 3 ? columns : strlen(CUT_MARK));
			return;
		}
		buf_text(out, piece.shown);
		used += wide;
		if (used <= room)
			kept = out->size;
	}
}

/* How many bytes of an already printable text fit into so many columns; at least one character. */
static size_t fitting(const char *text, size_t length, size_t columns, size_t *ret_columns)
{
	size_t at = 0, used = 0;
	struct text_piece piece;

	while (at < length) {
		size_t wide = next_piece(&piece, text + at, length - at);

		if (at && used + wide > columns)
			break;
		used += wide;
		at += piece.size;
	}
	*ret_columns = used;
	return at;
}

size_t printable_width(const char *text)
{
	size_t columns;

	fitting(text, strlen(text), UNCUT, &columns);
	return columns;
}

void printable_line(FILE *stream, const char *prefix, const char *text)
{
	_cleanup_(buf_deinit) struct buf line = BUF_INIT(TEXT_MAX);

	printable_append(&line, text, strlen(text), UNCUT);
	fprintf(stream, "%s%s\n", prefix, buf_str(&line));
}

/* ---- wrapping ------------------------------------------------------------------------------------- */

struct line {
	FILE *stream;
	const struct wrap *wrap;
	size_t at;
	bool begun; /* there is a word on it */
};

static void next_line(struct line *line, size_t indent)
{
	fprintf(line->stream, "\n%*s", (int)indent, "");
	line->at = indent;
}

static void put(struct line *line, const char *text, size_t size, size_t columns)
{
	fwrite(text, 1, size, line->stream);
	line->at += columns;
	line->begun = true;
}

/* A blank in front of what goes behind a word, or a new line where there is no room for it. */
static void separate(struct line *line, size_t columns, bool blank)
{
	if (!line->begun)
		return;
	if (line->at + 1 + columns > line->wrap->width)
		next_line(line, line->wrap->indent);
	else if (blank)
		put(line, " ", 1, 1);
}

/* The next argument of a command: a blank between quotes ends none. */
static size_t argument_length(const char *text)
{
	size_t i = 0;
	char quote = '\0';

	for (; text[i] && (quote || text[i] != ' '); i++)
		if (text[i] == '\\' && text[i + 1] && !quote)
			i++;
		else if (text[i] == quote)
			quote = '\0';
		else if (!quote && (text[i] == '\'' || text[i] == '"'))
			quote = text[i];
	return i;
}

/* How long is the command that begins here, up to the end of its sentence? 0: none does. */
static size_t command_length(const char *begin, const char *text)
{
	size_t length = 0;

	if (strncmp(text, "outbox ", 7) != 0 ||
	    (text != begin && (text < begin + 2 || memcmp(text - 2, ": ", 2) != 0)))
		return 0;
	do {
		length += strspn(text + length, " ");
		length += argument_length(text + length);
	} while (text[length] && !strchr(";,)", text[length - 1]));
	return length;
}

/* It can be pasted as it is printed: on a line of its own, or on several that the shell takes for one. */
static void put_command(struct line *line, const char *text, size_t length)
{
	const char *end = text + length;
	size_t columns, n;

	fitting(text, length, UNCUT, &columns);
	separate(line, columns, true);
	if (line->at + columns <= line->wrap->width) {
		put(line, text, length, columns);
		return;
	}
	for (const char *at = text; at < end; at += n + strspn(at + n, " ")) {
		n = argument_length(at);
		fitting(at, n, UNCUT, &columns);
		/* where it fits on no line, a break would not help */
		if (at > text && line->at + columns + 3 > line->wrap->width &&
		    line->wrap->indent + 4 + columns + 2 <= line->wrap->width) {
			fputs(" \\", line->stream);
			next_line(line, line->wrap->indent + 4);
		} else if (at > text) {
			put(line, " ", 1, 1);
		}
		put(line, at, n, columns);
	}
}

void printable_wrap(FILE *stream, const struct wrap *wrap, const char *text)
{
	_cleanup_(buf_deinit) struct buf printable = BUF_INIT(TEXT_MAX);
	struct line line = { .stream = stream, .wrap = wrap, .at = wrap->at };
	const char *begin, *word;

	printable_append(&printable, text, strlen(text), UNCUT);
	begin = word = buf_str(&printable);
	while (*word) {
		size_t columns, n = command_length(begin, word);

		if (n) {
			put_command(&line, word, n);
		} else {
			/* of a word that is longer than a whole line, what fits goes first */
			n = fitting(word, strcspn(word, " "), wrap->width - wrap->indent, &columns);
			separate(&line, columns, line.begun && word[-1] == ' ');
			put(&line, word, n, columns);
		}
		word += n;
		word += strspn(word, " ");
	}
	fputc('\n', stream);
}

void printable_printf(FILE *stream, const char *format, ...)
{
	char line[2000];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	printable_wrap(stream, &(struct wrap){ 0, 2, 80 }, line);
}
