/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/page.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/safe.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WIDTH ((size_t)80)
#define INDENT ((size_t)4)
#define PARAGRAPH_MAX ((size_t)1 << 16)

/* How much of a command goes on this line: up to the last blank outside of quotes that leaves room for a backslash. */
static size_t command_part(const char *at, size_t size, size_t room)
{
	size_t part = 0;
	char quote = '\0';

	if (size <= room)
		return size;
	for (size_t i = 0; i < size && (i + 2 <= room || !part); i++) {
		if (quote)
			quote = at[i] == quote ? '\0' : quote;
		else if (at[i] == '\'' || at[i] == '"')
			quote = at[i];
		else if (at[i] == ' ')
			part = i;
	}
	return part ? part : size;
}

static void print_command(const char *at, size_t size)
{
	size_t indent = INDENT;

	while (size > 0) {
		size_t part = command_part(at, size, WIDTH - indent);

		printf("%*s%.*s%s\n", (int)indent, "", (int)part, at, part < size ? " \\" : "");
		indent = 2 * INDENT;
		at += part;
		size -= part;
		while (size > 0 && *at == ' ') {
			at++;
			size--;
		}
	}
}

/* [outage](#outage) is the word outage: on a terminal there is nothing to follow. */
static void add_line(struct buf *paragraph, const char *at, size_t size)
{
	const char *end = at + size;

	while (at < end) {
		const char *open = memchr(at, '[', (size_t)(end - at));
		const char *close = open ? memmem(open, (size_t)(end - open), "](", 2) : NULL;
		const char *stop = close ? memchr(close, ')', (size_t)(end - close)) : NULL;

		if (!stop)
			break;
		buf_append(paragraph, at, (size_t)(open - at));
		buf_append(paragraph, open + 1, (size_t)(close - open - 1));
		at = stop + 1;
	}
	buf_append(paragraph, at, (size_t)(end - at));
}

static void end_paragraph(struct buf *paragraph)
{
	if (paragraph->size)
		safe_wrap(stdout, &(struct wrap){ .width = WIDTH }, buf_str(paragraph));
	buf_clear(paragraph);
}

void page_print(const char *markdown, size_t size)
{
	const char *at = markdown;
	_cleanup_(buf_deinit) struct buf paragraph = BUF_INIT(PARAGRAPH_MAX);
	const char *end = at + size;
	bool commands = false;

	while (at < end) {
		const char *line = at, *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((stop ? stop : end) - line);

		at = stop ? stop + 1 : end;
		if (length >= 3 && memcmp(line, "```", 3) == 0) {
			end_paragraph(&paragraph);
			commands = !commands;
		} else if (commands) {
			print_command(line, length);
		} else if (length) {
			buf_text(&paragraph, paragraph.size ? " " : "");
			add_line(&paragraph, line, length);
		} else {
			end_paragraph(&paragraph);
			putchar('\n');
		}
	}
	end_paragraph(&paragraph);
}
