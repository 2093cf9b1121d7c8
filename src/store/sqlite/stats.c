/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Numbers for people and monitors. Cheap whatever was delivered before: only what lies behind the
 * positions is counted, and no further than OUTBOX_COUNT_CAP; totals come from the last receipts.
 */
#include "base/cleanup.h"
#include "store/sqlite/delivery.h"
#include "store/sqlite/lane.h"
#include "store/sqlite/ops.h"
#include "store/sqlite/schema.h"
#include "store/store.h"

#define CAP (OUTBOX_COUNT_CAP + 1)

static int64_t capped(int64_t count)
{
	return count < CAP ? count : CAP;
}

static void older(outbox_time *oldest, outbox_time since)
{
	if (!*oldest || since < *oldest)
		*oldest = since;
}

/* What is due later cannot be sent yet. */
static void count_row(struct outbox_target_stats *stats, const struct outbox_delivery *d,
		      outbox_time due, outbox_time now)
{
	stats->pending += d->state == OUTBOX_PENDING;
	if (due <= now)
		older(&stats->oldest, due > d->created_at ? due : d->created_at);
}

/* Nothing up to here is left to do for any lane. */
static int64_t all_settled(const struct targets *t, const struct target_info *target)
{
	int64_t to = t->again ? t->gone_after : INT64_MAX;

	for (int i = 0; i < target->n_lanes; i++)
		if (target->lanes[i].last.pos < to)
			to = target->lanes[i].last.pos;
	return to;
}

static bool is_settled(const struct targets *t, const struct target_info *target, int lane,
		       int64_t seq)
{
	return seq <= target->lanes[lane].last.pos && !targets_numbered_again(t, seq);
}

/* Rows of the log that nobody has read yet, and since when the oldest that is not settled could be sent. */
static int count_log(struct targets *t, struct target_info *target,
		     struct outbox_target_stats *stats, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int64_t from = all_settled(t, target), ahead = 0, detour = 0;
	int r = sqlite_number(t->s, SQL_LOOK_AHEAD, ARGS(ARG_TEXT(target->name), ARG_INT(from)), 0,
			      &ahead, err);

	if (r == OUTBOX_OK)
		r = sqlite_query(t->s, SQL_LOOK_ROWS, ARGS(ARG_INT(from), ARG_INT(INT64_MAX)), &q,
				 err);
	while (stats->pending < CAP && sqlite_next(q, &r, err)) {
		struct outbox_delivery d;
		int lane;

		lane = message_lane(q, target->n_lanes, &r, err);
		if (r != OUTBOX_OK || is_settled(t, target, lane, sqlite3_column_int64(q, COL_SEQ)))
			continue;
		r = delivery_of_row(t, target, q, &d, err);
		if (r != OUTBOX_OK || !d.state)
			continue;
		if (ahead)
			r = sqlite_number(t->s, SQL_DETOUR_EXISTS,
					  ARGS(ARG_TEXT(target->name), ARG_INT(d.seq)), 0, &detour,
					  err);
		if (r != OUTBOX_OK || detour)
			continue;
		count_row(stats, &d, sqlite3_column_int64(q, COL_DUE_AT), t->now);
	}
	return r;
}

static int64_t *counter(struct outbox_target_stats *stats, const char *why)
{
	switch (outbox_why_parse(why)) {
	case OUTBOX_WAITING:
		return &stats->waiting;
	case OUTBOX_DEFERRED:
		return &stats->deferred;
	default:
		return &stats->parked;
	}
}

static int count_detours(struct targets *t, const struct target_info *target,
			 struct outbox_target_stats *stats, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	outbox_time oldest = 0;
	int r = sqlite_query(t->s, SQL_STATS_PENDING, ARGS(ARG_TEXT(target->name), ARG_INT(CAP)),
			     &q, err);

	while (sqlite_next(q, &r, err))
		*counter(stats, sqlite_peek(q, 0, &r, err)) += capped(sqlite3_column_int64(q, 1));
	if (r == OUTBOX_OK)
		r = sqlite_number(t->s, SQL_STATS_COUNT,
				  ARGS(ARG_TEXT(target->name), ARG_TEXT("failed"), ARG_INT(CAP)), 0,
				  &stats->failed, err);
	if (r == OUTBOX_OK)
		r = sqlite_number(t->s, SQL_STATS_COUNT,
				  ARGS(ARG_TEXT(target->name), ARG_TEXT("discarded"), ARG_INT(CAP)),
				  0, &stats->discarded, err);
	if (r == OUTBOX_OK)
		r = sqlite_number(t->s, SQL_STATS_OLDEST,
				  ARGS(ARG_TEXT(target->name), ARG_INT(t->now)), 0, &oldest, err);
	if (r == OUTBOX_OK && oldest)
		older(&stats->oldest, oldest);
	return r;
}

/* *ret_refused stays NULL when relays do not refuse the lane. */
static int find_refusal(const struct lane_info *info, struct lane_op *op, struct outbox_arena *arena,
			const char **ret_refused, struct outbox_error *err)
{
	struct outbox_error found = OUTBOX_ERROR_INIT;
	int r = lane_view_check(op, info->last.pos, &found);

	if (r == OUTBOX_OK)
		return OUTBOX_OK;
	if (r != OUTBOX_EPROTO)
		return outbox_fail_native(err, r, found.native, "%s", found.message);
	*ret_refused = outbox_arena_text(arena, found.message);
	return *ret_refused ? OUTBOX_OK : outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
}

