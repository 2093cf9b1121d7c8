/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "core/lifecycle.h"
#include "core/routing.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

#define ROUTE_TEXT_MAX ((size_t)4 << 20)

/* No type is empty. */
static const char *const no_types[] = { "" };
static const struct outbox_route nothing = { .types = no_types, .n_types = 1 };

int pg_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		  int64_t *ret_version, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf route = BUF_INIT(ROUTE_TEXT_MAX);
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	const struct outbox_route *to = def->route.nothing ? &nothing : &def->route;
	int r;

	route_format(&def->route, &route);
	if (route.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = pg_op(s, PG_WRITE,
		  "SELECT @outbox_register(ROW($1, $2, $3, $4, $5, $6, $7, NULL, $8, $9, $10, $11, $12, $13, $14)"
		  "::@outbox_registration, $15)",
		  ARGS(ARG_TEXT(def->name), ARG_TEXT(buf_str(&route)),
		       ARG_ARRAY(PG_TEXTS, to->types, to->n_types), ARG_TEXT(kind_names[to->kind]),
		       ARG_BOOL(to->published_only), ARG_INT4(def->route.bands),
		       ARG_TEXT(def->band_of), ARG_BOOL(def->hold), ARG_BOOL(def->unordered),
		       ARG_INT4(def->start), ARG_TIME(def->start_time), ARG_TEXT(def->dead_letter),
		       pg_new_token(s), pg_now(s), ARG_BOOL(def->paused)),
		  &row, err);
	if (r == OUTBOX_OK && ret_version)
		*ret_version = pg_int(row, 0, 0);
	return r;
}

int pg_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
		   struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r;

	r = pg_op(pg_of(store), PG_READ, "SELECT @outbox_wants_start($1)", ARGS(ARG_TEXT(target)),
		  &row, err);
	if (r == OUTBOX_OK)
		*ret_wants = pg_bool(row, 0, 0);
	return r;
}

int pg_bands(struct outbox_store *store, const char *target, unsigned *ret_bands,
	     struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	int r;

	r = pg_op(pg_of(store), PG_READ, "SELECT @outbox_bands($1)", ARGS(ARG_TEXT(target)), &row,
		  err);
	if (r == OUTBOX_OK)
		*ret_bands = (unsigned)pg_int(row, 0, 0);
	return r;
}

int pg_target_pause(struct outbox_store *store, const char *target, bool pause, const char *actor,
		    const char *reason, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);

	return pg_op(s, PG_WRITE, "SELECT @outbox_target_pause($1, $2, $3, $4, $5)",
		     ARGS(ARG_TEXT(target), ARG_BOOL(pause), ARG_TEXT(actor), ARG_TEXT(reason),
			  pg_now(s)),
		     NULL, err);
}

int pg_target_drop(struct outbox_store *store, const char *target, const char *actor,
		   const char *reason, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);

	return pg_op(s, PG_WRITE, "SELECT @outbox_target_drop($1, $2, $3, $4)",
		     ARGS(ARG_TEXT(target), ARG_TEXT(actor), ARG_TEXT(reason), pg_now(s)), NULL,
		     err);
}
