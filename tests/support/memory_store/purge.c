/* SPDX-License-Identifier: Apache-2.0 */
#include "core/retention.h"
#include "memory_store/unserved.h"

#include <string.h>

static struct retention_delivery delivery_of(const struct memory_db *db,
					     const struct memory_target *target,
					     const struct memory_message *row,
					     const struct outbox_purge *purge)
{
	const struct memory_delivery *delivery = memory_delivery(db, target, row->seq);
	outbox_time at = memory_delivery_at(db, target, row);
	int why, state = memory_delivery_state(db, target, row, &why);
	bool settled = delivery->mark == MARK_DELIVERED || delivery->mark == MARK_PASSED;

	if (delivery->detour)
		return (struct retention_delivery){ .state = state, .at = at };
	return (struct retention_delivery){ .covered = settled && at < purge->delivered_before,
					    .wanted = state != 0 };
}

static bool message_is_old(const struct memory_db *db, const struct memory_message *row,
			   const struct outbox_purge *purge, bool *ret_failed)
{
	struct retention retention = { 0 };

	if (!row->committed || (purge->through_seq && row->seq > purge->through_seq) ||
	    !retention_is_listed(purge, row->seq))
		return false;
	for (size_t i = 0; i < db->n_targets; i++) {
		struct retention_delivery delivery = delivery_of(db, db->targets[i], row, purge);

		retention_add(&retention, purge, &delivery);
	}
	*ret_failed = retention.failed;
	return retention_is_over(&retention, purge, row->created_at);
}

static void remove_message(struct memory_db *db, struct memory_message *row,
			   struct outbox_purged *purged)
{
	for (size_t i = 0; i < db->n_targets; i++) {
		struct memory_target *target = db->targets[i];
		struct memory_delivery *delivery = memory_delivery(db, target, row->seq);
		struct memory_lane *lane = &target->lanes[row->key_hash % target->n_lanes];

		if (delivery->detour) {
			purged->detours++;
			memory_detour_free(target, delivery->detour);
		} else if (delivery->mark != MARK_NEW) {
			memory_receipt_at(lane, delivery->n)->refs--;
		}
		*delivery = (struct memory_delivery){ 0 };
	}
	memory_log_remove(db, row);
}

/* Receipts that neither a message nor the last minute's numbers need, oldest first, never the last. */
static void remove_receipts(struct memory_lane *lane, outbox_time before,
			    struct outbox_purged *purged)
{
	size_t old = 0;

	while (old + 1 < lane->n_receipts && !lane->receipts[old].refs &&
	       lane->receipts[old].settled_at < before)
		old++;
	if (!old)
		return;
	memmove(lane->receipts, lane->receipts + old,
		(lane->n_receipts - old) * sizeof(struct memory_receipt));
	lane->n_receipts -= old;
	purged->receipts += (int64_t)old;
}

static void remove_events(struct memory_db *db)
{
	size_t old = 0;

	while (old < db->n_events && !memory_log_row(db, db->events[old].seq))
		old++;
	if (!old)
		return;
	memmove(db->events, db->events + old, (db->n_events - old) * sizeof(struct memory_event));
	db->n_events -= old;
	db->first_event += (int64_t)old;
}

static void add_audit(struct memory_store *s, const struct outbox_purge *purge,
		      const struct outbox_purged *purged)
{
	char detail[RETENTION_DETAIL_MAX];

	if (!purge->actor || !purged->messages)
		return;
	retention_describe(purged, detail);
	memory_audit_add(s->db, &(struct memory_audit){ .at = memory_now(s),
							.actor = memory_text(purge->actor),
							.action = memory_text("purge"),
							.detail = memory_text(detail) });
}

static int may_remove(struct memory_store *s, struct outbox_error *err)
{
	/* What is settled of a number that was given again is another message's. */
	if (memory_any_refused(s->db))
		return retention_refused("the log's counter was set back; run: outbox realign", err);
	return memory_unstarted(s, err);
}

int memory_purge(struct memory_store *s, const struct outbox_purge *purge,
		 struct outbox_purged *ret_purged, struct outbox_error *err)
{
	struct memory_db *db = s->db;
	struct outbox_purged purged = { 0 };
	int64_t limit = (int64_t)retention_limit(purge);
	outbox_time before = memory_now(s) - OUTBOX_MINUTES;

	int r = may_remove(s, purge->actor ? err : NULL);

	if (r) {
		*ret_purged = purged;
		return purge->actor ? r : OUTBOX_OK;
	}
	if (purge->delivered_before < before)
		before = purge->delivered_before;
	for (size_t i = db->n_gone; db->n_targets && i < db->n_rows; i++) {
		struct memory_message *row = db->rows[i];
		bool failed;

		if (!row || !message_is_old(db, row, purge, &failed))
			continue;
		if (purged.messages == limit) {
			purged.more = true;
			break;
		}
		purged.messages++;
		purged.failed += failed;
		remove_message(db, row, &purged);
	}
	for (size_t i = 0; i < db->n_targets; i++) {
		for (int lane = 0; lane < db->targets[i]->n_lanes; lane++)
			remove_receipts(&db->targets[i]->lanes[lane], before, &purged);
	}
	remove_events(db);
	memory_log_trim(db);
	add_audit(s, purge, &purged);
	*ret_purged = purged;
	return OUTBOX_OK;
}

int memory_purgeable(struct memory_store *s, const struct outbox_purge *purge, int64_t after_seq,
		     struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		     size_t *ret_count, struct outbox_error *err)
{
	const struct memory_db *db = s->db;
	size_t limit = retention_limit(purge), count = 0;
	struct outbox_claimed *messages;

	if (limit > db->n_rows)
		limit = db->n_rows;
	messages = outbox_arena_alloc(arena, limit * sizeof(*messages));
	if (!messages)
		return outbox_fail(err, OUTBOX_ENOMEM,
				   "purge: the arena is full; ask for fewer rows");
	for (size_t i = db->n_gone; db->n_targets && i < db->n_rows && count < limit; i++) {
		const struct memory_message *row = db->rows[i];
		bool failed;

		if (!row || row->seq <= after_seq || !message_is_old(db, row, purge, &failed))
			continue;
		if (!memory_log_read(db, row, true, arena, &messages[count++]))
			return outbox_fail(err, OUTBOX_ENOMEM,
					   "purge: the arena is full; ask for fewer rows");
	}
	*ret_messages = messages;
	*ret_count = count;
	return OUTBOX_OK;
}
