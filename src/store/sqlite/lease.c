/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases say who should work on a lane, no more: the receipts' tokens decide who may. So a clock that
 * jumps, or an owner that was stopped for an hour, costs duplicates of work and never correctness.
 *
 * Shares are worked out from the list of workers that are alive, in the order of their names, so that
 * all of them come to the same numbers without talking to each other.
 */
#include "base/cleanup.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

/* Lanes divided by live workers, the remainder to the first ones by name. */
static int work_out_share(struct sqlite_store *s, const struct outbox_lease_request *request,
			  struct outbox_lease *lease, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t workers, rank;
	int r;

	if (request->leaving)
		return OUTBOX_OK;
	r = sqlite_query(s, SQL_WORKER_RANK,
			 ARGS(ARG_TEXT(request->target), ARG_TEXT(request->owner)), &q, err);
	if (!sqlite_next(q, &r, err))
		return r;
	workers = sqlite3_column_int64(q, 0);
	rank = sqlite3_column_int64(q, 1);
	if (workers > 0)
		lease->share = (int)(lease->total / workers + (rank < lease->total % workers));
	return OUTBOX_OK;
}

static int keep_worker(struct sqlite_store *s, const struct outbox_lease_request *request,
		       bool leaving, outbox_time now, struct outbox_error *err)
{
	if (leaving)
		return sqlite_run(s, SQL_WORKER_FORGET,
				  ARGS(ARG_TEXT(request->target), ARG_TEXT(request->owner)), err);
	return sqlite_run(s, SQL_WORKER_PUT,
			  ARGS(ARG_TEXT(request->target), ARG_TEXT(request->owner),
			       ARG_INT(now + request->duration), ARG_TEXT(request->outage),
			       ARG_TIME(request->outage ? now - request->outage_age : 0),
			       ARG_TEXT(request->place)),
			  err);
}

/* Does a living worker that was here before send elsewhere? */
static int find_elsewhere(struct sqlite_store *s, const struct outbox_lease_request *request,
			  struct outbox_lease *lease, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	const char *place, *owner = NULL;
	int r;

	if (request->leaving)
		return OUTBOX_OK;
	r = sqlite_query(s, SQL_WORKER_ELSEWHERE,
			 ARGS(ARG_TEXT(request->target), ARG_TEXT(request->owner),
			      ARG_TEXT(request->place)),
			 &q, err);
	if (!sqlite_next(q, &r, err))
		return r;
	place = sqlite_look(q, 0, &r, err);
	if (r == OUTBOX_OK)
		owner = sqlite_look(q, 1, &r, err);
	if (r == OUTBOX_OK)
		store_lease_elsewhere(lease, place, owner);
	return r;
}

/* Renew what we hold, take what is free, count all lanes on the way. */
static int walk_lanes(struct sqlite_store *s, const struct outbox_lease_request *request,
		      outbox_time now, struct outbox_lease *lease, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	bool held[OUTBOX_LANES_MAX], vacant[OUTBOX_LANES_MAX];
	int lanes[OUTBOX_LANES_MAX], n = 0, holds = 0;
	int r = sqlite_query(s, SQL_LANE_LIST,
			     ARGS(ARG_TEXT(request->target), ARG_TEXT(request->owner), ARG_INT(now)),
			     &q, err);

	for (; n < OUTBOX_LANES_MAX && sqlite_next(q, &r, err); n++) {
		lanes[n] = sqlite3_column_int(q, 0);
		held[n] = sqlite3_column_int(q, 1) != 0;
		vacant[n] = sqlite3_column_int(q, 2) != 0;
		holds += held[n];
	}
	lease->total = n;
	if (r == OUTBOX_OK)
		r = work_out_share(s, request, lease, err);
	for (int i = 0; r == OUTBOX_OK && i < n; i++) {
		if (!held[i] && !(vacant[i] && holds < lease->share))
			continue;
		holds += !held[i];
		lease->lanes[lease->count++] = lanes[i];
		r = sqlite_run(s, SQL_LANE_HOLD,
			       ARGS(ARG_TEXT(request->target), ARG_INT(lanes[i]),
				    ARG_TEXT(request->owner), ARG_INT(now + request->duration)),
			       err);
	}
	return r;
}

static int look_at_target(struct sqlite_store *s, const struct outbox_lease_request *request,
			  struct outbox_lease *lease, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(s, SQL_TARGET_GET, ARGS(ARG_TEXT(request->target)), &q, err);

	if (!sqlite_next(q, &r, err))
		return r == OUTBOX_OK ? sqlite_no_target(request->target, err) : r;
	lease->stale_route = sqlite3_column_int64(q, TARGET_VERSION) != request->route_version;
	lease->open_since = sqlite3_column_int64(q, TARGET_OPEN_SINCE);
	return OUTBOX_OK;
}

static int lease_in(struct sqlite_store *s, const struct outbox_lease_request *request,
		    struct outbox_lease *lease, struct outbox_error *err)
{
	outbox_time now = sqlite_now(s);
	int64_t total;
	bool none;
	int r = look_at_target(s, request, lease, err);

	if (r == OUTBOX_OK)
		r = sqlite_run(s, SQL_WORKER_EXPIRE, ARGS(ARG_TEXT(request->target), ARG_INT(now)),
			       err);
	if (r == OUTBOX_OK)
		r = find_elsewhere(s, request, lease, err);
	none = lease->stale_route || lease->elsewhere[0];
	if (r == OUTBOX_OK)
		r = keep_worker(s, request, request->leaving || none, now, err);
	if (r != OUTBOX_OK)
		return r;
	if (none) {
		r = sqlite_number(s, SQL_LANE_COUNT, ARGS(ARG_TEXT(request->target)), 0, &total, err);
		if (r == OUTBOX_OK)
			lease->total = (int)total;
		return r;
	}
	return walk_lanes(s, request, now, lease, err);
}

int sqlite_lease(struct outbox_store *store, const struct outbox_lease_request *request,
		 struct outbox_lease *ret_lease, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_lease lease = { 0 };
	int r = sqlite_in_place(s, err);

	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_WRITE, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, lease_in(s, request, &lease, err), err);
	if (r == OUTBOX_OK)
		*ret_lease = lease;
	return r;
}

static int write_unserved(struct sqlite_store *s, const struct outbox_unserved *note,
			  struct outbox_error *err)
{
	outbox_time now = sqlite_now(s);
	int r = sqlite_run(s, SQL_UNSERVED_EXPIRE, ARGS(ARG_INT(now)), err);

	if (r != OUTBOX_OK)
		return r;
	if (!note->why)
		return sqlite_run(s, SQL_UNSERVED_FORGET,
				  ARGS(ARG_TEXT(note->target), ARG_TEXT(note->owner)), err);
	return sqlite_run(s, SQL_UNSERVED_PUT,
			  ARGS(ARG_TEXT(note->target), ARG_TEXT(note->owner),
			       ARG_INT(now + note->duration), ARG_INT(now), ARG_TEXT(note->why)),
			  err);
}

int sqlite_unserved(struct outbox_store *store, const struct outbox_unserved *note,
		    struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_WRITE, err);

	return r != OUTBOX_OK ? r : sqlite_end(s, write_unserved(s, note, err), err);
}

int sqlite_release(struct outbox_store *store, const char *target, int lane, const char *owner,
		   struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	int r = sqlite_enter(s, DB_WRITE, err);

	if (r != OUTBOX_OK)
		return r;
	r = sqlite_run(s, SQL_LANE_RELEASE, ARGS(ARG_TEXT(target), ARG_INT(lane), ARG_TEXT(owner)),
		       err);
	return sqlite_end(s, r, err);
}
