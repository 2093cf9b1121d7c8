/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Retention: one bounded call of outbox_purge(), sql/postgres/purge.sql. Messages that stay must not be
 * looked at again by every call of one purge: where it got to is remembered here, not in the session.
 */
#include "base/cleanup.h"
#include "core/retention.h"
#include "store/postgres/message.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"

/* Payload of one answer for an archive. */
#define ARCHIVE_BYTES (INT64_C(32) << 20)

enum { PURGED_MESSAGES, PURGED_FAILED, PURGED_RECEIPTS, PURGED_DETOURS, PURGED_MORE, PURGED_SEEN };

/* 0: no bound. */
static struct pg_arg through_of(const struct outbox_purge *purge)
{
	return ARG_INT8(purge->through_seq ? purge->through_seq : INT64_MAX);
}

/* An array of none is empty; NULL is one that has elements and is not there. */
static struct pg_arg only_of(const struct outbox_purge *purge)
{
	return ARG_ARRAY(PG_INT8S, purge->only, purge->only ? purge->n_only : 1);
}

/* ---- a log in partitions ----------------------------------------------------------------------- */

/*
 * Each step is a transaction of its own: it holds locks for which publishers wait, and has nothing else
 * to do then but to end. A step that finds a publisher in its way is left to the next call.
 */

/* More than a new log needs. */
#define STEPS_MAX 4

static int attach_partitions(struct pg_store *s, bool *ret_more, struct outbox_error *err)
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
int pg_maintain(struct outbox_store *store, struct outbox_error *err)
{
	struct pg_store *s = pg_of(store);
	bool more;
	int r = s->ready ? OUTBOX_OK : pg_schema_ready(s, err);

	return r == OUTBOX_OK && s->partitioned ? attach_partitions(s, &more, err) : r;
}

/* Keep partitions ahead of the log, and drop the oldest one if it may go: added to `purged`. */
static int purge_partitions(struct pg_store *s, const struct outbox_purge *purge, int64_t limit,
			    struct outbox_purged *purged, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	bool more = false;
	int r;

	r = attach_partitions(s, &more, err);
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

/* ---- the ops -------------------------------------------------------------------------------- */

int pg_purge(struct outbox_store *store, const struct outbox_purge *purge,
	     struct outbox_purged *ret_purged, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *row = NULL;
	struct pg_store *s = pg_of(store);
	int64_t from = retention_go_on(&s->purging, purge);
	struct outbox_purged purged;
	int r;

	s->purging.seen_seq = 0;
	r = pg_op(s, PG_WRITE, "SELECT * FROM @outbox_purge($1, $2, $3, $4, $5, $6, $7, $8)",
		  ARGS(ARG_TIME(purge->delivered_before), ARG_TIME(purge->failed_before),
		       through_of(purge), ARG_INT8(from), ARG_INT8((int64_t)retention_limit(purge)),
		       ARG_TEXT(purge->actor), pg_now(s), only_of(purge)),
		  &row, err);
	if (r != OUTBOX_OK)
		return r;
	s->purging.seen_seq = pg_int(row, 0, PURGED_SEEN);
	purged = (struct outbox_purged){
		.messages = pg_int(row, 0, PURGED_MESSAGES),
		.failed = pg_int(row, 0, PURGED_FAILED),
		.receipts = pg_int(row, 0, PURGED_RECEIPTS),
		.detours = pg_int(row, 0, PURGED_DETOURS),
		.more = pg_bool(row, 0, PURGED_MORE),
	};
	if (s->partitioned)
		r = purge_partitions(s, purge, (int64_t)retention_limit(purge), &purged, err);
	if (r == OUTBOX_OK)
		*ret_purged = purged;
	return r;
}

static int load_messages(const struct pg_store *s, const PGresult *rows, struct outbox_arena *arena,
			 struct outbox_claimed **ret_messages, size_t *ret_count,
			 struct outbox_error *err)
{
	size_t n = (size_t)PQntuples(rows), count = 0;
	const char *source = outbox_arena_text(arena, s->source);
	struct outbox_claimed *messages = outbox_arena_alloc(arena, (n ? n : 1) * sizeof(*messages));
	int r = OUTBOX_OK;

	if (!source || !messages)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	while (count < n && r == OUTBOX_OK) {
		r = pg_message_load(&(struct pg_row){ rows, (int)count, 0 }, arena, source, false,
				    &messages[count], err);
		count += r == OUTBOX_OK;
	}
	/* The arena is full: what is there is the answer, the rest comes with the next call. */
	if (r != OUTBOX_OK && !(r == OUTBOX_ENOMEM && count))
		return r;
	*ret_messages = messages;
	*ret_count = count;
	return OUTBOX_OK;
}

int pg_purgeable(struct outbox_store *store, const struct outbox_purge *purge, int64_t after_seq,
		 struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		 size_t *ret_count, struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	struct pg_store *s = pg_of(store);
	int r;

	r = pg_op(s, PG_READ,
		  "SELECT " MESSAGE_COLUMNS " FROM @outbox_purgeable($1, $2, $3, $4, $5, $6) m"
		  " ORDER BY m.seq",
		  ARGS(ARG_TIME(purge->delivered_before), ARG_TIME(purge->failed_before),
		       through_of(purge), ARG_INT8(after_seq),
		       ARG_INT8((int64_t)retention_limit(purge)), ARG_INT8(ARCHIVE_BYTES)),
		  &rows, err);
	return r == OUTBOX_OK ? load_messages(s, rows, arena, ret_messages, ret_count, err) : r;
}
