/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "memory_store/db.h"

#include <stdlib.h>
#include <string.h>

/*
 * Dead letters: what fails at a target becomes pending for another one at once, with where, why, after
 * how many tries and when. If it is in flight there at this moment, it arrives when that is settled.
 */

int memory_dead_check(const struct memory_db *db, const struct outbox_target_def *def,
		      struct outbox_error *err)
{
	const char *link = def->dead_letter;

	while (link) {
		const struct memory_target *target = memory_target_find(db, link);
		char shown[80];

		if (strcmp(link, def->name) == 0)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "dead_letter: %s leads back to %s; a dead letter must end "
					   "somewhere",
					   def->dead_letter, def->name);
		if (!target)
			return outbox_fail(err, OUTBOX_ECONFIG,
					   "dead_letter: no target \"%s\" is registered here; register it "
					   "first",
					   text_shown(shown, sizeof(shown), link));
		link = target->dead_letter;
	}
	return OUTBOX_OK;
}

int memory_dead_of(const struct memory_db *db, const char *name, struct outbox_error *err)
{
	for (size_t i = 0; i < db->n_targets; i++) {
		const struct memory_target *whose = db->targets[i];

		if (whose->dead_letter && strcmp(whose->dead_letter, name) == 0)
			return outbox_fail(
				err, OUTBOX_ECONFLICT,
				"target \"%s\" is the dead letter target of \"%s\"; remove that setting "
				"first, or drop \"%s\"",
				name, whose->name, whose->name);
	}
	return OUTBOX_OK;
}

void memory_dead_free(struct memory_dead *dead)
{
	if (!dead)
		return;
	free(dead->target);
	free(dead->reason);
	free(dead);
}

void memory_dead_arrive(struct memory_db *db, struct memory_target *target,
			struct memory_message *row, bool failed, outbox_time now)
{
	struct memory_delivery *delivery = memory_delivery(db, target, row->seq);
	struct memory_detour *detour;

	if (!delivery->arrived)
		return;
	if (!delivery->detour && (delivery->mark == MARK_DELIVERED || delivery->mark == MARK_PASSED))
		memory_receipt_at(&target->lanes[row->key_hash % target->n_lanes], delivery->n)->refs--;
	detour = memory_detour_make(db, target, row);
	memory_dead_free(detour->dead);
	detour->dead = delivery->arrived;
	delivery->arrived = NULL;
	if (detour->state == OUTBOX_PENDING || failed)
		return;
	detour->attempts = 0;
	detour->failing_since = 0;
	detour->next_attempt_at = now;
	detour->ready_at = detour->dead->at;
	memory_replace(&detour->error, NULL);
	memory_replace(&detour->reason, NULL);
	memory_detour_set(target, detour, OUTBOX_PENDING, OUTBOX_WAITING, now);
}

static bool in_flight(const struct memory_delivery *delivery)
{
	if (delivery->detour)
		return delivery->detour->state == OUTBOX_SENDING;
	return delivery->mark == MARK_CLAIMED;
}

void memory_dead_send(struct memory_db *db, const struct memory_target *from,
		      const struct memory_detour *failed, outbox_time now)
{
	struct memory_target *to =
		from->dead_letter ? memory_target_find(db, from->dead_letter) : NULL;
	struct memory_delivery *delivery;

	if (!to)
		return;
	delivery = memory_delivery(db, to, failed->message->seq);
	memory_dead_free(delivery->arrived);
	delivery->arrived = memory_alloc(sizeof(*delivery->arrived));
	*delivery->arrived = (struct memory_dead){ .target = memory_text(from->name),
						   .reason = memory_text(failed->error),
						   .attempts = failed->attempts,
						   .at = now };
	if (!in_flight(delivery))
		memory_dead_arrive(db, to, failed->message, false, now);
}
