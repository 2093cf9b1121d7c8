/* SPDX-License-Identifier: Apache-2.0 */

/* Redaction: outbox_redact(), sql/postgres/redact.sql. What its key becomes is worked out here. */
#include "base/cleanup.h"
#include "core/redacted_key.h"
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

/* One of those that have the id; all but the last are there with partitions only. */
static int redact_next(struct pg_store *s, const struct outbox_redact *redact, bool *ret_done,
		       struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *found = NULL, *row = NULL;
	char key[TOMBSTONE_KEY_MAX] = "";
	int r;

	/* a key never changes but here, where it changes to what it is again */
	r = pg_op(s, PG_READ, "SELECT m.key FROM @outbox_redact_next($1) m",
		  ARGS(ARG_TEXT(redact->id)), &found, err);
	if (r != OUTBOX_OK)
		return r;
	if (PQntuples(found) > 0 && !PQgetisnull(found, 0, 0))
		tombstone_key(pg_peek(found, 0, 0), key);
	r = pg_op(s, PG_WRITE, "SELECT @outbox_redact($1, $2, $3, $4, $5)",
		  ARGS(ARG_TEXT(redact->id), ARG_TEXT(key), ARG_TEXT(redact->actor),
		       ARG_TEXT(redact->reason), pg_now(s)),
		  &row, err);
	if (r == OUTBOX_OK)
		*ret_done = PQgetisnull(row, 0, 0);
	return r;
}

int pg_redact(struct outbox_store *store, const struct outbox_redact *redact, bool *ret_done,
	      struct outbox_error *err)
{
	bool done = true, any = false;
	int r = OUTBOX_OK;

	if (!redact->reason || !redact->reason[0])
		return outbox_fail(err, OUTBOX_EINVAL, "redact: say why, it wants a reason");
	while (r == OUTBOX_OK && done) {
		r = redact_next(pg_of(store), redact, &done, err);
		any |= r == OUTBOX_OK && done;
	}
	if (r == OUTBOX_OK && ret_done)
		*ret_done = any;
	return r;
}
