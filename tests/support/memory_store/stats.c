/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"
#include "memory_store/unserved.h"

static void count_one(int64_t *count)
{
	if (*count <= OUTBOX_COUNT_CAP)
		(*count)++;
}

static int64_t *counter(struct outbox_target_stats *stats, int state, int why)
{
	switch (state) {
	case OUTBOX_SENDING:
		return &stats->sending;
	case OUTBOX_FAILED:
		return &stats->failed;
	case OUTBOX_DISCARDED:
		return &stats->discarded;
	case OUTBOX_PENDING:
		if (why == OUTBOX_WAITING)
			return &stats->waiting;
		if (why == OUTBOX_DEFERRED)
			return &stats->deferred;
		return why == OUTBOX_PARKED ? &stats->parked : &stats->pending;
	default:
		return NULL;
	}
}

/* Since when it can be sent; 0: it cannot, or is finished. */
static outbox_time ready_since(const struct memory_db *db, const struct memory_target *target,
			       const struct memory_message *row, int state, outbox_time now)
{
	const struct memory_detour *detour = memory_delivery(db, target, row->seq)->detour;
	outbox_time due = detour && detour->ready_at ? detour->ready_at : row->m.due_at;
	outbox_time since = due > row->created_at ? due : row->created_at;

	if (state == OUTBOX_FAILED || state == OUTBOX_DISCARDED || due > now)
		return 0;
	return since > target->open_since ? since : target->open_since;
}

static void count_deliveries(const struct memory_db *db, const struct memory_target *target,
			     outbox_time now, struct outbox_target_stats *stats)
{
	for (size_t i = 0; i < db->n_rows; i++) {
		const struct memory_message *row = db->rows[i];
		outbox_time since;
		int state, why;
		int64_t *count;

		if (!row || !row->committed)
			continue;
		state = memory_delivery_state(db, target, row, &why);
		count = counter(stats, state, why);
		if (!count)
			continue;
		count_one(count);
		since = ready_since(db, target, row, state, now);
		if (since && (!stats->oldest || since < stats->oldest))
			stats->oldest = since;
	}
}

static void count_receipts(const struct memory_lane *lane, outbox_time now,
			   struct outbox_target_stats *stats)
{
	stats->delivered_ever += memory_receipt_last(lane)->delivered_total;
	for (size_t i = lane->n_receipts; i > 0; i--) {
		const struct memory_receipt *receipt = &lane->receipts[i - 1];

		if (receipt->settled_at <= now - OUTBOX_MINUTES)
			break;
		stats->delivered_minute += receipt->counts.delivered;
		stats->retries_minute += receipt->counts.retried;
	}
}

/* The longest outage that a live worker tells of. */
static bool find_outage(const struct memory_target *target, outbox_time now,
			struct outbox_arena *arena, struct outbox_target_stats *stats)
{
	for (size_t i = 0; i < target->n_workers; i++) {
		const struct memory_worker *worker = &target->workers[i];

		if (!worker->outage || worker->alive_until <= now ||
		    (stats->outage && stats->outage_since <= worker->outage_since))
			continue;
		stats->outage = outbox_arena_text(arena, worker->outage);
		stats->outage_since = worker->outage_since;
		if (!stats->outage)
			return false;
	}
	return true;
}

static bool target_stats(const struct memory_db *db, const struct memory_target *target,
			 outbox_time now, struct outbox_arena *arena,
			 struct outbox_target_stats *ret_stats)
{
	struct outbox_target_stats stats = {
		.name = outbox_arena_text(arena, target->name),
		.paused = target->paused,
		.paused_by = outbox_arena_text(arena, target->paused_by),
		.paused_reason = outbox_arena_text(arena, target->paused_reason),
		.n_lanes = (size_t)target->n_lanes,
		.lanes = outbox_arena_alloc(arena, (size_t)target->n_lanes * sizeof(*stats.lanes)),
	};

	if (!stats.name || !stats.lanes || !stats.paused_by != !target->paused_by ||
	    !stats.paused_reason != !target->paused_reason)
		return false;
	for (int i = 0; i < target->n_lanes; i++) {
		const struct memory_lane *lane = &target->lanes[i];

		stats.lanes[i] = (struct outbox_lane_stats){
			.lane = i,
			.owner = outbox_arena_text(arena, lane->owner),
			.lease_until = lane->lease_until,
			.receipts = memory_receipt_last(lane)->n,
			.takeovers = lane->takeovers,
			.refused = memory_lane_is_refused(db, lane)
					   ? "the log's counter was set back; run: outbox realign"
					   : NULL,
		};
		if (!stats.lanes[i].owner != !lane->owner)
			return false;
		count_receipts(lane, now, &stats);
	}
	count_deliveries(db, target, now, &stats);
	if (!find_outage(target, now, arena, &stats))
		return false;
	*ret_stats = stats;
	return true;
}

int memory_stats(struct memory_store *s, struct outbox_arena *arena, struct outbox_stats *ret_stats,
		 struct outbox_error *err)
{
	const struct memory_db *db = s->db;
	struct outbox_stats stats = { .store_now = memory_now(s), .n_targets = db->n_targets };

	stats.messages = db->count > OUTBOX_COUNT_CAP ? OUTBOX_COUNT_CAP + 1 : db->count;
	stats.unrouted_targets = db->n_targets ? 0 : stats.messages;
	stats.targets = outbox_arena_alloc(arena, db->n_targets * sizeof(*stats.targets));
	if (!stats.targets)
		return outbox_fail(err, OUTBOX_ENOMEM, "stats: the arena is full");
	for (size_t i = 0; i < db->n_targets; i++) {
		if (!target_stats(db, db->targets[i], stats.store_now, arena, &stats.targets[i]))
			return outbox_fail(err, OUTBOX_ENOMEM, "stats: the arena is full");
	}
	if (memory_stats_unserved(db, &stats, arena, err))
		return OUTBOX_ENOMEM;
	*ret_stats = stats;
	return OUTBOX_OK;
}
