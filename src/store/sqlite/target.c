/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "core/routing.h"
#include "store/sqlite/audit.h"
#include "store/sqlite/bands.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/receipt.h"
#include "store/sqlite/route.h"
#include "store/sqlite/target_start.h"

#include <string.h>

#define ROUTE_TEXT_MAX ((size_t)4 << 20)

struct known {
	bool there;
	int64_t version;
	bool same_route, hold, unordered, paused;
	struct sqlite_bands bands;
};

static int look(struct sqlite_store *s, const char *name, const char *route, struct known *known,
		struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r;

	r = sqlite_query(s, SQL_TARGET_GET, ARGS(ARG_TEXT(name)), &q, err);
	if (r == OUTBOX_OK)
		r = sqlite_step(s, q, &known->there, err);
	if (r != OUTBOX_OK || !known->there)
		return r;
	known->version = sqlite3_column_int64(q, 0);
	known->same_route = route && strcmp(sqlite_peek(q, 1, &r, err), route) == 0;
	known->hold = sqlite3_column_int(q, 2) != 0;
	known->unordered = sqlite3_column_int(q, 3) != 0;
	known->paused = sqlite3_column_int(q, 4) != 0;
	return r;
}

static int create_lane(const struct lane_op *op, int64_t version, int64_t start,
		       struct outbox_error *err)
{
	struct sqlite_store *s = op->s;
	struct receipt first = {
		.n = 1,
		.token = (int64_t)(s->random->next(s->random) >> 1),
		.settled_at = op->now,
		.route_version = version,
		.from_seq = start,
		.pos = start,
		.claim_end = start,
	};
	int r;

	r = sqlite_run(s, SQL_LANE_ADD, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)), NULL, err);
	return r == OUTBOX_OK ? receipt_append(op, NULL, &first, err) : r;
}

/* A band starts where its family's bands began. */
static int begin_of(struct sqlite_store *s, const struct outbox_target_def *def, struct start *where,
		    const struct sqlite_bands *bands, int64_t *ret_seq, struct outbox_error *err)
{
	bool band = def->band_of && strcmp(def->band_of, def->name) != 0;

	if (!bands->start && (!band || def->start == OUTBOX_START_TIME))
		return start_of(s, def, where, ret_seq, err);
	*ret_seq = bands->start;
	return OUTBOX_OK;
}

static int create(struct sqlite_store *s, const struct outbox_target_def *def, struct start *where,
		  const char *route, struct known *known, struct outbox_error *err)
{
	struct lane_op op = { .s = s, .target = def->name, .now = sqlite_now(s) };
	int64_t start, version;
	int r;

	r = begin_of(s, def, where, &known->bands, &start, err);
	if (r == OUTBOX_OK)
		r = sqlite_number(s, SQL_ROUTE_NEWEST, ARGS(ARG_TEXT(def->name)), 0, &version, err);
	if (r != OUTBOX_OK)
		return r;
	version++;
	r = sqlite_run(s, SQL_TARGET_ADD,
		       ARGS(ARG_TEXT(def->name), ARG_INT(version), ARG_TEXT(route),
			    ARG_INT(def->hold), ARG_INT(def->unordered), ARG_INT(op.now),
			    ARG_INT(start)),
		       NULL, err);
	if (r == OUTBOX_OK)
		r = sqlite_route_put(s, def->name, version, &def->route, &known->bands.plan, err);
	for (op.lane = 0; op.lane < s->lanes && r == OUTBOX_OK; op.lane++)
		r = create_lane(&op, version, start, err);
	known->version = version;
	return r;
}

static int change(struct sqlite_store *s, const struct outbox_target_def *def, const char *route,
		  struct known *known, struct outbox_error *err)
{
	int64_t version = known->version + !known->same_route;
	int r;

