/* SPDX-License-Identifier: Apache-2.0 */

/* Leases say who should work on a lane, no more: the receipts' tokens decide who may. */
#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/store.h"

int pg_lease(struct outbox_store *store, const struct outbox_lease_request *request,
	     struct outbox_lease *ret_lease, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	int64_t lanes[OUTBOX_LANES_MAX];
	struct outbox_lease lease = { 0 };
	int r;

	r = pg_op(s, PG_WRITE,
		  "SELECT l.*, t.since FROM @outbox_lease($1, $2, $3, $4, $5, $6, $7, $8, $9) l"
		  " LEFT JOIN (SELECT coalesce(resumed_at, created_at) AS since FROM @outbox_target"
		  " WHERE name = $1) t ON true",
		  ARGS(ARG_TEXT(request->target), ARG_TEXT(request->owner),
		       ARG_INT8(request->duration), ARG_INT8(request->route_version),
		       ARG_BOOL(request->leaving), ARG_TEXT(request->outage),
		       ARG_INT8(request->outage_age), pg_now(s), ARG_TEXT(request->place)),
		  &row, err);
	if (r != OUTBOX_OK)
		return r;
	lease.total = (int)pg_int(row, 0, 0);
	lease.share = (int)pg_int(row, 0, 1);
	lease.stale_route = pg_bool(row, 0, 2);
	lease.open_since = pg_time(row, 0, 6);
	lease.count = (int)pg_ints(row, 0, 3, lanes, OUTBOX_LANES_MAX);
	if (lease.total > OUTBOX_LANES_MAX || lease.count > OUTBOX_LANES_MAX)
		return outbox_fail(err, OUTBOX_EPROTO,
				   "target %s has %d lanes, at most %d are possible",
				   request->target, lease.total, OUTBOX_LANES_MAX);
	if (!PQgetisnull(row, 0, 4))
		store_lease_elsewhere(&lease, pg_peek(row, 0, 4), pg_peek(row, 0, 5));
	for (int i = 0; i < lease.count; i++)
		lease.lanes[i] = (int)lanes[i];
	*ret_lease = lease;
	return OUTBOX_OK;
}

int pg_unserved(struct outbox_store *store, const struct outbox_unserved *note,
		struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);

	return pg_op(s, PG_WRITE, "SELECT @outbox_note_unserved($1, $2, $3, $4, $5)",
		     ARGS(ARG_TEXT(note->target), ARG_TEXT(note->owner), ARG_INT8(note->duration),
			  ARG_TEXT(note->why), pg_now(s)),
		     NULL, err);
}

int pg_release(struct outbox_store *store, const char *target, int lane, const char *owner,
	       struct outbox_error *err)
{
	return pg_op(pg_of(store), PG_WRITE, "SELECT @outbox_release($1, $2, $3)",
		     ARGS(ARG_TEXT(target), ARG_INT4(lane), ARG_TEXT(owner)), NULL, err);
}

int pg_note_refusal(struct pg_store *s, const char *target, int lane, int status)
{
	/* If the note fails, the next call is refused as well and notes it then. */
	if (status == OUTBOX_EPROTO)
		(void)!pg_op(s, PG_WRITE, "SELECT @outbox_refuse($1, $2, $3)",
			     ARGS(ARG_TEXT(target), ARG_INT4(lane), pg_now(s)), NULL, NULL);
	return status;
}

int pg_take_over(struct outbox_store *store, const char *target, int lane, const char *owner,
		 int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	int r;

	r = pg_op(s, PG_WRITE, "SELECT * FROM @outbox_take($1, $2, $3, $4, $5)",
		  ARGS(ARG_TEXT(target), ARG_INT4(lane), ARG_TEXT(owner), ARG_INT8(new_token),
		       pg_now(s)),
		  &row, err);
	if (r == OUTBOX_OK)
		*ret_head = (struct outbox_head){
			.n = pg_int(row, 0, 0),
			.fence_token = pg_int(row, 0, 1),
			.takeovers = (int)pg_int(row, 0, 2),
			.cautious = pg_bool(row, 0, 3),
			.suspect_seq = pg_int(row, 0, 4),
			.in_flight = pg_int(row, 0, 5),
		};
	return pg_note_refusal(s, target, lane, r);
}

/* ---- positions that belong to another history: outbox_rebase(), sql/postgres/rebase.sql --------- */

/* It looks at every message of the log, and only the operator waits for it. */
#define PATIENCE OUTBOX_HOURS

int pg_rebase(struct outbox_store *store, const struct outbox_rebase *rebase,
	      void (*say)(void *context, int level, const char *subject, const char *text),
	      void *context, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	struct pg_store *s = pg_of(store);
	outbox_time timeout = s->timeout;
	int r;

	if (s->timeout < PATIENCE)
		s->timeout = PATIENCE;
	r = pg_op(s, PG_WRITE, "SELECT * FROM @outbox_rebase($1, $2, $3, $4, $5)",
		  ARGS(ARG_BOOL(rebase->same_history), ARG_BOOL(rebase->dry_run),
		       ARG_TEXT(rebase->actor), pg_new_token(s), pg_now(s)),
		  &rows, err);
	s->timeout = timeout;
	for (int i = 0; r == OUTBOX_OK && i < PQntuples(rows); i++)
		say(context, 1, pg_peek(rows, i, 0), pg_peek(rows, i, 1));
	return r;
}
