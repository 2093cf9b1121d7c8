/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a new target begins to read, and what gets its failures.
 *
 * To find the first message of a time the log is read from its old end, which takes seconds when it is
 * long. That is done before the write transaction, so that publishers do not wait; what was published
 * meanwhile is looked at inside it.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "core/routing.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/route.h"
#include "store/sqlite/schema.h"

#include <string.h>

/* ---- where a new target begins, and its dead letter --------------------------------------------- */

/* What was found of OUTBOX_START_TIME before the write transaction. */
struct target_start {
	int64_t first;  /* the first message of that time; 0: none so far */
	int64_t looked; /* up to here */
};

static int find_since(struct sqlite_store *s, const struct outbox_target_def *def,
		      struct target_start *start, struct outbox_error *err)
{
	return sqlite_number(s, SQL_LOG_SINCE,
			     ARGS(ARG_INT(def->start_time), ARG_INT(start->looked)), 0,
			     &start->first, err);
}

/* In a read transaction of its own. ECONFIG for a time in the future. */
static int target_start_find(struct sqlite_store *s, const struct outbox_target_def *def,
			     struct target_start *ret_start, struct outbox_error *err)
{
	struct target_start start = { 0 };
	char time[TIME_TEXT_MAX];
	int64_t known = 0;
	int r;

	*ret_start = start;
	if (def->start != OUTBOX_START_TIME)
		return OUTBOX_OK;
	r = sqlite_enter(s, DB_READ, err);
	if (r != OUTBOX_OK)
		return r;
	r = sqlite_number(s, SQL_TARGET_GET, ARGS(ARG_TEXT(def->name)), 0, &known, err);
	if (r == OUTBOX_OK && !known && def->start_time > sqlite_now(s))
		r = outbox_fail(err, OUTBOX_ECONFIG,
				"start: %s is in the future; a target can start at a time in the past, "
				"at oldest or now",
				time_format(def->start_time, time));
	if (r == OUTBOX_OK && !known)
		r = find_since(s, def, &start, err);
	if (r == OUTBOX_OK && !known && !start.first)
		r = sqlite_number(s, SQL_LOG_END, NULL, 0, &start.looked, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_start = start;
	return r;
}

/* In the write transaction: messages up to ret_seq are not for the new target. */
static int target_start_seq(struct sqlite_store *s, const struct outbox_target_def *def,
			    struct target_start *start, int64_t *ret_seq, struct outbox_error *err)
{
	int64_t settled = 0;
	int r = OUTBOX_OK;

	if (def->start == OUTBOX_START_TIME && !start->first)
		r = find_since(s, def, start, err);
	if (r != OUTBOX_OK)
		return r;
	if (def->start == OUTBOX_START_NOW || (def->start == OUTBOX_START_TIME && !start->first))
		return sqlite_number(s, SQL_LOG_END, NULL, 0, ret_seq, err);
	if (def->start == OUTBOX_START_UNSET) {
		r = sqlite_number(s, SQL_SETTLED_EVER, NULL, 0, &settled, err);
		if (r != OUTBOX_OK)
			return r;
		if (settled)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "it is new, and messages were already delivered here: say "
					   "where it starts, oldest, now or a time");
	}
	*ret_seq = def->start == OUTBOX_START_TIME ? start->first - 1 : 0;
	return OUTBOX_OK;
}

/* The dead letter of a target: its name in `link`, empty for none. ret_there: is there such a target? */
static int next_link(struct sqlite_store *s, char link[OUTBOX_TARGET_NAME_MAX + 1], bool *ret_there,
		     struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, SQL_TARGET_GET, ARGS(ARG_TEXT(link)), &q, err);

	*ret_there = sqlite_next(q, &r, err);
	if (*ret_there)
		sqlite3_snprintf(OUTBOX_TARGET_NAME_MAX + 1, link, "%s",
				 sqlite_peek(q, TARGET_DEAD_LETTER, &r, err));
	return r;
}

/* ECONFIG for one that is not registered or that leads back. */
static int dead_letter_put(struct sqlite_store *s, const struct outbox_target_def *def,
			   struct outbox_error *err)
{
	char link[OUTBOX_TARGET_NAME_MAX + 1];
	bool there = true;
	int r = OUTBOX_OK;

	sqlite3_snprintf(sizeof(link), link, "%s", def->dead_letter ? def->dead_letter : "");
	while (link[0] && r == OUTBOX_OK) {
		char name[sizeof(link)];

		if (strcmp(link, def->name) == 0)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "dead_letter: %s leads back to %s; a dead letter must end "
					   "somewhere",
					   def->dead_letter, def->name);
		memcpy(name, link, sizeof(name));
		r = next_link(s, link, &there, err);
		if (r == OUTBOX_OK && !there)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "dead_letter: no target \"%s\" is registered here; register it "
					   "first",
					   name);
	}
	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_TARGET_DEAD,
			       ARGS(ARG_TEXT(def->name), ARG_TEXT(def->dead_letter)), err);
	return r;
}

