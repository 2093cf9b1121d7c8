/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Routes as text. A legal route survives being written and read, its types sorted and each once; a
 * text that is read writes back to a text that no longer changes; and it routes the same all along.
 */

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/routing.h"
#include "fuzz.h"

#include <string.h>

#define TYPES_MAX 100

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

static bool has_type(const struct outbox_route *route, const char *type)
{
	for (size_t i = 0; i < route->n_types; i++) {
		if (strcmp(route->types[i], type) == 0)
			return true;
	}
	return false;
}

/* With a header for each name that is asked for, and without one. */
static void check_headers(const struct outbox_route *a, const struct outbox_route *b,
			  const char *value)
{
	CHECK(!a->n_headers == !b->n_headers);
	for (size_t i = 0; i < a->n_headers; i++) {
		char name[2048];
		struct outbox_header header = { name, value };
		size_t size = strcspn(a->headers[i], "=");

		CHECK(size < sizeof(name));
		memcpy(name, a->headers[i], size);
		name[size] = '\0';
		CHECK(route_match_headers(a, &header, 1) == route_match_headers(b, &header, 1));
	}
	CHECK(route_match_headers(a, NULL, 0) == !a->n_headers);
}

static void check_same(const struct outbox_route *a, const struct outbox_route *b, const char *type)
{
	CHECK(a->kind == b->kind && a->published_only == b->published_only);
	for (size_t i = 0; i < a->n_types; i++)
		CHECK(has_type(b, a->types[i]));
	for (size_t i = 0; i < b->n_types; i++)
		CHECK(has_type(a, b->types[i]));
	check_headers(a, b, type);
	for (int kind = OUTBOX_KIND_UNSET; kind <= OUTBOX_KIND_COMMAND; kind++) {
		CHECK(route_match_fields(a, type, kind, true) ==
		      route_match_fields(b, type, kind, true));
		CHECK(route_match_fields(a, type, kind, false) ==
		      route_match_fields(b, type, kind, false));
		/* What goes out unpublished goes out published. */
		CHECK(!route_match_fields(a, type, kind, false) ||
		      route_match_fields(a, type, kind, true));
	}
}

static void check_route(const struct outbox_route *route, struct outbox_arena *arena,
			const char *type)
{
	_cleanup_(buf_deinit) struct buf text = BUF_INIT((size_t)4 << 20);
	_cleanup_(buf_deinit) struct buf again = BUF_INIT((size_t)4 << 20);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_route read = { 0 };

	route_format(route, &text);
	CHECK(!text.failed);
	CHECK(!strpbrk(text.data, "\r\n"));
	CHECK(route_parse(text.data, arena, &read, &err) == OUTBOX_OK);
	check_same(route, &read, type);
	for (size_t i = 1; i < read.n_types; i++)
		CHECK(strcmp(read.types[i - 1], read.types[i]) < 0);
	route_format(&read, &again);
	CHECK(strcmp(text.data, again.data) == 0);
}

static void check_name(const char *name)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	size_t length = strlen(name);
	bool legal =
		length > 0 && length <= OUTBOX_TARGET_NAME_MAX && name[0] >= 'a' && name[0] <= 'z';

	for (size_t i = 0; i < length; i++)
		legal = legal && ((name[i] >= 'a' && name[i] <= 'z') || name[i] == '_' ||
				  name[i] == '-' || (name[i] >= '0' && name[i] <= '9'));
	check_error(target_name_check(name, &err), &err);
	CHECK((err.status == OUTBOX_OK) == legal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new((size_t)8 << 20);
	struct input in = { .data = data, .size = size };
	const char *types[TYPES_MAX], *headers[TYPES_MAX];
	struct outbox_route route = { .types = types }, read = { 0 };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int flags = input_byte(&in), r;
	const char *sample = input_text(&in);

	CHECK(arena);
	check_name(sample);
	if (flags & 1) {
		r = route_parse(input_text(&in), arena, &read, &err);
		check_error(r, &err);
		CHECK(r == OUTBOX_OK || r == OUTBOX_EPROTO);
		if (r == OUTBOX_OK)
			check_route(&read, arena, sample);
	} else {
		route.kind = (flags >> 1 & 7) - 1;
		route.published_only = flags >> 4 & 1;
		route.headers = headers;
		while (in.size && route.n_types < TYPES_MAX && route.n_headers < TYPES_MAX) {
			const char *text = input_text(&in);

			if (flags >> 5 & 1 && strchr(text, '='))
				headers[route.n_headers++] = text;
			else
				types[route.n_types++] = text;
		}
		r = route_check(&route, &err);
		check_error(r, &err);
		CHECK(r == OUTBOX_OK || r == OUTBOX_ECONFIG);
		if (r == OUTBOX_OK)
			check_route(&route, arena, sample);
	}
	input_end(&in);
	return 0;
}
