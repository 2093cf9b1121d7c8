/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each step is a transaction of its own: it holds locks for which publishers wait, and has nothing else
 * to do then but to end. A step that finds a publisher in its way is left to the next call.
 */
#include "store/postgres/partition.h"

#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

/* More than a new log needs. */
#define STEPS_MAX 4

static int tend(struct pg_store *s, bool *ret_more, struct outbox_error *err)
{
	bool more = true;
	int r = OUTBOX_OK;

	for (int i = 0; i < STEPS_MAX && more && r == OUTBOX_OK; i++) {
		_cleanup_(pg_clearp) PGresult *row = NULL;

		r = pg_op(s, PG_WRITE, "SELECT @outbox_tend_partitions()", NULL, &row, err);
		more = r == OUTBOX_OK && pg_bool(row, 0, 0);
	}
	*ret_more = more;
	return r;
}

/* With a retention or without: the log grows, and its partitions must be there first. */
int pg_tend(struct outbox_store *store, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	bool more;
	int r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);

	return r == OUTBOX_OK && s->partitioned ? tend(s, &more, err) : r;
}

int pg_partition_purge(struct pg_store *s, const struct outbox_purge *purge, int64_t limit,
		       struct outbox_purged *purged, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	bool more = false;
	int r;

	r = tend(s, &more, err);
	purged->more = purged->more || more;
	if (r != OUTBOX_OK || !purge->delivered_before)
		return r;
	/* With a list its messages went one by one: only empty ones may go. */
	r = pg_op(s, PG_WRITE, "SELECT * FROM @outbox_drop_partition($1, $2, $3)",
		  ARGS(ARG_TIME(purge->delivered_before),
		       ARG_INT8(purge->only          ? 0
				: purge->through_seq ? purge->through_seq
						     : INT64_MAX),
		       ARG_INT8(limit)),
		  &row, err);
	if (r == OUTBOX_OK) {
		purged->messages += pg_int(row, 0, 0);
		purged->detours += pg_int(row, 0, 1);
		purged->more = purged->more || pg_bool(row, 0, 2);
	}
	return r;
}
