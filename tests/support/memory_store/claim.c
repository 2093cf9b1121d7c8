/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/message.h"

/*
 * A claim merges two streams by seq: the lane's detours that may be sent now, and new rows of the log.
 *
 * Which detours may be sent is worked out key by key, in seq order: failed ones (without hold) and
 * deferred ones that are not due stand aside; then all that are due or parked, up to the first that
 * is neither. That one is the key's stop: new rows of the key behind it are blocked. A row without a
 * stop before it goes straight through.
 */

static bool may_go(const struct memory_detour *detour, outbox_time now)
{
	return detour->state == OUTBOX_PENDING && detour->next_attempt_at <= now;
}

static void walk_key(const struct memory_target *target, struct memory_key *key, uint64_t claim,
		     outbox_time now)
{
	key->walked = claim;
	key->stop_seq = 0;
	for (struct memory_detour *d = key->first; d; d = d->key_next) {
		if (!memory_detour_blocks(target, d, now))
			continue;
		if (!may_go(d, now)) {
			key->stop_seq = d->message->seq;
			return;
		}
		d->picked = claim;
	}
}

static void pick_detours(const struct memory_target *target, const struct memory_lane *lane,
			 uint64_t claim, outbox_time now)
{
	for (struct memory_detour *d = lane->first; d; d = d->lane_next) {
		if (target->unordered || !d->key) {
			if (may_go(d, now))
				d->picked = claim;
		} else if (d->key->walked != claim) {
			walk_key(target, d->key, claim, now);
		}
	}
}

static bool is_blocked(const struct memory_target *target, const struct memory_message *row,
		       uint64_t claim, outbox_time now)
{
	struct memory_key *key = target->unordered ? NULL : memory_key_find(target, row->m.key);

	if (!key)
		return false;
	if (key->walked != claim)
		walk_key(target, key, claim, now);
	return key->stop_seq && key->stop_seq < row->seq;
}

static struct memory_detour *next_detour(struct memory_detour *from, uint64_t claim)
{
	while (from && from->picked != claim)
		from = from->lane_next;
	return from;
}

/* Is this row of the log still to be read by this lane? */
static bool is_unread(const struct memory_db *db, const struct memory_target *target, int lane,
		      const struct memory_message *row)
{
	const struct memory_delivery *delivery;

	if (!row || !row->committed || row->key_hash % target->n_lanes != lane)
		return false;
	delivery = memory_delivery(db, target, row->seq);
	return !delivery->detour && delivery->mark == MARK_NEW;
}

static struct memory_message *next_row(const struct memory_db *db,
				       const struct memory_target *target, int lane, int64_t after)
{
	int64_t seq = after < db->base ? db->base : after + 1;

	for (; seq <= db->visible; seq++) {
		struct memory_message *row = memory_log_row(db, seq);

		if (is_unread(db, target, lane, row) && memory_target_routes(target, row))
			return row;
	}
	return NULL;
}

static void add(struct memory_lane *lane, struct memory_item item)
{
	lane->claim = memory_grow(lane->claim, lane->n_claim, &lane->cap_claim, sizeof(item));
	lane->claim[lane->n_claim++] = item;
}

/* Does one more of this size end the claim? A blocked one comes without its payload. */
static bool is_full(const struct memory_lane *lane, size_t max, size_t bytes, size_t max_bytes,
		    bool blocked)
{
	return lane->n_claim && (lane->n_claim >= max || (bytes > max_bytes && !blocked));
}

/* What it costs of a budget for bytes: the headers as the other stores write them. */
static size_t weight(const struct outbox_message *m)
{
	_cleanup_(buf_deinit) struct buf headers = BUF_INIT(SIZE_MAX);

	if (m->n_headers)
		headers_append(&headers, m->headers, m->n_headers);
	return m->size + headers.size;
}

