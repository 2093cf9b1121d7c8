/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Our JSON checker beside jansson's parser. They must say the same, but for what is known: jansson
 * refuses numbers that no double holds, halves of surrogate pairs, and NULs in names, and it goes
 * deeper than we do; a NUL behind a number it does not see, so texts with NULs are ours alone to refuse. Making it compact keeps everything but the white space.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/json.h"
#include "core/message.h"
#include "fuzz.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define FLAGS (JSON_DECODE_ANY | JSON_ALLOW_NUL)

/* Does it open more than JSON_DEPTH_MAX brackets at once? Only asked of what jansson accepted. */
static bool is_deep(const char *text, size_t size)
{
	size_t depth = 0, deepest = 0;
	bool in_string = false;

	for (size_t i = 0; i < size; i++) {
		if (in_string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			in_string = !in_string;
		else if (!in_string && (text[i] == '{' || text[i] == '['))
			depth++;
		else if (!in_string && (text[i] == '}' || text[i] == ']'))
			depth--;
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest > JSON_DEPTH_MAX;
}

static bool is_known_limit(const json_error_t *why)
{
	enum json_error_code code = json_error_code(why);

	return code == json_error_numeric_overflow || code == json_error_null_byte_in_key ||
	       strncmp(why->text, "invalid Unicode", 15) == 0;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The same bytes in the same order, white space aside? */
static bool same_but_space(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < n_a && is_space(a[i]))
			i++;
		while (k < n_b && is_space(b[k]))
			k++;
		if (i == n_a || k == n_b)
			return i == n_a && k == n_b;
		if (a[i++] != b[k++])
			return false;
	}
}

static void check_compact(const char *text, size_t size, const json_t *value)
{
	_cleanup_(buf_deinit) struct buf compact = BUF_INIT(size + 1);
	_cleanup_(buf_deinit) struct buf again = BUF_INIT(size + 1);
	json_error_t why;

	json_append_compact(&compact, text, size);
	CHECK(!compact.failed && compact.size > 0 && compact.size <= size);
	CHECK(!memchr(compact.data, '\n', compact.size) && !memchr(compact.data, '\r', compact.size));
	CHECK(same_but_space(text, size, compact.data, compact.size));
	CHECK(json_text_check(compact.data, compact.size, NULL) == OUTBOX_OK);
	json_append_compact(&again, compact.data, compact.size);
	CHECK(again.size == compact.size && memcmp(again.data, compact.data, again.size) == 0);
	if (value) {
		json_t *other = json_loadb(compact.data, compact.size, FLAGS, &why);

		CHECK(other && json_equal(other, value));
		json_decref(other);
	}
}

/* Any text as a string: one line, and jansson reads back what it was. */
static void check_string(const char *text, size_t size)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(size * 6 + 2);
	json_error_t why;
	json_t *value;

	if (!reference_utf8_valid(text, size))
		return;
	json_append_string(&out, text, size);
	CHECK(!out.failed && !memchr(out.data, '\n', out.size) && !memchr(out.data, '\r', out.size));
	CHECK(json_text_check(out.data, out.size, NULL) == OUTBOX_OK);
	value = json_loadb(out.data, out.size, FLAGS, &why);
	CHECK(json_is_string(value) && json_string_length(value) == size);
	CHECK(memcmp(json_string_value(value), text, size) == 0);
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	json_error_t why;
	json_t *value;
	int r;

	if (size == 0)
		text = "";
	value = memchr(text, 0, size) ? NULL : json_loadb(text, size, FLAGS, &why);
	r = json_text_check(text, size, &err);
	check_error(r, &err);
	CHECK(r == OUTBOX_OK || r == OUTBOX_EINVAL);
	if (r == OUTBOX_OK) {
		CHECK(!memchr(text, 0, size));
		CHECK(value || is_known_limit(&why));
		CHECK(!is_deep(text, size));
		check_compact(text, size, value);
	} else {
		CHECK(!value || is_deep(text, size));
	}
	json_decref(value);
	check_string(text, size);
	return 0;
}
