/* SPDX-License-Identifier: Apache-2.0 */

#include "core/routing.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "core/bands.h"
#include "core/json.h"
#include "core/lifecycle.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define GLOBS_MAX 256

#define ANY_KIND "any" /* in a stored routing */
#define UNKNOWN_KIND -1

bool route_match(const struct outbox_route *route, const char *type, int kind, bool published)
{
	if (route->nothing || (route->published_only && !published))
		return false;
	if (kind == OUTBOX_KIND_UNSET)
		kind = OUTBOX_KIND_EVENT;
	if (route->kind != OUTBOX_KIND_UNSET && route->kind != kind)
		return false;
	for (size_t i = 0; i < route->n_types; i++) {
		if (glob_match(route->types[i], type))
			return true;
	}
	return route->n_types == 0;
}

static int check_glob(const char *glob, struct outbox_error *err)
{
	char shown[80];

	if (!glob || !*glob)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: a type is empty; write a type or a glob such as order.*");
	text_shown(shown, sizeof(shown), glob);
	if (text_has_control(glob, strlen(glob)))
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"route: type \"%s\" has a control character or is not UTF-8; remove it",
			shown);
	if (utf8_length(glob) > OUTBOX_TYPE_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: type \"%s\" has %zu characters, at most %d; shorten it",
				   shown, utf8_length(glob), OUTBOX_TYPE_MAX);
	if (strpbrk(glob, "[]"))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: type \"%s\" has a bracket; globs know only * and ?",
				   shown);
	return OUTBOX_OK;
}

static int check_route(const struct outbox_route *route, struct outbox_error *err)
{
	if (route->kind < OUTBOX_KIND_UNSET || route->kind > OUTBOX_KIND_COMMAND)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: kind %d is unknown; use event or command", route->kind);
	if (route->n_types > GLOBS_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "route: %zu types, at most %d; use globs",
				   route->n_types, GLOBS_MAX);
	if (route->bands & ~(BANDS_ALL | OUTBOX_BAND_NONE) ||
	    (route->bands & OUTBOX_BAND_NONE && route->bands != OUTBOX_BAND_NONE))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: priority %u is unknown; use high, normal and low",
				   route->bands);
	if (route->nothing)
		return OUTBOX_OK;
	for (size_t i = 0; i < route->n_types; i++) {
		int r = check_glob(route->types[i], err);

		if (r != OUTBOX_OK)
			return r;
	}
	return OUTBOX_OK;
}

int route_check(const struct outbox_route *route, struct outbox_error *err)
{
	return error_names_field(check_route(route, err), err);
}

/* The smallest glob behind last in byte order, NULL when there is none. */
static const char *next_glob(const struct outbox_route *route, const char *last)
{
	const char *next = NULL;

	for (size_t i = 0; i < route->n_types; i++) {
		const char *glob = route->types[i];

		if ((!last || strcmp(glob, last) > 0) && (!next || strcmp(glob, next) < 0))
			next = glob;
	}
	return next;
}

/* Every band is said by saying nothing: programs that know no bands write the same. */
static void format_bands(unsigned bands, struct buf *out)
{
	const char *separator = "";

	if (!bands || bands == BANDS_ALL)
		return;
	buf_text(out, ",\"priority\":[");
	for (unsigned band = OUTBOX_BAND_HIGH; band <= OUTBOX_BAND_NONE; band <<= 1) {
		if (!(bands & band))
			continue;
		buf_printf(out, "%s\"%s\"", separator, band_name(band));
		separator = ",";
	}
	buf_text(out, "]");
}

/* Sorted and each glob once: the order in which someone wrote them is no change of routing. */
void route_format(const struct outbox_route *route, struct buf *out)
{
	const char *kind = route->kind == OUTBOX_KIND_UNSET ? ANY_KIND : kind_name(route->kind);
	const char *glob = NULL, *separator = "";

	/* No type is empty, so this text matches nothing, for programs that know no other word for it, too. */
	if (route->nothing) {
		buf_text(out, "{\"types\":[\"\"],\"kind\":\"" ANY_KIND "\",\"published\":false}");
		return;
	}
	buf_text(out, "{\"types\":[");
	while ((glob = next_glob(route, glob))) {
		buf_text(out, separator);
		json_append_string(out, glob, strlen(glob));
		separator = ",";
	}
	buf_printf(out, "],\"kind\":\"%s\",\"published\":%s", kind,
		   route->published_only ? "true" : "false");
	format_bands(route->bands, out);
	buf_text(out, "}");
}

