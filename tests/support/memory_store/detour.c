/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include <stdlib.h>
#include <string.h>

/*
 * Two lists, both ascending by seq: the unfinished detours of a key (pending, sending, failed), which
 * say who waits for whom, and the pending and sending ones of a lane, which a claim looks through.
 */

static struct memory_key **key_bucket(const struct memory_target *target, const char *key)
{
	return &target->keys[memory_hash(key) & (MEMORY_BUCKETS - 1)];
}

struct memory_key *memory_key_find(const struct memory_target *target, const char *key)
{
	struct memory_key *found = key ? *key_bucket(target, key) : NULL;

	while (found && strcmp(found->text, key) != 0)
		found = found->next;
	return found;
}

static void key_add(struct memory_target *target, struct memory_detour *detour)
{
	const char *text = detour->message->m.key;
	struct memory_key *key = memory_key_find(target, text);
	struct memory_detour *after;

	if (!text || detour->key)
		return;
	if (!key) {
		struct memory_key **bucket = key_bucket(target, text);

		key = memory_alloc(sizeof(*key));
		key->next = *bucket;
		*bucket = key;
	}
	after = key->last;
	while (after && after->message->seq > detour->message->seq)
		after = after->key_prev;
	detour->key = key;
	detour->key_prev = after;
	detour->key_next = after ? after->key_next : key->first;
	*(detour->key_prev ? &detour->key_prev->key_next : &key->first) = detour;
	*(detour->key_next ? &detour->key_next->key_prev : &key->last) = detour;
	key->text = key->first->message->m.key;
}

static void key_remove(struct memory_target *target, struct memory_detour *detour)
{
	struct memory_key *key = detour->key, **at;

	if (!key)
		return;
	*(detour->key_prev ? &detour->key_prev->key_next : &key->first) = detour->key_next;
	*(detour->key_next ? &detour->key_next->key_prev : &key->last) = detour->key_prev;
	detour->key = NULL;
	detour->key_prev = NULL;
	detour->key_next = NULL;
	if (key->first) {
		key->text = key->first->message->m.key;
		return;
	}
	at = key_bucket(target, detour->message->m.key);
	while (*at != key)
		at = &(*at)->next;
	*at = key->next;
	free(key);
}

static void lane_add(struct memory_lane *lane, struct memory_detour *detour)
{
	struct memory_detour *after = lane->last;

	if (detour->listed)
		return;
	while (after && after->message->seq > detour->message->seq)
		after = after->lane_prev;
	detour->listed = true;
	detour->lane_prev = after;
	detour->lane_next = after ? after->lane_next : lane->first;
	*(detour->lane_prev ? &detour->lane_prev->lane_next : &lane->first) = detour;
	*(detour->lane_next ? &detour->lane_next->lane_prev : &lane->last) = detour;
}

static void lane_remove(struct memory_lane *lane, struct memory_detour *detour)
{
	if (!detour->listed)
		return;
	*(detour->lane_prev ? &detour->lane_prev->lane_next : &lane->first) = detour->lane_next;
	*(detour->lane_next ? &detour->lane_next->lane_prev : &lane->last) = detour->lane_prev;
	detour->listed = false;
	detour->lane_prev = NULL;
	detour->lane_next = NULL;
}

struct memory_detour *memory_detour_make(struct memory_db *db, struct memory_target *target,
					 struct memory_message *row)
{
	struct memory_delivery *delivery = memory_delivery(db, target, row->seq);
	struct memory_detour *detour = delivery->detour;

	if (!detour) {
		detour = memory_alloc(sizeof(*detour));
		detour->message = row;
		detour->lane = row->key_hash % target->n_lanes;
		delivery->detour = detour;
		delivery->mark = MARK_NEW;
	}
	return detour;
}

void memory_detour_set(struct memory_target *target, struct memory_detour *detour, int state,
		       int why, outbox_time now)
{
	struct memory_lane *lane = &target->lanes[detour->lane];

	detour->state = state;
	detour->why = why;
	detour->last_status_at = now;

	if (state == OUTBOX_DELIVERED || state == OUTBOX_DISCARDED) {
		key_remove(target, detour);
		lane_remove(lane, detour);
		detour->next_attempt_at = 0;
	} else if (state == OUTBOX_FAILED) {
		key_add(target, detour);
		lane_remove(lane, detour);
		detour->next_attempt_at = 0;
	} else {
		key_add(target, detour);
		lane_add(lane, detour);
	}
}

bool memory_detour_blocks(const struct memory_target *target, const struct memory_detour *detour,
			  outbox_time now)
{
	if (detour->state == OUTBOX_FAILED)
		return target->hold;
	return !(detour->state == OUTBOX_PENDING && detour->why == OUTBOX_DEFERRED &&
		 detour->next_attempt_at > now);
}

void memory_detour_free(struct memory_target *target, struct memory_detour *detour)
{
	if (!detour)
		return;
	key_remove(target, detour);
	lane_remove(&target->lanes[detour->lane], detour);
	memory_attempts_free(detour);
	memory_dead_free(detour->dead);
	free(detour->error);
	free(detour->reason);
	free(detour);
}
