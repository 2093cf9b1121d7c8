/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored headers. What headers_parse() accepts is legal by headers_check() and survives
 * headers_format() and parsing again, byte by byte. Jansson reads the same from the same text, but for
 * numbers that no double holds, which it refuses; what is a legal object to it is one to us.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/message.h"
#include "fuzz.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

static void check_headers(const struct outbox_header *headers, size_t n)
{
	size_t bytes = 0;

	CHECK(n <= OUTBOX_HEADERS_MAX);
	for (size_t i = 0; i < n; i++) {
		CHECK(headers[i].name && *headers[i].name && headers[i].value);
		CHECK(!strpbrk(headers[i].value, "\r\n"));
		CHECK(reference_utf8_valid(headers[i].value, strlen(headers[i].value)));
		for (const char *c = headers[i].name; *c; c++)
			CHECK(*c > ' ' && *c < 0x7f && !strchr("\"(),/:;<=>?@[\\]{}", *c));
		CHECK(strncasecmp(headers[i].name, "outbox-", 7) != 0);
		CHECK(strncasecmp(headers[i].name, "ce-", 3) != 0);
		bytes += strlen(headers[i].name) + strlen(headers[i].value);
		for (size_t k = 0; k < i; k++)
			CHECK(strcasecmp(headers[i].name, headers[k].name) != 0);
	}
	CHECK(bytes <= OUTBOX_HEADER_BYTES_MAX);
}

static void check_round_trip(struct outbox_arena *arena, const struct outbox_header *headers,
			     size_t n)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT((size_t)1 << 20);
	struct outbox_header *again = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	json_error_t where;
	size_t count = n + 1;
	json_t *root;

	CHECK(headers_format(headers, n, &text, &err) == OUTBOX_OK);
	CHECK((n == 0) == (text.size == 0));
	if (n == 0)
		return;
	CHECK(!strpbrk(text.data, "\r\n"));
	root = json_loads(text.data, JSON_REJECT_DUPLICATES, &where);
	CHECK(json_object_size(root) == n);
	json_decref(root);
	CHECK(headers_parse(text.data, arena, &again, &count, &err) == OUTBOX_OK);
	CHECK(count == n);
	for (size_t i = 0; i < n; i++) {
		CHECK(strcmp(headers[i].name, again[i].name) == 0);
		CHECK(strcmp(headers[i].value, again[i].value) == 0);
	}
}

static bool same_text(const json_t *value, const char *text)
{
	if (json_is_string(value))
		return strcmp(json_string_value(value), text) == 0;
	if (json_is_boolean(value))
		return strcmp(json_is_true(value) ? "true" : "false", text) == 0;
	return json_is_number(value) && (*text == '-' || (*text >= '0' && *text <= '9'));
}

/* Jansson's members as headers; false: there is one that cannot be one. */
static bool collect(json_t *root, struct outbox_header *headers, size_t *ret_count)
{
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(root, name, value)
	{
		const char *text = json_string_value(value);

		if (n == OUTBOX_HEADERS_MAX)
			return false;
		if (json_is_boolean(value))
			text = json_is_true(value) ? "true" : "false";
		else if (json_is_number(value))
			text = "0";
		if (!text)
			return false;
		headers[n++] = (struct outbox_header){ name, text };
	}
	*ret_count = n;
	return true;
}

static void check_witness(const char *text, bool taken, const struct outbox_header *headers, size_t n)
{
	struct outbox_header theirs[OUTBOX_HEADERS_MAX];
	json_error_t where;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where), *value;
	const char *name;
	size_t i = 0;

	if (taken && !root) {
		CHECK(json_error_code(&where) == json_error_numeric_overflow);
	} else if (taken) {
		CHECK(json_object_size(root) == n &&
		      (n > 0 || json_is_object(root) || json_is_null(root)));
		json_object_foreach(root, name, value)
		{
			CHECK(strcmp(name, headers[i].name) == 0);
			CHECK(same_text(value, headers[i].value));
			i++;
		}
	} else if (json_is_object(root) && collect(root, theirs, &n)) {
		CHECK(headers_check(theirs, n, NULL) != OUTBOX_OK);
	}
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new((size_t)4 << 20);
	struct input in = { .data = data, .size = size };
	const char *text = input_text(&in);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_header *headers = NULL;
	size_t count = 0;
	int r;

	CHECK(arena);
	r = headers_parse(text, arena, &headers, &count, &err);
	check_error(r, &err);
	if (r == OUTBOX_OK) {
		check_headers(headers, count);
		check_round_trip(arena, headers, count);
	} else {
		CHECK(r == OUTBOX_EPROTO && !headers);
	}
	check_witness(text, r == OUTBOX_OK, headers, count);
	input_end(&in);
	return 0;
}