	known->version = version;
	if (known->same_route && known->hold == def->hold && known->unordered == def->unordered)
		return OUTBOX_OK;
	r = sqlite_run(s, SQL_TARGET_CHANGE,
		       ARGS(ARG_TEXT(def->name), ARG_INT(version), ARG_TEXT(route),
			    ARG_INT(def->hold), ARG_INT(def->unordered)),
		       NULL, err);
	if (r == OUTBOX_OK && !known->same_route)
		r = sqlite_route_put(s, def->name, version, &def->route, &known->bands.plan, err);
	/* What was parked may be first in its key now. Due too early is harmless: a claim looks. */
	if (r == OUTBOX_OK && (known->hold != def->hold || known->unordered != def->unordered))
		r = sqlite_run(s, SQL_DETOUR_UNPARK,
			       ARGS(ARG_TEXT(def->name), ARG_INT(sqlite_now(s))), NULL, err);
	return r;
}

int sqlite_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		      int64_t *ret_version, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf route = BUF_INIT(ROUTE_TEXT_MAX);
	struct sqlite_store *s = sqlite_of(store);
	struct known known = { 0 };
	struct start start;
	int r;

	r = target_name_check(def->name, err);
	if (r == OUTBOX_OK)
		r = route_check(&def->route, err);
	if (r != OUTBOX_OK)
		return r;
	route_format(&def->route, &route);
	if (route.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = start_look(s, def, &start, err);
	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	r = look(s, def->name, buf_str(&route), &known, err);
	if (r == OUTBOX_OK)
		r = sqlite_bands_plan(s, def, &known.bands, err);
	if (r == OUTBOX_OK)
		r = known.there ? change(s, def, buf_str(&route), &known, err)
				: create(s, def, &start, buf_str(&route), &known, err);
	if (r == OUTBOX_OK)
		r = dead_letter_put(s, def, err);
	if (r == OUTBOX_OK)
		r = sqlite_bands_note(s, def, &known.bands, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK && ret_version)
		*ret_version = known.version;
	return r;
}

static int pause_in(struct sqlite_store *s, const char *target, bool pause, const char *actor,
		    const char *reason, struct outbox_error *err)
{
	struct sqlite_audit_entry entry = { .actor = actor,
					    .action = pause ? "pause" : "resume",
					    .target = target,
					    .reason = reason };
	struct known known = { 0 };
	int r;

	r = look(s, target, NULL, &known, err);
	if (r != OUTBOX_OK)
		return r;
	if (!known.there)
		return sqlite_no_target(target, err);
	if (known.paused == pause)
		return OUTBOX_OK;
	r = sqlite_run(s, SQL_TARGET_PAUSE,
		       ARGS(ARG_TEXT(target), ARG_INT(pause), ARG_TEXT(pause ? actor : NULL),
			    ARG_TEXT(pause ? reason : NULL), ARG_TIME(pause ? sqlite_now(s) : 0),
			    ARG_TIME(pause ? 0 : sqlite_now(s))),
		       NULL, err);
	return r == OUTBOX_OK ? sqlite_audit_write(s, &entry, err) : r;
}

int sqlite_target_pause(struct outbox_store *store, const char *target, bool pause,
			const char *actor, const char *reason, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r;

	r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	return sqlite_end(s, pause_in(s, target, pause, actor, reason, err), err);
}

static int drop_in(struct sqlite_store *s, const char *target, const char *actor,
		   const char *reason, struct outbox_error *err)
{
	static const enum sqlite_statement steps[] = {
		SQL_SETTLED_NOTE, SQL_DROP_DETOURS,  SQL_DROP_RECEIPTS, SQL_DROP_LANES,
		SQL_DROP_WORKERS, SQL_DROP_UNSERVED, SQL_DROP_ROUTES,   SQL_DROP_TARGET,
	};
	struct sqlite_audit_entry entry = {
		.actor = actor, .action = "drop target", .target = target, .reason = reason
	};
	struct known known = { 0 };
	int r;

	r = look(s, target, NULL, &known, err);
	if (r == OUTBOX_OK && !known.there)
		r = sqlite_no_target(target, err);
	if (r == OUTBOX_OK)
		r = dead_letter_free(s, target, err);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == OUTBOX_OK; i++)
		r = sqlite_run(s, steps[i], ARGS(ARG_TEXT(target)), NULL, err);
	return r == OUTBOX_OK ? sqlite_audit_write(s, &entry, err) : r;
}

int sqlite_target_drop(struct outbox_store *store, const char *target, const char *actor,
		       const char *reason, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r;

	r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	return sqlite_end(s, drop_in(s, target, actor, reason, err), err);
}
