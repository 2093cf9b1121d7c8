/* SPDX-License-Identifier: Apache-2.0 */
#include "core/settlement.h"
#include "memory_store/db.h"

#include <stdlib.h>

int memory_settle_check(const struct memory_lane *lane,
			const struct outbox_settle_and_claim *request, struct outbox_error *err)
{
	if (request->n_settled != lane->n_claim)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%zu messages of lane %d of \"%s\" are in flight, %zu are settled",
				   lane->n_claim, request->lane, request->target,
				   request->n_settled);
	for (size_t i = 0; i < request->n_settled; i++) {
		const struct outbox_settlement *s = &request->settled[i];

		if (s->seq != lane->claim[i].seq)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "settlement %zu is for message %lld, the claim has %lld",
					   i, (long long)s->seq, (long long)lane->claim[i].seq);
	}
	return OUTBOX_OK;
}

static void add_event(struct memory_db *db, const struct memory_target *target,
		      const struct memory_receipt *receipt, struct memory_event event)
{
	event.n = receipt->n;
	event.owner = receipt->owner;
	event.at = receipt->settled_at;
	event.target = memory_intern(db, target->name);
	db->events = memory_grow(db->events, db->n_events, &db->cap_events, sizeof(event));
	db->events[db->n_events++] = event;
}

static struct detour_state state_of(const struct memory_detour *detour)
{
	return (struct detour_state){ .state = detour->state,
				      .why = detour->why_before,
				      .attempts = detour->attempts,
				      .suspect = detour->suspect,
				      .next_attempt_at = detour->next_attempt_at,
				      .failing_since = detour->failing_since,
				      .ready_at = detour->ready_at };
}

static void write_effect(struct memory_target *target, struct memory_detour *detour,
			 const struct settlement_effect *effect,
			 const struct memory_receipt *receipt, outbox_time now)
{
	detour->owner = receipt->owner;
	detour->n = receipt->n;
	detour->attempts = effect->detour.attempts;
	detour->suspect = effect->detour.suspect;
	detour->next_attempt_at = effect->detour.next_attempt_at;
	detour->failing_since = effect->detour.failing_since;
	detour->ready_at = effect->detour.ready_at;
	if (effect->error)
		memory_replace(&detour->error, effect->error);
	memory_detour_set(target, detour, effect->detour.state, effect->detour.why, now);
}

static void settle_one(struct memory_db *db, struct memory_target *target, struct memory_lane *lane,
		       const struct outbox_settlement *s, struct memory_receipt *receipt,
		       outbox_time now)
{
	struct memory_delivery *delivery = memory_delivery(db, target, s->seq);
	struct memory_message *row = memory_log_row(db, s->seq);
	struct memory_event event = { .seq = s->seq, .state = OUTBOX_DELIVERED };
	struct detour_state before = { 0 };
	struct settlement_effect effect = { 0 };

	if (delivery->detour)
		before = state_of(delivery->detour);
	(void)!settlement_apply(delivery->detour ? &before : NULL, s, now, &effect,
				NULL); /* checked */
	settlement_count(&receipt->counts, s->outcome);
	if (effect.covered) {
		memory_mark(db, target, lane, s->seq, MARK_DELIVERED);
	} else {
		bool made = !delivery->detour;
		struct memory_detour *detour = memory_detour_make(db, target, row);

		if (made && !effect.detour.ready_at && row->m.due_at > row->created_at)
			effect.detour.ready_at = row->m.due_at;
		write_effect(target, detour, &effect, receipt, now);
		if (s->attempt)
			memory_attempt_add(detour, s, now);
		event.state = detour->state;
		event.why = detour->why;
		event.attempts = detour->attempts;
		if (s->outcome == OUTBOX_OUT_FAILED)
			memory_dead_send(db, target, detour, now);
	}
	if (effect.settles)
		add_event(db, target, receipt, event);
}

/* Where the lane stands now, and whether it may go faster again. */
static void move_position(struct memory_lane *lane, struct memory_receipt *receipt)
{
	receipt->pos = lane->read_to;
	receipt->delivered_total += receipt->counts.delivered;
	receipt->caution = caution_settle(&receipt->caution, receipt->pos,
					  settlement_progress(&receipt->counts));
}

void memory_settle(struct memory_db *db, struct memory_target *target,
		   const struct outbox_settle_and_claim *request, struct memory_receipt *receipt,
		   outbox_time now)
{
	struct memory_lane *lane = &target->lanes[request->lane];
	bool *from_log = memory_alloc(lane->n_claim * sizeof(*from_log));
	size_t kept;

	for (size_t i = 0; i < lane->n_claim; i++)
		from_log[i] = lane->claim[i].from_log;
	kept = request->n_settled -
	       settlement_returned_tail(request->settled, from_log, request->n_settled);
	free(from_log);

	for (size_t i = 0; i < kept; i++)
		settle_one(db, target, lane, &request->settled[i], receipt, now);
	for (size_t i = kept; i < lane->n_claim; i++)
		memory_delivery(db, target, lane->claim[i].seq)->mark = MARK_NEW;
	for (size_t i = 0; i < lane->n_claim; i++)
		memory_dead_arrive(db, target, memory_log_row(db, lane->claim[i].seq),
				   request->settled[i].outcome == OUTBOX_OUT_FAILED, now);
	if (kept < lane->n_claim)
		lane->read_to = lane->claim[kept].seq - 1;
	move_position(lane, receipt);

	lane->n_claim = 0;
	db->ever_settled = true;
}
