/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/route.h"

#include "base/cleanup.h"
#include "core/lifecycle.h"

/* As text they have 256 KiB at most; parsed, no more than that again and the pointers. */
#define HEADERS_MEMORY ((size_t)1 << 20)

#include <stdlib.h>
#include <string.h>

static struct sqlite_route *route_free(struct sqlite_route *route)
{
	if (!route)
		return NULL;
	for (size_t i = 0; i < route->route.n_types; i++)
		free(route->globs[i]);
	free(route->globs);
	for (size_t i = 0; i < route->route.n_headers; i++)
		free(route->headers[i]);
	free(route->headers);
	outbox_arena_free(route->scratch);
	free(route->target);
	free(route);
	return NULL;
}
DEFINE_CLEANUP(struct sqlite_route *, route_free)

struct sqlite_route *sqlite_routes_free(struct sqlite_route *routes)
{
	while (routes) {
		struct sqlite_route *next = routes->next;

		route_free(routes);
		routes = next;
	}
	return NULL;
}

static int add_text(const char *text, char ***list, size_t *count, struct outbox_error *err)
{
	char **more = realloc(*list, (*count + 1) * sizeof(*more));

	if (more)
		*list = more;
	if (!more || !(more[*count] = strdup(text)))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	(*count)++;
	return OUTBOX_OK;
}

static int add_rule(struct sqlite_route *route, sqlite3_stmt *q, struct outbox_error *err)
{
	int r = OUTBOX_OK;
	const char *glob = sqlite_peek(q, 0, &r, err);
	const char *kind = sqlite_peek(q, 1, &r, err);

	if (r == OUTBOX_OK)
		r = add_text(glob, &route->globs, &route->route.n_types, err);
	if (r != OUTBOX_OK)
		return r;
	route->route.types = (const char *const *)route->globs;
	route->route.kind = kind_parse(kind, OUTBOX_KIND_UNSET);
	route->route.published_only = sqlite3_column_int(q, 2) != 0;
	return OUTBOX_OK;
}

static int load(struct sqlite_store *s, struct sqlite_route *route, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, SQL_ROUTE_GET,
			     ARGS(ARG_TEXT(route->target), ARG_INT(route->version)), &q, err);

	while (sqlite_next(q, &r, err))
		r = add_rule(route, q, err);
	if (r == OUTBOX_OK && !route->route.n_types)
		r = outbox_fail(err, OUTBOX_EPROTO,
				"outbox_route has no rules for version %lld of target %s",
				(long long)route->version, route->target);
	return r;
}

static int load_headers(struct sqlite_store *s, struct sqlite_route *route, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, SQL_ROUTE_HEADERS,
			     ARGS(ARG_TEXT(route->target), ARG_INT(route->version)), &q, err);

	while (sqlite_next(q, &r, err)) {
		const char *header = sqlite_peek(q, 0, &r, err);

		if (r == OUTBOX_OK)
			r = add_text(header, &route->headers, &route->route.n_headers, err);
	}
	if (r != OUTBOX_OK || !route->route.n_headers)
		return r;
	route->route.headers = (const char *const *)route->headers;
	route->scratch = outbox_arena_new(HEADERS_MEMORY);
	return route->scratch ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

/* The first piece's place means nothing to readers of the log; it is stored negated, so as not to get in their way. */
static int load_bands(struct sqlite_store *s, struct sqlite_route *route, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct band_plan *plan = &route->bands;
	int r = sqlite_query(s, SQL_BAND_GET,
			     ARGS(ARG_TEXT(route->target), ARG_INT(route->version)), &q, err);

	while (sqlite_next(q, &r, err)) {
		if (plan->count == BAND_PIECES_MAX)
			return outbox_fail(err, OUTBOX_EPROTO,
					   "outbox_band has too many rows for target %s",
					   route->target);
		plan->pieces[plan->count++] =
			(struct band_piece){ .above = sqlite3_column_int64(q, 0),
					     .bands = (unsigned)sqlite3_column_int(q, 1) };
	}
	if (plan->count && plan->pieces[0].above < 0)
		plan->pieces[0].above = -plan->pieces[0].above;
	return r;
}

int sqlite_route_get(struct sqlite_store *s, const char *target, int64_t version,
		     const struct sqlite_route **ret_route, struct outbox_error *err)
{
	_cleanup_(route_freep) struct sqlite_route *route = NULL;
	int r;

	for (struct sqlite_route *known = s->routes; known; known = known->next) {
		if (known->version == version && strcmp(known->target, target) == 0) {
			*ret_route = known;
			return OUTBOX_OK;
		}
	}
	route = calloc(1, sizeof(*route));
	if (!route || !(route->target = strdup(target)))
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	route->version = version;
	route->store = s;
	r = load(s, route, err);
	if (r == OUTBOX_OK)
		r = load_bands(s, route, err);
	if (r == OUTBOX_OK)
		r = load_headers(s, route, err);
	if (r != OUTBOX_OK)
		return r;
	route->everything = route->route.n_types == 1 && strcmp(route->globs[0], "*") == 0 &&
			    !route->route.kind && !route->route.published_only &&
			    !route->bands.count && !route->route.n_headers;
	route->next = s->routes;
	s->routes = route;
	*ret_route = route;
	route = NULL;
	return OUTBOX_OK;
}

static int put_header(struct sqlite_store *s, const char *target, int64_t version,
		      const char *condition, struct outbox_error *err)
{
	size_t size = strcspn(condition, "=");
	const char *glob = condition + size + (condition[size] != 0);

	return sqlite_run(s, SQL_ROUTE_HEADER_PUT,
			  ARGS(ARG_TEXT(target), ARG_INT(version), ARG_STRING(condition, size),
			       ARG_TEXT(glob)),
			  err);
}

int sqlite_route_put(struct sqlite_store *s, const char *target, int64_t version,
		     const struct outbox_route *route, const struct band_plan *bands,
		     struct outbox_error *err)
{
	size_t n = route->n_types ? route->n_types : 1;
	int r = OUTBOX_OK;

	if (route->nothing) /* no type is empty */
		return sqlite_run(s, SQL_ROUTE_PUT,
				  ARGS(ARG_TEXT(target), ARG_INT(version), ARG_TEXT(""),
				       ARG_TEXT(NULL), ARG_INT(0)),
				  err);

	for (size_t i = 0; i < n && r == OUTBOX_OK; i++)
		r = sqlite_run(s, SQL_ROUTE_PUT,
			       ARGS(ARG_TEXT(target), ARG_INT(version),
				    ARG_TEXT(route->n_types ? route->types[i] : "*"),
				    ARG_TEXT(kind_names[route->kind]),
				    ARG_INT(route->published_only)),
			       err);
	for (size_t i = 0; i < route->n_headers && r == OUTBOX_OK; i++)
		r = put_header(s, target, version, route->headers[i], err);
	for (size_t i = 0; i < bands->count && r == OUTBOX_OK; i++)
		r = sqlite_run(s, SQL_BAND_PUT,
			       ARGS(ARG_TEXT(target), ARG_INT(version),
				    ARG_INT(i ? bands->pieces[i].above : -bands->pieces[i].above),
				    ARG_INT(bands->pieces[i].bands)),
			       err);
	return r;
}
