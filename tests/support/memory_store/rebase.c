/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include <stdio.h>

/*
 * Numbers that are given again. The log's counter can be set back here as people do it elsewhere; a
 * message that then gets a number which another one had lies where lanes have been already, and low, the
 * hint, would pass it unseen. So lanes are refused as soon as the counter is behind or such a message is
 * there, and stay refused until they are rebased: then every lane looks at the whole log again. What is
 * settled is known message by message.
 */

void memory_db_set_counter(struct memory_db *db, int64_t last)
{
	pthread_mutex_lock(&db->lock);
	db->next = last < db->base ? db->base : last + 1;
	if (db->next > memory_log_last(db))
		db->next = 0;
	pthread_mutex_unlock(&db->lock);
}

int64_t memory_log_next(struct memory_db *db)
{
	int64_t seq = db->next ? db->next : memory_log_last(db) + 1;

	/* who finds a number taken tries again */
	while (seq <= memory_log_last(db) && memory_log_row(db, seq))
		seq++;
	db->next = seq < memory_log_last(db) ? seq + 1 : 0;
	return seq;
}

bool memory_lane_is_refused(const struct memory_db *db, const struct memory_lane *lane)
{
	return lane->refused || db->n_again || db->next;
}

int memory_lane_check(const struct memory_db *db, const char *target, int number,
		      struct memory_lane *lane, struct outbox_error *err)
{
	if (!memory_lane_is_refused(db, lane))
		return OUTBOX_OK;
	lane->refused = true;
	return outbox_fail(err, OUTBOX_EPROTO,
			   "target %s, lane %d: the log's counter was set back; run: outbox realign",
			   target, number);
}

bool memory_any_refused(const struct memory_db *db)
{
	for (size_t i = 0; i < db->n_targets; i++)
		for (int lane = 0; lane < db->targets[i]->n_lanes; lane++)
			if (memory_lane_is_refused(db, &db->targets[i]->lanes[lane]))
				return true;
	return false;
}

static void rebase_lane(struct memory_store *s, struct memory_target *target, int number,
			const char *actor)
{
	struct memory_lane *lane = &target->lanes[number];
	struct memory_receipt *receipt;

	memory_lane_take(s->db, target, number, actor ? actor : "operator",
			 (int64_t)(s->random->next(s->random) >> 1), memory_now(s));
	receipt = memory_receipt_last(lane);
	receipt->caution = (struct caution){ 0 };
	lane->low = lane->read_to = s->db->base - 1;
	receipt->pos = lane->read_to;
	lane->refused = false;
}

int memory_rebase(struct memory_store *s, const struct outbox_rebase *rebase,
		  void (*say)(void *context, int level, const char *subject, const char *text),
		  void *context, struct outbox_error *err)
{
	char subject[OUTBOX_TARGET_NAME_MAX + 40];
	struct memory_db *db = s->db;

	(void)err;
	if (!memory_any_refused(db))
		return OUTBOX_OK;
	for (size_t i = 0; i < db->n_targets; i++) {
		for (int lane = 0; lane < db->targets[i]->n_lanes; lane++) {
			snprintf(subject, sizeof(subject), "target %s, lane %d",
				 db->targets[i]->name, lane);
			say(context, 1, subject, "looks at the whole log again");
			if (!rebase->dry_run)
				rebase_lane(s, db->targets[i], lane, rebase->actor);
		}
	}
	if (rebase->dry_run)
		return OUTBOX_OK;
	for (size_t i = 0; i < db->n_rows; i++)
		if (db->rows[i])
			db->rows[i]->again = false;
	db->n_again = 0;
	db->next = 0;
	memory_audit_add(db, &(struct memory_audit){ .at = memory_now(s),
						     .actor = memory_text(rebase->actor),
						     .action = memory_text("rebase") });
	return OUTBOX_OK;
}