static int read_lane(struct targets *t, const struct target_info *target, int lane,
		     struct outbox_arena *arena, struct outbox_target_stats *stats,
		     struct outbox_error *err)
{
	const struct lane_info *info = &target->lanes[lane];
	struct lane_op op = { .s = t->s, .target = target->name, .lane = lane, .now = t->now };
	struct history before;
	const char *owner = info->lease_owner, *refused = NULL;
	int r = history_before(&op, info->last.n, t->now - OUTBOX_MINUTES + 1, &before, err);

	if (r == OUTBOX_OK)
		r = find_refusal(info, &op, arena, &refused, err);
	if (r == OUTBOX_OK)
		r = sqlite_keep((const char **const[]){ &owner }, 1, arena, err);
	if (r != OUTBOX_OK)
		return r;
	stats->lanes[lane] = (struct outbox_lane_stats){
		.lane = lane,
		.owner = owner,
		.lease_until = info->lease_until,
		.receipts = info->last.n,
		.takeovers = info->takeovers,
		.refused = refused,
	};
	stats->sending += info->last.claim_count;
	stats->delivered_ever += info->last.delivered_total;
	stats->delivered_minute += info->last.delivered_total - before.delivered_total;
	stats->retries_minute += info->last.retried_total - before.retried_total;
	return OUTBOX_OK;
}

/* The longest outage that a live worker tells of. */
static int find_outage(struct targets *t, struct outbox_arena *arena,
		       struct outbox_target_stats *stats, struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	int r = sqlite_query(t->s, SQL_STATS_OUTAGE, ARGS(ARG_TEXT(stats->name), ARG_INT(t->now)),
			     &q, err);

	if (!sqlite_next(q, &r, err))
		return r;
	stats->outage_since = sqlite3_column_int64(q, 1);
	return sqlite_text(q, 0, arena, &stats->outage, err);
}

static int read_target(struct targets *t, struct target_info *target, struct outbox_arena *arena,
		       struct outbox_target_stats *ret_stats, struct outbox_error *err)
{
	struct outbox_target_stats stats = {
		.name = target->name,
		.paused = target->paused,
		.paused_by = target->paused_by,
		.paused_reason = target->paused_reason,
		.n_lanes = (size_t)target->n_lanes,
	};
	const char **const texts[] = { &stats.name, &stats.paused_by, &stats.paused_reason };
	int r = OUTBOX_OK;

	stats.lanes = outbox_arena_alloc(arena, stats.n_lanes * sizeof(*stats.lanes));
	if (!stats.lanes)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (int i = 0; i < target->n_lanes && r == OUTBOX_OK; i++)
		r = read_lane(t, target, i, arena, &stats, err);
	if (r == OUTBOX_OK)
		r = count_log(t, target, &stats, err);
	if (r == OUTBOX_OK)
		r = count_detours(t, target, &stats, err);
	if (r == OUTBOX_OK)
		r = find_outage(t, arena, &stats, err);
	if (r == OUTBOX_OK)
		r = sqlite_keep(texts, ARRAY_SIZE(texts), arena, err);
	stats.sending = capped(stats.sending);
	if (stats.oldest && stats.oldest < target->open_since)
		stats.oldest = target->open_since; /* nothing could be sent before */
	if (r == OUTBOX_OK)
		*ret_stats = stats;
	return r;
}

static int add_unserved(struct targets *t, struct outbox_arena *arena, struct outbox_stats *stats,
			struct outbox_error *err)
{
	_cleanup_(sqlite_resetp) sqlite3_stmt *q = NULL;
	struct outbox_target_stats said = { 0 };
	int r = sqlite_query(t->s, SQL_STATS_UNSERVED, ARGS(ARG_INT(t->now)), &q, err);

	while (sqlite_next(q, &r, err)) {
		said.unserved_since = sqlite3_column_int64(q, 1);
		r = sqlite_text(q, 0, arena, &said.name, err);
		if (r == OUTBOX_OK)
			r = sqlite_text(q, 2, arena, &said.unserved, err);
		if (r == OUTBOX_OK)
			r = store_stats_unserved(stats, &said, arena, err);
	}
	return r;
}

static int collect_stats(struct sqlite_store *s, struct outbox_arena *arena,
			 struct outbox_stats *stats, struct outbox_error *err)
{
	_cleanup_(targets_deinit) struct targets t = { 0 };
	int r = targets_load(s, NULL, &t, err);

	if (r == OUTBOX_OK)
		r = sqlite_number(s, SQL_STATS_MESSAGES, ARGS(ARG_INT(CAP)), 0, &stats->messages,
				  err);
	if (r != OUTBOX_OK)
		return r;
	stats->store_now = t.now;
	stats->unrouted_targets = t.count ? 0 : stats->messages;
	stats->n_targets = t.count;
	stats->targets =
		outbox_arena_alloc(arena, (t.count ? t.count : 1) * sizeof(*stats->targets));
	if (!stats->targets)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	for (size_t i = 0; i < t.count && r == OUTBOX_OK; i++)
		r = read_target(&t, &t.list[i], arena, &stats->targets[i], err);
	return r == OUTBOX_OK ? add_unserved(&t, arena, stats, err) : r;
}

int sqlite_stats(struct outbox_store *store, struct outbox_arena *arena,
		 struct outbox_stats *ret_stats, struct outbox_error *err)
{
	struct sqlite_store *s = sqlite_of(store);
	struct outbox_stats stats = { 0 };
	int r = sqlite_in_place(s, err);

	if (r == OUTBOX_OK)
		r = sqlite_enter(s, DB_READ, err);
	if (r == OUTBOX_OK)
		r = sqlite_end(s, collect_stats(s, arena, &stats, err), err);
	if (r == OUTBOX_OK)
		*ret_stats = stats;
	return r;
}