/* ECONFLICT when it is the dead letter of another target. */
static int dead_letter_free(struct sqlite_store *s, const char *target, struct outbox_error *err)
{
	char whose[OUTBOX_TARGET_NAME_MAX + 1];
	int r = sqlite_string(s, SQL_TARGET_DEAD_OF, ARGS(ARG_TEXT(target)), whose, sizeof(whose),
			      err);

	if (r != OUTBOX_OK || !whose[0])
		return r;
	return outbox_fail(
		err, OUTBOX_ECONFLICT,
		"target \"%s\" is the dead letter target of \"%s\"; remove that setting first, or drop "
		"\"%s\"",
		target, whose, whose);
}

int sqlite_wants_start(struct outbox_store *store, const char *target, bool *ret_wants,
		       struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int64_t version = 0, settled = 0;
	int r = sqlite_enter(s, DB_READ, err);

	if (r != OUTBOX_OK)
		return r;
	r = sqlite_number(s, SQL_TARGET_GET, ARGS(ARG_TEXT(target)), 0, &version, err);
	if (r == OUTBOX_OK)
		r = sqlite_number(s, SQL_SETTLED_EVER, NULL, 0, &settled, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK)
		*ret_wants = !version && settled;
	return r;
}

/* ---- the ops ------------------------------------------------------------------------------------ */

#define ROUTE_TEXT_MAX ((size_t)4 << 20)

struct known {
	bool there;
	int64_t version;
	bool same_route, hold, unordered, paused;
	struct sqlite_bands bands;
};

static int read_known(struct sqlite_store *s, const char *name, const char *route,
		      struct known *known, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, SQL_TARGET_GET, ARGS(ARG_TEXT(name)), &q, err);

	known->there = sqlite_next(q, &r, err);
	if (!known->there)
		return r;
	known->version = sqlite3_column_int64(q, TARGET_VERSION);
	known->same_route = route && strcmp(sqlite_peek(q, TARGET_ROUTE, &r, err), route) == 0;
	known->hold = sqlite3_column_int(q, TARGET_HOLD) != 0;
	known->unordered = sqlite3_column_int(q, TARGET_UNORDERED) != 0;
	known->paused = sqlite3_column_int(q, TARGET_PAUSED) != 0;
	return r;
}

static int create_lane(const struct lane_op *op, int64_t version, int64_t start,
		       struct outbox_error *err)
{
	struct sqlite_store *s = op->s;
	struct receipt first = {
		.n = 1,
		.fence_token = sqlite_token(s),
		.settled_at = op->now,
		.route_version = version,
		.from_seq = start,
		.pos = start,
		.claim_end = start,
	};
	int r = sqlite_run(s, SQL_LANE_ADD, ARGS(ARG_TEXT(op->target), ARG_INT(op->lane)), err);

	return r == OUTBOX_OK ? receipt_append(op, NULL, &first, err) : r;
}

/* A band starts where its family's bands began. */
static int find_begin(struct sqlite_store *s, const struct outbox_target_def *def,
		      struct target_start *where, const struct sqlite_bands *bands,
		      int64_t *ret_seq, struct outbox_error *err)
{
	bool band = def->band_of && strcmp(def->band_of, def->name) != 0;

	if (!bands->start && (!band || def->start == OUTBOX_START_TIME))
		return target_start_seq(s, def, where, ret_seq, err);
	*ret_seq = bands->start;
	return OUTBOX_OK;
}

