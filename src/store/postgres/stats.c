/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers for people and monitors: outbox_stats(), sql/postgres/stats.sql, one row a lane. */

#include "base/cleanup.h"
#include "store/postgres/ops.h"
#include "store/postgres/schema.h"
#include "store/store.h"

#include <string.h>

enum {
	STATS_NOW,
	STATS_MESSAGES,
	STATS_TARGET,
	STATS_PAUSED,
	STATS_PAUSED_BY,
	STATS_PAUSED_REASON,
	STATS_OUTAGE,
	STATS_OUTAGE_SINCE,
	STATS_PENDING,
	STATS_SENDING,
	STATS_WAITING,
	STATS_DEFERRED,
	STATS_PARKED,
	STATS_FAILED,
	STATS_DISCARDED,
	STATS_DELIVERED_EVER,
	STATS_DELIVERED_MINUTE,
	STATS_RETRIES_MINUTE,
	STATS_OLDEST,
	STATS_LANE,
	STATS_OWNER,
	STATS_LEASE_UNTIL,
	STATS_RECEIPTS,
	STATS_TAKEOVERS,
	STATS_REFUSED
};

static int read_lane(const PGresult *result, int row, struct outbox_arena *arena,
		     struct outbox_lane_stats *lane, struct outbox_error *err)
{
	int r;

	*lane = (struct outbox_lane_stats){
		.lane = (int)pg_int(result, row, STATS_LANE),
		.lease_until = pg_time(result, row, STATS_LEASE_UNTIL),
		.receipts = pg_int(result, row, STATS_RECEIPTS),
		.takeovers = pg_int(result, row, STATS_TAKEOVERS),
	};
	r = pg_text(result, row, STATS_OWNER, arena, &lane->owner, err);
	return r ? r : pg_text(result, row, STATS_REFUSED, arena, &lane->refused, err);
}

/* The rows [row, row + n_lanes) are its lanes. */
static int read_target(const PGresult *result, int row, struct outbox_arena *arena,
		       struct outbox_target_stats *t, struct outbox_error *err)
{
	const struct {
		int column;
		const char **text;
	} texts[] = {
		{ STATS_TARGET, &t->name },
		{ STATS_PAUSED_BY, &t->paused_by },
		{ STATS_PAUSED_REASON, &t->paused_reason },
		{ STATS_OUTAGE, &t->outage },
	};
	int r = OUTBOX_OK;

	t->paused = pg_bool(result, row, STATS_PAUSED);
	t->outage_since = pg_time(result, row, STATS_OUTAGE_SINCE);
	t->pending = pg_int(result, row, STATS_PENDING);
	t->sending = pg_int(result, row, STATS_SENDING);
	t->waiting = pg_int(result, row, STATS_WAITING);
	t->deferred = pg_int(result, row, STATS_DEFERRED);
	t->parked = pg_int(result, row, STATS_PARKED);
	t->failed = pg_int(result, row, STATS_FAILED);
	t->discarded = pg_int(result, row, STATS_DISCARDED);
	t->delivered_ever = pg_int(result, row, STATS_DELIVERED_EVER);
	t->delivered_minute = pg_int(result, row, STATS_DELIVERED_MINUTE);
	t->retries_minute = pg_int(result, row, STATS_RETRIES_MINUTE);
	t->oldest = pg_time(result, row, STATS_OLDEST);
	t->lanes = outbox_arena_alloc(arena, t->n_lanes * sizeof(*t->lanes));
	if (!t->lanes)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == OUTBOX_OK; i++)
		r = pg_text(result, row, texts[i].column, arena, texts[i].text, err);
	for (size_t i = 0; i < t->n_lanes && r == OUTBOX_OK; i++)
		r = read_lane(result, row + (int)i, arena, &t->lanes[i], err);
	return r;
}

/* How many rows from this one on are of the same target? */
static size_t lanes_of(const PGresult *result, int row)
{
	int end = row + 1;

	while (end < PQntuples(result) &&
	       strcmp(pg_peek(result, end, STATS_TARGET), pg_peek(result, row, STATS_TARGET)) == 0)
		end++;
	return (size_t)(end - row);
}

static int read_stats(const PGresult *result, struct outbox_arena *arena,
		      struct outbox_stats *stats, struct outbox_error *err)
{
	int rows = PQntuples(result), r = OUTBOX_OK;

	if (rows < 1)
		return outbox_fail(err, OUTBOX_EPROTO, "outbox_stats() gave nothing");
	stats->store_now = pg_time(result, 0, STATS_NOW);
	stats->messages = pg_int(result, 0, STATS_MESSAGES);
	stats->targets = outbox_arena_alloc(arena, (size_t)rows * sizeof(*stats->targets));
	if (!stats->targets)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (PQgetisnull(result, 0, STATS_TARGET)) {
		stats->unrouted_targets = stats->messages;
		return OUTBOX_OK;
	}
	for (int row = 0; row < rows && r == OUTBOX_OK;) {
		struct outbox_target_stats *t = &stats->targets[stats->n_targets++];

		*t = (struct outbox_target_stats){ .n_lanes = lanes_of(result, row) };
		r = read_target(result, row, arena, t, err);
		row += (int)t->n_lanes;
	}
	return r;
}

static int add_unserved(struct pg_store *s, struct outbox_arena *arena, struct outbox_stats *stats,
			struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *rows = NULL;
	int r = pg_op(s, PG_READ, "SELECT * FROM @outbox_list_unserved($1)", ARGS(pg_now(s)), &rows,
		      err);

	for (int row = 0; r == OUTBOX_OK && row < PQntuples(rows); row++) {
		struct outbox_target_stats said = { .unserved_since = pg_time(rows, row, 1) };

		r = pg_text(rows, row, 0, arena, &said.name, err);
		if (r == OUTBOX_OK)
			r = pg_text(rows, row, 2, arena, &said.unserved, err);
		if (r == OUTBOX_OK)
			r = store_stats_unserved(stats, &said, arena, err);
	}
	return r;
}

int pg_stats(struct outbox_store *store, struct outbox_arena *arena, struct outbox_stats *ret_stats,
	     struct outbox_error *err)
{
	_cleanup_(pg_clearp) PGresult *result = NULL;
	struct pg_store *s = pg_of(store);
	struct outbox_stats stats = { 0 };
	int r;

	r = pg_op(s, PG_READ, "SELECT * FROM @outbox_stats($1, $2)",
		  ARGS(ARG_INT8(OUTBOX_COUNT_CAP + 1), pg_now(s)), &result, err);
	if (r == OUTBOX_OK)
		r = read_stats(result, arena, &stats, err);
	if (r == OUTBOX_OK)
		r = add_unserved(s, arena, &stats, err);
	if (r == OUTBOX_OK)
		*ret_stats = stats;
	return r;
}
