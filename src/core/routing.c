/* SPDX-License-Identifier: Apache-2.0 */

#include "core/routing.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"
#include "core/bands.h"
#include "core/json.h"
#include "core/lifecycle.h"
#include "core/message.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#define GLOBS_MAX 256

#define ANY_KIND "any" /* in a stored routing */
#define UNKNOWN_KIND -1

bool route_match_fields(const struct outbox_route *route, const char *type, int kind, bool published)
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

/* The length of the name in front of the = of a condition. */
static size_t name_size(const char *condition)
{
	return strcspn(condition, "=");
}

static bool same_name(const char *condition, const char *other)
{
	size_t size = name_size(condition);

	return size == name_size(other) && strncasecmp(condition, other, size) == 0;
}

static bool is_met(const char *condition, const struct outbox_header *headers, size_t n)
{
	size_t size = name_size(condition);

	for (size_t i = 0; i < n; i++) {
		const char *name = headers[i].name;

		if (strlen(name) == size && strncasecmp(condition, name, size) == 0 &&
		    glob_match(condition + size + 1, headers[i].value))
			return true;
	}
	return false;
}

bool route_match_headers(const struct outbox_route *route, const struct outbox_header *headers,
			 size_t n)
{
	for (size_t i = 0; i < route->n_headers; i++) {
		bool met = false;

		for (size_t j = 0; j < route->n_headers && !met; j++)
			met = same_name(route->headers[i], route->headers[j]) &&
			      is_met(route->headers[j], headers, n);
		if (!met)
			return false;
	}
	return true;
}

bool route_match(const struct outbox_route *route, const struct outbox_message *message)
{
	return route_match_fields(route, message->type, message->kind, message->published != 0) &&
	       route_match_headers(route, message->headers, message->n_headers);
}

/* what: "type" or "header" */
static int check_glob(const char *what, const char *glob, struct outbox_error *err)
{
	char shown[80];

	text_shown(shown, sizeof(shown), glob);
	if (text_has_control(glob, strlen(glob)))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: %s \"%s\" has a control character or is not UTF-8; remove it",
				   what, shown);
	if (utf8_length(glob) > OUTBOX_TYPE_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: %s \"%s\" has %zu characters, at most %d; shorten it",
				   what, shown, utf8_length(glob), OUTBOX_TYPE_MAX);
	if (strpbrk(glob, "[]"))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: %s \"%s\" has a bracket; globs know only * and ?", what,
				   shown);
	return OUTBOX_OK;
}

static int check_type(const char *glob, struct outbox_error *err)
{
	if (!glob || !*glob)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: a type is empty; write a type or a glob such as order.*");
	return check_glob("type", glob, err);
}

static int check_header(const char *condition, struct outbox_error *err)
{
	size_t size = condition ? name_size(condition) : 0;
	char shown[80], name[OUTBOX_TYPE_MAX + 1];
	struct outbox_error cause = OUTBOX_ERROR_INIT;
	int r;

	text_shown(shown, sizeof(shown), condition ? condition : "");
	if (!size || !condition[size] || !condition[size + 1])
		return outbox_fail(
			err, OUTBOX_ECONFIG,
			"route: header \"%s\" is not NAME=GLOB; write tenant=acme, or tenant=* for "
			"any value",
			shown);
	if (strcspn(condition, "*?") < size)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: header \"%s\" has a pattern for its name; write each name",
				   shown);
	r = check_glob("header", condition, err);
	if (r != OUTBOX_OK)
		return r;
	if (size >= sizeof(name))
		size = sizeof(name) - 1; /* then it has more than a name has */
	memcpy(name, condition, size);
	name[size] = '\0';
	if (error_names_field(header_name_check(name, &cause), &cause) == OUTBOX_OK)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_ECONFIG, "route: header \"%s\": %s", shown,
			   error_rest(&cause));
}

static int check_route(const struct outbox_route *route, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (route->kind < OUTBOX_KIND_UNSET || route->kind > OUTBOX_KIND_COMMAND)
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: kind %d is unknown; use event or command", route->kind);
	if (route->n_types > GLOBS_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "route: %zu types, at most %d; use globs",
				   route->n_types, GLOBS_MAX);
	if (route->n_headers > GLOBS_MAX)
		return outbox_fail(err, OUTBOX_ECONFIG, "route: %zu headers, at most %d; use globs",
				   route->n_headers, GLOBS_MAX);
	if (route->bands & ~(BANDS_ALL | OUTBOX_BAND_NONE) ||
	    (route->bands & OUTBOX_BAND_NONE && route->bands != OUTBOX_BAND_NONE))
		return outbox_fail(err, OUTBOX_ECONFIG,
				   "route: priority %u is unknown; use high, normal and low",
				   route->bands);
	if (route->nothing)
		return OUTBOX_OK;
	for (size_t i = 0; i < route->n_types && r == OUTBOX_OK; i++)
		r = check_type(route->types[i], err);
	for (size_t i = 0; i < route->n_headers && r == OUTBOX_OK; i++)
		r = check_header(route->headers[i], err);
	return r;
}

