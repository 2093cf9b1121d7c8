/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite/route.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/routing.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"

#include <stdio.h>

#define ROUTE_TEXT_MAX ((size_t)4 << 20)

/* A target's family and pieces, as they are. */
static int state_of(struct sqlite_store *s, const char *name,
		    char family[OUTBOX_TARGET_NAME_MAX + 1], struct band_state *state,
		    bool *ret_there, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const struct sqlite_route *route;
	const char *band_of_name;
	int r = sqlite_query(s, SQL_TARGET_GET, ARGS(ARG_TEXT(name)), &q, err);

	*ret_there = sqlite_next(q, &r, err);
	if (!*ret_there)
		return r;
	r = sqlite_route_get(s, name, sqlite3_column_int64(q, 0), &route, err);
	if (r != OUTBOX_OK)
		return r;
	state->plan = route->bands;
	state->band_of = NULL;
	band_of_name = sqlite_look(q, TARGET_BAND_OF, &r, err);
	if (band_of_name) {
		snprintf(family, OUTBOX_TARGET_NAME_MAX + 1, "%s", band_of_name);
		state->band_of = family;
	}
	return r;
}

int sqlite_bands_plan(struct sqlite_store *s, const struct outbox_target_def *def,
		      struct sqlite_bands *b, struct outbox_error *err)
{
	char family[OUTBOX_TARGET_NAME_MAX + 1];
	struct band_state leader = { 0 };
	bool led = false;
	int r = sqlite_number(s, SQL_LOG_END, NULL, 0, &b->log_end, err);

	if (r == OUTBOX_OK)
		r = state_of(s, def->name, b->name, &b->known, &b->there, err);
	if (r == OUTBOX_OK && def->band_of)
		r = state_of(s, def->band_of, family, &leader, &led, err);
	if (r != OUTBOX_OK)
		return r;
	return band_plan_next(def, b->there ? &b->known : NULL, led ? &leader : NULL, b->log_end,
			      &b->plan, &b->start, err);
}

/* Nothing new for this one: it has what it has. */
static int end_band(struct sqlite_store *s, const char *name, int64_t version, const char *text,
		    int64_t log_end, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf out = BUF_INIT(ROUTE_TEXT_MAX);
	struct outbox_arena *arena = outbox_arena_new(4 * ROUTE_TEXT_MAX);
	const struct sqlite_route *known;
	struct outbox_route route;
	struct band_plan plan;
	int r = arena ? route_parse(text, arena, &route, err)
		      : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");

	if (r == OUTBOX_OK)
		r = sqlite_route_get(s, name, version, &known, err);
	if (r == OUTBOX_OK) {
		plan = known->bands;
		r = band_plan_add(&plan, log_end, OUTBOX_BAND_NONE, err);
	}
	if (r == OUTBOX_OK) {
		route.bands = OUTBOX_BAND_NONE;
		route_format(&route, &out);
		r = sqlite_run(s, SQL_BAND_END,
			       ARGS(ARG_TEXT(name), ARG_INT(version + 1), ARG_TEXT(buf_str(&out))),
			       err);
	}
	if (r == OUTBOX_OK)
		r = sqlite_route_put(s, name, version + 1, &route, &plan, err);
	outbox_arena_free(arena);
	return r;
}

static int end_family(struct sqlite_store *s, const char *leader, int64_t log_end,
		      struct outbox_error *err)
{
	char name[OUTBOX_TARGET_NAME_MAX + 1] = "";
	int r = OUTBOX_OK;

	while (r == OUTBOX_OK) {
		_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
		_cleanup_(buf_deinit) struct buf text = BUF_INIT(ROUTE_TEXT_MAX);
		int64_t version = 0;

		r = sqlite_query(s, SQL_BAND_FAMILY, ARGS(ARG_TEXT(leader), ARG_TEXT(name)), &q, err);
		if (!sqlite_next(q, &r, err))
			break;
		snprintf(name, sizeof(name), "%s", sqlite_peek(q, 0, &r, err));
		version = sqlite3_column_int64(q, 1);
		buf_text(&text, sqlite_peek(q, 2, &r, err));
		if (text.failed)
			r = outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
		sqlite3_reset(q);
		if (r == OUTBOX_OK)
			r = end_band(s, name, version, buf_str(&text), log_end, err);
	}
	return r;
}

int sqlite_bands_note(struct sqlite_store *s, const struct outbox_target_def *def,
		      const struct sqlite_bands *b, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (def->band_of || (b->there && b->known.band_of))
		r = sqlite_run(s, SQL_BAND_SET, ARGS(ARG_TEXT(def->name), ARG_TEXT(def->band_of)),
			       err);
	if (r == OUTBOX_OK && b->there && band_plan_ends(def, &b->known))
		r = end_family(s, def->name, b->log_end, err);
	return r;
}

static int find_bands(struct sqlite_store *s, const char *target, unsigned *ret_bands,
		      struct outbox_error *err)
{
	static const unsigned bands[] = { OUTBOX_BAND_HIGH, OUTBOX_BAND_LOW };
	char name[OUTBOX_TARGET_NAME_MAX + 32];
	unsigned found = 0;
	int64_t there;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < ARRAY_SIZE(bands) && r == OUTBOX_OK; i++) {
		snprintf(name, sizeof(name), "%.63s-%s", target, band_name(bands[i]));
		r = sqlite_number(s, SQL_BAND_NAMED, ARGS(ARG_TEXT(name), ARG_TEXT(target)), 0,
				  &there, err);
		if (r == OUTBOX_OK && there)
			found |= bands[i];
	}
	if (r == OUTBOX_OK)
		*ret_bands = found;
	return r;
}

int sqlite_bands(struct outbox_store *store, const char *target, unsigned *ret_bands,
		 struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_READ, err);

	return r ? r : sqlite_end(s, find_bands(s, target, ret_bands, err), err);
}
