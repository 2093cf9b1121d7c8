/* SPDX-License-Identifier: Apache-2.0 */

/* UTF-8 beside a table of the standard; what is shown to people is printable and bounded. */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

static bool reference_control(const char *text, size_t size)
{
	const uint8_t *s = (const uint8_t *)text;

	for (size_t i = 0; i < size;) {
		size_t n = reference_utf8(s + i, size - i);

		if (n == 0 || s[i] < 0x20 || s[i] == 0x7f || (s[i] == 0xc2 && s[i + 1] < 0xa0))
			return true;
		i += n;
	}
	return false;
}

static size_t count_chars(const char *text, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size; count++)
		i += reference_utf8((const uint8_t *)text + i, size - i);
	return count;
}

static void check_cuts(const char *text, size_t size, size_t max)
{
	size_t n = utf8_cut(text, size, max);

	CHECK(n <= size && n <= max && (size > max || n == size));
	CHECK(n + 3 >= (size < max ? size : max));
	if (!reference_utf8_valid(text, size))
		return;
	CHECK(reference_utf8_valid(text, n));
	CHECK(n == size || n + reference_utf8((const uint8_t *)text + n, size - n) > max);
	if (memchr(text, 0, size))
		return;
	CHECK(utf8_length(text) == count_chars(text, size));
	n = utf8_cut_chars(text, max);
	CHECK(reference_utf8_valid(text, n) && n <= size);
	CHECK(count_chars(text, n) == (max < utf8_length(text) ? max : utf8_length(text)));
}

static void check_clean(const char *text, size_t size)
{
	char *copy = strdup(text);

	CHECK(copy);
	text_clean(copy);
	CHECK(strlen(copy) == size);
	CHECK(!reference_control(copy, size));
	CHECK(reference_control(text, size) || memcmp(copy, text, size) == 0);
	free(copy);
}

static void check_display(const char *text, size_t size)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT((size_t)8 << 20);

	buf_text(&out, "> ");
	text_display(&out, text, size);
	CHECK(!out.failed && strncmp(out.data, "> ", 2) == 0 && strlen(out.data) == out.size);
	CHECK(is_printable(out.data, out.size) && out.size >= 2 + size);
}

static void check_shown(const char *text, size_t room)
{
	char *out = malloc(room + 1);

	CHECK(out);
	out[room] = 'x'; /* behind what it may use */
	text_shown(out, room, text);
	CHECK(out[room] == 'x');
	if (room) {
		CHECK(strlen(out) < room);
		CHECK(is_printable(out, strlen(out)));
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .data = data, .size = size };
	size_t max = input_byte(&in), n = in.size;
	const char *text = input_rest(&in);

	CHECK(utf8_valid(text, n) == reference_utf8_valid(text, n));
	CHECK(text_has_control(text, n) == reference_control(text, n));
	check_cuts(text, n, max);
	check_display(text, n);
	if (strlen(text) == n)
		check_clean(text, n);
	check_shown(text, max);
	input_end(&in);
	return 0;
}