int route_check(const struct outbox_route *route, struct outbox_error *err)
{
	return error_names_field(check_route(route, err), err);
}

/* The smallest glob behind last in byte order, NULL when there is none. */
static const char *next_glob(const char *const *globs, size_t n, const char *last)
{
	const char *next = NULL;

	for (size_t i = 0; i < n; i++) {
		const char *glob = globs[i];

		if ((!last || strcmp(glob, last) > 0) && (!next || strcmp(glob, next) < 0))
			next = glob;
	}
	return next;
}

/* Sorted and each once: the order in which someone wrote them is no change of routing. */
static void format_globs(const char *name, const char *const *globs, size_t n, struct buf *out)
{
	const char *glob = NULL, *separator = "";

	buf_printf(out, "\"%s\":[", name);
	while ((glob = next_glob(globs, n, glob))) {
		buf_text(out, separator);
		json_append_string(out, glob, strlen(glob));
		separator = ",";
	}
	buf_text(out, "]");
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

/* What is not asked for is left out, where earlier programs did not know it: they write the same. */
void route_format(const struct outbox_route *route, struct buf *out)
{
	const char *kind = route->kind == OUTBOX_KIND_UNSET ? ANY_KIND : kind_name(route->kind);

	/* No type is empty, so this text matches nothing, for programs that know no other word for it, too. */
	if (route->nothing) {
		buf_text(out, "{\"types\":[\"\"],\"kind\":\"" ANY_KIND "\",\"published\":false}");
		return;
	}
	buf_text(out, "{");
	format_globs("types", route->types, route->n_types, out);
	buf_printf(out, ",\"kind\":\"%s\",\"published\":%s", kind,
		   route->published_only ? "true" : "false");
	if (route->n_headers) {
		buf_text(out, ",");
		format_globs("headers", route->headers, route->n_headers, out);
	}
	format_bands(route->bands, out);
	buf_text(out, "}");
}

/* what: for the error */
static int take_globs(const char *what, const json_t *list, struct outbox_arena *arena,
		      const char *const **ret_globs, size_t *ret_count, struct outbox_error *err)
{
	const char **globs;
	size_t i, n = json_array_size(list);

	globs = outbox_arena_alloc(arena, (n ? n : 1) * sizeof(*globs));
	if (!globs)
		return outbox_fail(err, OUTBOX_ENOMEM, "route: out of memory");
	for (i = 0; i < n; i++) {
		const char *glob = json_string_value(json_array_get(list, i));

		if (!glob)
			return outbox_fail(err, OUTBOX_EPROTO, "route: %s %zu is not a string",
					   what, i + 1);
		globs[i] = outbox_arena_text(arena, glob);
		if (!globs[i])
			return outbox_fail(err, OUTBOX_ENOMEM, "route: out of memory");
	}
	*ret_globs = globs;
	*ret_count = n;
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

static bool is_ours(const json_t *root)
{
	const json_t *headers = json_object_get(root, "headers");
	size_t size = json_object_get(root, "priority") ? 4 : 3;

	return json_is_array(json_object_get(root, "types")) &&
	       json_is_string(json_object_get(root, "kind")) &&
	       json_is_boolean(json_object_get(root, "published")) &&
	       (!headers || json_array_size(headers) > 0) &&
	       json_object_size(root) == size + (headers ? 1 : 0);
}

int route_parse(const char *text, struct outbox_arena *arena, struct outbox_route *ret_route,
		struct outbox_error *err)
{
	json_auto_t *root = load(text);
	/* Out of memory, Jansson refuses good text or drops a part of it: only errno tells. */
	bool no_memory = errno == ENOMEM;
	const json_t *headers = json_object_get(root, "headers");
	struct outbox_route route = { 0 };
	struct outbox_error cause;
	const char *kind;
	char shown[80];
	int r;

	if (no_memory)
		return outbox_fail(err, OUTBOX_ENOMEM, "route: out of memory");
	if (!is_ours(root))
		return outbox_fail(err, OUTBOX_EPROTO, "route: \"%s\" is not a stored routing",
				   text_shown(shown, sizeof(shown), text));
	kind = json_string_value(json_object_get(root, "kind"));
	route.kind =
		strcmp(kind, ANY_KIND) == 0 ? OUTBOX_KIND_UNSET : kind_parse(kind, UNKNOWN_KIND);
	if (route.kind == UNKNOWN_KIND)
		return outbox_fail(err, OUTBOX_EPROTO, "route: kind \"%s\" is unknown",
				   text_shown(shown, sizeof(shown), kind));
	route.published_only = json_is_true(json_object_get(root, "published"));
	r = take_globs("type", json_object_get(root, "types"), arena, &route.types, &route.n_types,
		       err);
	if (r == OUTBOX_OK && headers)
		r = take_globs("header", headers, arena, &route.headers, &route.n_headers, err);
	if (r == OUTBOX_OK)
		r = take_bands(json_object_get(root, "priority"), &route.bands, err);
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
