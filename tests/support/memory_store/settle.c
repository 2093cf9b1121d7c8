/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"
#include "store/store.h"

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
		if (s->outcome <= OUTBOX_OUTCOME_UNSET || s->outcome > OUTBOX_OUT_FAILED)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "settlement %zu: %d is not an outcome", i, s->outcome);
	}
	return OUTBOX_OK;
}

static void note(struct memory_db *db, const struct memory_target *target,
		 const struct memory_receipt *receipt, struct memory_event event)
{
	event.n = receipt->n;
	event.owner = receipt->owner;
	event.at = receipt->settled_at;
	event.target = memory_intern(db, target->name);
	db->events = memory_grow(db->events, db->n_events, &db->cap_events, sizeof(event));
	db->events[db->n_events++] = event;
}

static void count(struct memory_receipt *receipt, int outcome)
{
	switch (outcome) {
	case OUTBOX_OUT_DELIVERED:
		receipt->delivered++;
		receipt->delivered_total++;
		break;
	case OUTBOX_OUT_WAITING:
		receipt->retried++;
		break;
	case OUTBOX_OUT_DEFERRED:
		receipt->deferred++;
		break;
	case OUTBOX_OUT_PARKED:
		receipt->parked++;
		break;
	case OUTBOX_OUT_FAILED:
		receipt->failed++;
		break;
	default:
		break;
	}
}

static void charge(struct memory_detour *detour, const struct outbox_settlement *s, outbox_time now)
{
	if (s->attempts > detour->attempts && !detour->failing_since)
		detour->failing_since = now;
	detour->attempts = s->attempts;
	detour->suspect = s->suspect;
	if (s->error)
		memory_replace(&detour->error, s->error);
}

static void settle_detour(struct memory_target *target, struct memory_detour *detour,
			  const struct outbox_settlement *s, const struct memory_receipt *receipt,
			  outbox_time now)
{
	detour->owner = receipt->owner;
	detour->n = receipt->n;
	switch (s->outcome) {
	case OUTBOX_OUT_DELIVERED:
		memory_detour_set(target, detour, OUTBOX_DELIVERED, 0, now);
		break;
	case OUTBOX_OUT_RETURNED:
		detour->next_attempt_at = now;
		memory_detour_set(target, detour, OUTBOX_PENDING,
				  detour->why_before ? detour->why_before : OUTBOX_WAITING, now);
		break;
	case OUTBOX_OUT_WAITING:
		charge(detour, s, now);
		detour->next_attempt_at = now + s->delay;
		memory_detour_set(target, detour, OUTBOX_PENDING, OUTBOX_WAITING, now);
		break;
	case OUTBOX_OUT_DEFERRED:
		charge(detour, s, now);
		detour->next_attempt_at = detour->ready_at = s->due_at;
		memory_detour_set(target, detour, OUTBOX_PENDING, OUTBOX_DEFERRED, now);
		break;
	case OUTBOX_OUT_PARKED:
		charge(detour, s, now);
		detour->next_attempt_at = 0; /* a claim works out when it may go */
		memory_detour_set(target, detour, OUTBOX_PENDING, OUTBOX_PARKED, now);
		break;
	case OUTBOX_OUT_FAILED:
		charge(detour, s, now);
		memory_detour_set(target, detour, OUTBOX_FAILED, 0, now);
		break;
	default:
		break;
	}
}

static void settle_one(struct memory_db *db, struct memory_target *target, struct memory_lane *lane,
		       const struct outbox_settlement *s, struct memory_receipt *receipt,
		       outbox_time now)
{
	struct memory_delivery *delivery = memory_delivery(db, target, s->seq);
	struct memory_message *row = memory_log_row(db, s->seq);
	struct memory_event event = { .seq = s->seq, .state = OUTBOX_DELIVERED };

	count(receipt, s->outcome);
	if (s->outcome != OUTBOX_OUT_RETURNED) {
		receipt->takeovers = 0;
		memory_caution_end(target, delivery, row->slot % target->n_lanes);
	}
	if (!delivery->detour && s->outcome == OUTBOX_OUT_DELIVERED) {
		memory_mark(db, target, lane, s->seq, MARK_DELIVERED);
	} else {
		bool made = !delivery->detour;
		struct memory_detour *detour = memory_detour_make(db, target, row);

		if (made && row->m.due_at > row->created_at)
			detour->ready_at = row->m.due_at;
		settle_detour(target, detour, s, receipt, now);
		event.state = detour->state;
		event.why = detour->why;
		event.attempts = detour->attempts;
		if (s->outcome == OUTBOX_OUT_FAILED)
			memory_dead_send(db, target, detour, now);
	}
	if (s->outcome != OUTBOX_OUT_RETURNED)
		note(db, target, receipt, event);
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
	       store_returned_tail(request->settled, from_log, request->n_settled);
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

	lane->n_claim = 0;
	db->ever_settled = true;
}
