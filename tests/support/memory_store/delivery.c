/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include <string.h>

int memory_delivery_state(const struct memory_db *db, const struct memory_target *target,
			  const struct memory_message *row, int *ret_why)
{
	const struct memory_delivery *delivery = memory_delivery(db, target, row->seq);

	*ret_why = 0;
	if (delivery->detour) {
		*ret_why = delivery->detour->why;
		return delivery->detour->state;
	}
	switch (delivery->mark) {
	case MARK_CLAIMED:
		return OUTBOX_SENDING;
	case MARK_DELIVERED:
		return OUTBOX_DELIVERED;
	case MARK_PASSED:
		return 0;
	case MARK_NEW:
		break;
	}
	if (!memory_target_routes(target, row))
		return 0;
	*ret_why = target->paused ? OUTBOX_PAUSED : OUTBOX_NEW;
	return OUTBOX_PENDING;
}

int memory_why_at(const struct memory_message *row, int why, outbox_time now)
{
	return (why == OUTBOX_NEW || why == OUTBOX_PAUSED) && row->m.due_at > now ? OUTBOX_DEFERRED
										  : why;
}

static const struct memory_receipt *receipt_of(const struct memory_db *db,
					       const struct memory_target *target,
					       const struct memory_message *row)
{
	const struct memory_delivery *delivery = memory_delivery(db, target, row->seq);

	if (delivery->detour || delivery->mark == MARK_NEW)
		return NULL;
	return memory_receipt_at(&target->lanes[row->key_hash % target->n_lanes], delivery->n);
}

outbox_time memory_delivery_at(const struct memory_db *db, const struct memory_target *target,
			       const struct memory_message *row)
{
	const struct memory_detour *detour = memory_delivery(db, target, row->seq)->detour;
	const struct memory_receipt *receipt = receipt_of(db, target, row);

	if (detour)
		return detour->last_status_at;
	return receipt ? receipt->settled_at : 0;
}

/* Copies a text that may be NULL; false when the arena is full. */
static bool copy_text(struct outbox_arena *arena, const char *text, const char **ret_copy)
{
	*ret_copy = outbox_arena_text(arena, text);
	return !text || *ret_copy;
}

bool memory_delivery_read(const struct memory_db *db, const struct memory_target *target,
			  const struct memory_message *row, struct outbox_arena *arena,
			  struct outbox_delivery *ret_delivery)
{
	const struct memory_detour *detour = memory_delivery(db, target, row->seq)->detour;
	const struct memory_receipt *receipt = receipt_of(db, target, row);
	struct outbox_delivery d = { .seq = row->seq,
				     .lane = row->key_hash % target->n_lanes,
				     .event_time = row->m.event_time,
				     .created_at = row->created_at };
	const char *owner = receipt ? receipt->owner : NULL;

	d.state = memory_delivery_state(db, target, row, &d.why);
	d.last_status_at = memory_delivery_at(db, target, row);
	if (detour) {
		owner = detour->owner;
		d.attempts = detour->attempts;
		d.next_attempt_at = detour->next_attempt_at;
		if (!copy_text(arena, detour->error, &d.error) ||
		    !copy_text(arena, detour->reason, &d.reason))
			return false;
	}
	if (!copy_text(arena, row->m.id, &d.id) || !copy_text(arena, target->name, &d.target) ||
	    !copy_text(arena, row->m.type, &d.type) || !copy_text(arena, row->m.key, &d.key) ||
	    !copy_text(arena, owner, &d.owner))
		return false;
	*ret_delivery = d;
	return true;
}
