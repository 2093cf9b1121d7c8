/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/payload.h"

#include "base/buf.h"
#include "base/text.h"
#include "cli/safe.h"
#include "core/message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define INDENT 4
#define SHOWN_MAX ((size_t)64 << 20)
#define HEX_ROW 16
#define DEPTH_MAX 64

static void newline(struct buf *out, int depth)
{
	buf_char(out, '\n');
	for (int i = 0; i < depth && i < DEPTH_MAX; i++)
		buf_text(out, "  ");
}

/* The length of the string that begins at text with its quote. */
static size_t string_length(const char *text, size_t size)
{
	size_t i = 1;

	while (i < size && text[i] != '"')
		i += text[i] == '\\' ? 2 : 1;
	return i + 1 < size ? i + 1 : size;
}

/* Is the bracket at text[i] followed by nothing but its end? */
static bool is_empty(const char *text, size_t size, size_t i)
{
	for (i++; i < size && isspace((unsigned char)text[i]); i++)
		;
	return i < size && (text[i] == '}' || text[i] == ']');
}

/* Valid JSON with line breaks and indents. Works on the text, not on values: 1.50 stays 1.50. */
static void indent_json(struct buf *out, const char *text, size_t size)
{
	int depth = 0;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (c == '"') {
			size_t n = string_length(text + i, size - i);

			buf_append(out, text + i, n);
			i += n - 1;
		} else if (c == '{' || c == '[') {
			buf_char(out, c);
			depth++;
			if (!is_empty(text, size, i))
				newline(out, depth);
		} else if (c == '}' || c == ']') {
			depth--;
			if (out->size && out->data[out->size - 1] != '{' &&
			    out->data[out->size - 1] != '[')
				newline(out, depth);
			buf_char(out, c);
		} else if (c == ',') {
			buf_char(out, c);
			newline(out, depth);
		} else if (c == ':') {
			buf_text(out, ": ");
		} else if (!isspace((unsigned char)c)) {
			buf_char(out, c);
		}
	}
}

static void hex_lines(struct buf *out, const unsigned char *data, size_t size)
{
	for (size_t at = 0; at < size; at += HEX_ROW) {
		size_t n = size - at < HEX_ROW ? size - at : HEX_ROW;

		buf_printf(out, "%s%06zx ", at ? "\n" : "", at);
		for (size_t i = 0; i < HEX_ROW; i++)
			if (i < n)
				buf_printf(out, " %02x", data[at + i]);
			else
				buf_text(out, "   ");
		buf_text(out, "  ");
		for (size_t i = 0; i < n; i++)
			buf_char(out, data[at + i] >= ' ' && data[at + i] < 127 ? (char)data[at + i]
										: '.');
	}
}

static void print_lines(const struct cli *cli, const struct buf *text, size_t max_lines)
{
	const char *line = buf_str(text), *end = line + text->size;
	size_t lines = 0;

	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t n = stop ? (size_t)(stop - line) : (size_t)(end - line);
		struct buf shown = BUF_INIT(SHOWN_MAX);

		if (max_lines && lines++ == max_lines) {
			printf("%*s... (--full shows all, --raw-payload writes the bytes)\n",
			       INDENT, "");
			return;
		}
		safe_append(&shown, line, n,
			    max_lines && cli->width != UNCUT ? cli->width - INDENT : UNCUT);
		printf("%*s%s\n", INDENT, "", buf_str(&shown));
		buf_deinit(&shown);
		line += n + (stop != NULL);
	}
}

void payload_print(const struct cli *cli, const struct outbox_message *message, size_t max_lines)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(SHOWN_MAX);
	const char *data = message->data ? message->data : "";

	if (!utf8_valid(data, message->size) || memchr(data, '\0', message->size))
		hex_lines(&text, (const unsigned char *)data, message->size);
	else if (json_text_check(data, message->size, NULL) == OUTBOX_OK)
		indent_json(&text, data, message->size);
	else
		buf_append(&text, data, message->size);
	if (text.failed) { /* indenting would make too much of it: as it is, then */
		buf_clear(&text);
		buf_append(&text, data, message->size);
	}
	print_lines(cli, &text, max_lines);
}