static int take_types(const json_t *types, struct outbox_arena *arena, struct outbox_route *route,
		      struct outbox_error *err)
{
	const char **globs;
	size_t i, n = json_array_size(types);

	globs = outbox_arena_alloc(arena, (n ? n : 1) * sizeof(*globs));
	if (!globs)
		return outbox_fail(err, OUTBOX_ENOMEM, "route: out of memory");
	for (i = 0; i < n; i++) {
		const char *glob = json_string_value(json_array_get(types, i));

		if (!glob)
			return outbox_fail(err, OUTBOX_EPROTO, "route: type %zu is not a string",
					   i + 1);
		globs[i] = outbox_arena_text(arena, glob);
		if (!globs[i])
			return outbox_fail(err, OUTBOX_ENOMEM, "route: out of memory");
	}
	route->types = globs;
	route->n_types = n;
	return OUTBOX_OK;
}

static int take_bands(const json_t *list, unsigned *ret_bands, struct outbox_error *err)
{
	unsigned bands = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		unsigned band = name ? band_parse(name) : 0;

		if (!band)
			return outbox_fail(err, OUTBOX_EPROTO, "route: priority %zu is unknown",
					   i + 1);
		bands |= band;
	}
	if (list && !bands)
		return outbox_fail(err, OUTBOX_EPROTO, "route: priority is not a list of bands");
	*ret_bands = bands;
	return OUTBOX_OK;
}

static json_t *load(const char *text)
{
	errno = 0;
	return text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

int route_parse(const char *text, struct outbox_arena *arena, struct outbox_route *ret_route,
		struct outbox_error *err)
{
	json_auto_t *root = load(text);
	/* Out of memory, Jansson refuses good text or drops a part of it: only errno tells. */
	bool no_memory = errno == ENOMEM;
	const json_t *types = json_object_get(root, "types");
	const char *kind = json_string_value(json_object_get(root, "kind"));
	const json_t *published = json_object_get(root, "published");
	const json_t *bands = json_object_get(root, "priority");
	struct outbox_route route = { 0 };
	struct outbox_error cause;
	char shown[80];
	int r;

	if (no_memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "route: out of memory");
	if (!json_is_array(types) || !kind || !json_is_boolean(published) ||
	    json_object_size(root) != (bands ? 4 : 3))
		return outbox_fail(err, OUTBOX_EPROTO, "route: \"%s\" is not a stored routing",
				   text_shown(shown, sizeof(shown), text));
	route.kind =
		strcmp(kind, ANY_KIND) == 0 ? OUTBOX_KIND_UNSET : kind_parse(kind, UNKNOWN_KIND);
	if (route.kind == UNKNOWN_KIND)
		return outbox_fail(err, OUTBOX_EPROTO, "route: kind \"%s\" is unknown",
				   text_shown(shown, sizeof(shown), kind));
	route.published_only = json_is_true(published);
	r = take_types(types, arena, &route, err);
	if (r == OUTBOX_OK)
		r = take_bands(bands, &route.bands, err);
	if (r != OUTBOX_OK)
		return r;
	if (route.n_types == 1 && !*route.types[0])
		route = (struct outbox_route){ .nothing = true };
	if (route_check(&route, &cause) != OUTBOX_OK)
		return outbox_fail(err, OUTBOX_EPROTO, "%s", cause.message);
	*ret_route = route;
	return OUTBOX_OK;
}

int target_name_check(const char *name, struct outbox_error *err)
{
	char shown[80];
	size_t n = 0;

	if (name && name[0] >= 'a' && name[0] <= 'z')
		n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-");
	if (n > 0 && n <= OUTBOX_TARGET_NAME_MAX && !name[n])
		return OUTBOX_OK;
	return outbox_fail(
		err, OUTBOX_ECONFIG,
		"target: \"%s\" is not a name; use a lower-case letter and then up to %d of a-z, 0-9, _ "
		"and -",
		text_shown(shown, sizeof(shown), name), OUTBOX_TARGET_NAME_MAX - 1);
}
