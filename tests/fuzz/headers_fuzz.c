/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stored headers. What headers_parse() accepts is legal by headers_check() and survives
 * headers_format() and parsing again, byte by byte; jansson agrees that it is an object.
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
	input_end(&in);
	return 0;
}
