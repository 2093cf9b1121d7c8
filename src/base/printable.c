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

void printable_wrap(FILE *stream, const struct wrap *wrap, const char *text)
{
	_cleanup_(buf_deinit) struct buf printable = BUF_INIT(TEXT_MAX);
	size_t at = wrap->at;
	const char *word;
	bool begun = false; /* there is a word on this line */

	printable_append(&printable, text, strlen(text), UNCUT);
	word = buf_str(&printable);
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

void printable_printf(FILE *stream, const char *format, ...)
{
	char line[2000];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	printable_wrap(stream, &(struct wrap){ 0, 2, 80 }, line);
}
