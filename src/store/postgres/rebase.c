/* SPDX-License-Identifier: Apache-2.0 */

/* Positions that belong to another history: one call of outbox_rebase(), sql/postgres/rebase.sql. */

#include "base/cleanup.h"
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

/* It looks at every message of the log, and nobody waits for it but who asked for it. */
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
		       ARG_TEXT(rebase->actor),
		       ARG_INT8((int64_t)(s->random->next(s->random) >> 1)), pg_now(s)),
		  &rows, err);
	s->timeout = timeout;
	for (int i = 0; r == OUTBOX_OK && i < PQntuples(rows); i++)
		say(context, 1, pg_peek(rows, i, 0), pg_peek(rows, i, 1));
	return r;
}
