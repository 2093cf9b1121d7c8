/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Foreign text on a terminal: printable whatever it was, no wider than asked, the same when it is made
 * safe twice; wrapped lines fit; a shell reads a quoted word as the text it was.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/printable.h"
#include "fuzz.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_append(const char *text, size_t size, size_t columns)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)1 << 20);
	_cleanup_(buf_deinit) struct buf whole = BUF_INIT((size_t)1 << 20);
	_cleanup_(buf_deinit) struct buf again = BUF_INIT((size_t)1 << 20);

	printable_append(&out, text, size, columns);
	CHECK(strlen(buf_str(&out)) == out.size && is_printable(buf_str(&out), out.size));
	CHECK(printable_width(buf_str(&out)) <= columns);
	printable_append(&whole, text, size, UNCUT);
	CHECK(is_printable(buf_str(&whole), whole.size) && whole.size >= size);
	if (printable_width(buf_str(&whole)) <= columns)
		CHECK(strcmp(buf_str(&whole), buf_str(&out)) == 0);
	printable_append(&again, buf_str(&whole), whole.size, UNCUT);
	CHECK(strcmp(buf_str(&whole), buf_str(&again)) == 0);
}

/* Whatever is before the first break began at `at`; all others begin at the indent and must fit. */
static void check_wrap(const char *text, const struct wrap *wrap)
{
	char *written = NULL, *line, *end;
	size_t size = 0;
	FILE *stream = open_memstream(&written, &size);

	CHECK(stream);
	printable_wrap(stream, wrap, text);
	CHECK(fclose(stream) == 0 && size > 0 && written[size - 1] == '\n');
	end = strchr(written, '\n');
	*end = '\0';
	CHECK(is_printable(written, strlen(written)));
	for (line = end + 1; *line; line = end + 1) {
		end = strchr(line, '\n');
		CHECK(end);
		*end = '\0';
		CHECK(is_printable(line, strlen(line)));
		CHECK(strspn(line, " ") >= wrap->indent && printable_width(line) <= wrap->width);
	}
	free(written);
}

/* As a POSIX shell reads it: quoted parts as they are, \' between them, plain characters. */
static void check_shell_word(const char *text)
{
	_cleanup_(buf_deinit) struct buf word = BUF_INIT((size_t)1 << 20);
	_cleanup_(buf_deinit) struct buf read = BUF_INIT((size_t)1 << 20);
	const char *c;
	bool quoted = false;

	buf_shell_word(&word, text);
	CHECK(word.size > 0 && word.data[0] != '-');
	for (c = word.data; *c; c++) {
		if (*c == '\'') {
			quoted = !quoted;
		} else if (!quoted && *c == '\\') {
			CHECK(c[1] == '\'');
			buf_char(&read, *++c);
		} else {
			CHECK(quoted ||
			      !strpbrk((char[]){ *c, '\0' }, " \t\n\r\"$&;|<>()*?[]{}#~=`!^"));
			buf_char(&read, *c);
		}
	}
	CHECK(!quoted && strcmp(buf_str(&read), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	size_t columns = input_byte(&in), indent = input_byte(&in) % 20, n = in.size;
	struct wrap wrap = { .at = 0, .indent = indent, .width = indent + 2 + columns };
	const char *text = input_rest(&in);

	CHECK(setlocale(LC_CTYPE, "C.UTF-8"));
	check_append(text, n, columns);
	check_wrap(text, &wrap);
	check_shell_word(text);
	input_end(&in);
	return 0;
}