static int create_target(struct sqlite_store *s, const struct outbox_target_def *def,
			 struct target_start *where, const char *route, struct known *known,
			 struct outbox_error *err)
{
	struct lane_op op = { .s = s, .target = def->name, .now = sqlite_now(s) };
	int64_t start, version;
	int r = find_begin(s, def, where, &known->bands, &start, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(s, SQL_ROUTE_NEWEST, ARGS(ARG_TEXT(def->name)), 0, &version, err);
	if (r != OUTBOX_OK)
		return r;
	version++;
	r = sqlite_run(s, SQL_TARGET_ADD,
		       ARGS(ARG_TEXT(def->name), ARG_INT(version), ARG_TEXT(route),
			    ARG_INT(def->hold), ARG_INT(def->unordered), ARG_INT(op.now),
			    ARG_INT(start)),
		       err);
	if (r == OUTBOX_OK)
		r = sqlite_route_put(s, def->name, version, &def->route, &known->bands.plan, err);
	for (op.lane = 0; op.lane < s->lanes && r == OUTBOX_OK; op.lane++)
		r = create_lane(&op, version, start, err);
	known->version = version;
	return r;
}

static int change_target(struct sqlite_store *s, const struct outbox_target_def *def,
			 const char *route, struct known *known, struct outbox_error *err)
{
	int64_t version = known->version + !known->same_route;
	int r;

	known->version = version;
	if (known->same_route && known->hold == def->hold && known->unordered == def->unordered)
		return OUTBOX_OK;
	r = sqlite_run(s, SQL_TARGET_CHANGE,
		       ARGS(ARG_TEXT(def->name), ARG_INT(version), ARG_TEXT(route),
			    ARG_INT(def->hold), ARG_INT(def->unordered)),
		       err);
	if (r == OUTBOX_OK && !known->same_route)
		r = sqlite_route_put(s, def->name, version, &def->route, &known->bands.plan, err);
	/* What was parked may be first in its key now. Due too early is harmless: a claim looks. */
	if (r == OUTBOX_OK && (known->hold != def->hold || known->unordered != def->unordered))
		r = sqlite_run(s, SQL_DETOUR_UNPARK,
			       ARGS(ARG_TEXT(def->name), ARG_INT(sqlite_now(s))), err);
	return r;
}

static int pause_in(struct sqlite_store *s, const char *target, bool pause, const char *actor,
		    const char *reason, struct outbox_error *err)
{
	struct outbox_audit entry = { .actor = actor,
				      .action = pause ? "pause" : "resume",
				      .target = target,
				      .reason = reason };
	struct known known = { 0 };
	int r = read_known(s, target, NULL, &known, err);

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
		       err);
	return r == OUTBOX_OK ? sqlite_audit_write(s, &entry, err) : r;
}

/* The target is there, as it is to be: what follows from that. */
static int finish_put(struct sqlite_store *s, const struct outbox_target_def *def,
		      const struct known *known, struct outbox_error *err)
{
	int r = dead_letter_put(s, def, err);

	if (r == OUTBOX_OK && !known->there && def->paused)
		r = pause_in(s, def->name, true, OUTBOX_PAUSED_BY_CONFIGURATION, "paused: true", err);
	if (r == OUTBOX_OK)
		r = sqlite_bands_note(s, def, &known->bands, err);
	if (r == OUTBOX_OK && !(known->there && known->same_route))
		r = sqlite_cancel_for(s, def->name, err);
	return r;
}

int sqlite_target_put(struct outbox_store *store, const struct outbox_target_def *def,
		      int64_t *ret_version, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf route = BUF_INIT(ROUTE_TEXT_MAX);
	struct sqlite_store *s = sqlite_of(store);
	struct known known = { 0 };
	struct target_start start;
	int r;

	route_format(&def->route, &route);
	if (route.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = target_start_find(s, def, &start, err);
	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_WRITE, err);
	if (r != OUTBOX_OK)
		return r;
	r = read_known(s, def->name, buf_str(&route), &known, err);
	if (r == OUTBOX_OK)
		r = sqlite_bands_plan(s, def, &known.bands, err);
	if (r == OUTBOX_OK)
		r = known.there ? change_target(s, def, buf_str(&route), &known, err)
				: create_target(s, def, &start, buf_str(&route), &known, err);
	if (r == OUTBOX_OK)
		r = finish_put(s, def, &known, err);
	r = sqlite_end(s, r, err);
	if (r == OUTBOX_OK && ret_version)
		*ret_version = known.version;
	return r;
}

int sqlite_target_pause(struct outbox_store *store, const char *target, bool pause,
			const char *actor, const char *reason, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_WRITE, err);

	return r ? r : sqlite_end(s, pause_in(s, target, pause, actor, reason, err), err);
}

static int drop_in(struct sqlite_store *s, const char *target, const char *actor,
		   const char *reason, struct outbox_error *err)
{
	static const enum sqlite_statement steps[] = {
		SQL_SETTLED_NOTE, SQL_DROP_DETOURS,  SQL_DROP_RECEIPTS, SQL_DROP_LANES,
		SQL_DROP_WORKERS, SQL_DROP_UNSERVED, SQL_DROP_ROUTES,   SQL_DROP_TARGET,
	};
	struct outbox_audit entry = {
		.actor = actor, .action = "drop target", .target = target, .reason = reason
	};
	struct known known = { 0 };
	int r = read_known(s, target, NULL, &known, err);

	if (r == OUTBOX_OK && !known.there)
		r = sqlite_no_target(target, err);
	if (r == OUTBOX_OK)
		r = dead_letter_free(s, target, err);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == OUTBOX_OK; i++)
		r = sqlite_run(s, steps[i], ARGS(ARG_TEXT(target)), err);
	return r == OUTBOX_OK ? sqlite_audit_write(s, &entry, err) : r;
}

int sqlite_target_drop(struct outbox_store *store, const char *target, const char *actor,
		       const char *reason, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_WRITE, err);

	return r ? r : sqlite_end(s, drop_in(s, target, actor, reason, err), err);
}