bool memory_claim_pick(struct memory_db *db, struct memory_target *target, int lane_number,
		       size_t max, size_t max_bytes, outbox_time now)
{
	struct memory_lane *lane = &target->lanes[lane_number];
	uint64_t claim = ++db->claims;
	struct memory_message *row = next_row(db, target, lane_number, lane->low);
	struct memory_detour *detour;
	size_t bytes = 0;

	pick_detours(target, lane, claim, now);
	detour = next_detour(lane->first, claim);
	while (detour || row) {
		bool from_log = !detour || (row && row->seq < detour->message->seq);
		struct memory_message *next = from_log ? row : detour->message;
		struct memory_item item = { .seq = next->seq, .from_log = from_log };
		bool suspect = !from_log && detour->suspect;

		item.blocked = from_log && is_blocked(target, row, claim, now);
		bytes += item.blocked ? 0 : weight(&next->m);
		if ((suspect && lane->n_claim) || is_full(lane, max, bytes, max_bytes, item.blocked))
			return true;
		add(lane, item);
		if (suspect)
			return true;
		if (from_log)
			row = next_row(db, target, lane_number, row->seq);
		else
			detour = next_detour(detour->lane_next, claim);
	}
	return false;
}

void memory_claim_mark(struct memory_db *db, struct memory_target *target, int lane_number,
		       outbox_time now)
{
	struct memory_lane *lane = &target->lanes[lane_number];
	const struct memory_receipt *receipt = memory_receipt_last(lane);

	for (size_t i = 0; i < lane->n_claim; i++) {
		struct memory_detour *detour =
			memory_delivery(db, target, lane->claim[i].seq)->detour;

		if (!detour) {
			memory_mark(db, target, lane, lane->claim[i].seq, MARK_CLAIMED);
			continue;
		}
		detour->why_before = detour->why;
		memory_detour_set(target, detour, OUTBOX_SENDING, 0, now);
		detour->owner = receipt->owner;
		detour->n = receipt->n;
	}
}

void memory_claim_pass(struct memory_db *db, struct memory_target *target, int lane_number,
		       int64_t through)
{
	struct memory_lane *lane = &target->lanes[lane_number];

	for (int64_t seq = lane->low + 1; seq <= through; seq++) {
		const struct memory_message *row = memory_log_row(db, seq);

		if (is_unread(db, target, lane_number, row) && !memory_target_routes(target, row))
			memory_mark(db, target, lane, seq, MARK_PASSED);
	}
	lane->read_to = through;

	/* A row that is not committed yet stops the hint: it may still appear. */
	for (; lane->low < db->visible; lane->low++) {
		const struct memory_message *row = memory_log_row(db, lane->low + 1);

		if (row && (!row->committed || is_unread(db, target, lane_number, row)))
			break;
		if (row && row->key_hash % target->n_lanes == lane_number &&
		    memory_delivery(db, target, row->seq)->mark == MARK_CLAIMED)
			break;
	}
}

outbox_time memory_claim_next_due(const struct memory_lane *lane, outbox_time now)
{
	outbox_time next = 0;

	for (const struct memory_detour *d = lane->first; d; d = d->lane_next) {
		if (d->state == OUTBOX_PENDING && d->next_attempt_at > now &&
		    (!next || d->next_attempt_at < next))
			next = d->next_attempt_at;
	}
	return next;
}

static void read_dead(const struct memory_dead *dead, struct outbox_arena *arena,
		      struct outbox_claimed *item)
{
	if (!dead)
		return;
	item->dead_target = outbox_arena_text(arena, dead->target);
	item->dead_reason = dead->reason ? outbox_arena_text(arena, dead->reason) : NULL;
	item->dead_attempts = dead->attempts;
	item->dead_at = dead->at;
}

struct outbox_claimed *memory_claim_read(struct memory_db *db, struct memory_target *target,
					 int lane_number, struct outbox_arena *arena,
					 size_t *ret_count)
{
	const struct memory_lane *lane = &target->lanes[lane_number];
	struct outbox_claimed *items = outbox_arena_alloc(arena, lane->n_claim * sizeof(*items));
	size_t i = 0;

	for (; items && i < lane->n_claim; i++) {
		const struct memory_item *item = &lane->claim[i];
		const struct memory_message *row = memory_log_row(db, item->seq);
		const struct memory_detour *detour = memory_delivery(db, target, item->seq)->detour;

		if (!memory_log_read(db, row, !item->blocked, arena, &items[i]))
			break;
		items[i].blocked = item->blocked;
		if (detour) {
			items[i].detour = true;
			items[i].attempts = detour->attempts;
			items[i].failing_since = detour->failing_since;
			items[i].suspect = detour->suspect;
			items[i].ready_at = detour->ready_at;
			read_dead(detour->dead, arena, &items[i]);
		}
	}
	*ret_count = i;
	return items;
}
