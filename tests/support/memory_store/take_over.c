/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include <string.h>

/*
 * Taking a lane over. What was in flight becomes pending again: log rows simply go back to the log,
 * detours are due at once. core/caution.h says what the new owner must suspect.
 */

static void give_back(struct memory_db *db, struct memory_target *target, struct memory_lane *lane,
		      outbox_time now)
{
	for (size_t i = 0; i < lane->n_claim; i++) {
		int64_t seq = lane->claim[i].seq;
		struct memory_delivery *delivery = memory_delivery(db, target, seq);

		if (delivery->detour) {
			delivery->detour->next_attempt_at = now;
			memory_detour_set(target, delivery->detour, OUTBOX_PENDING, OUTBOX_WAITING,
					  now);
		} else {
			delivery->mark = MARK_NEW;
		}
		memory_dead_arrive(db, target, memory_log_row(db, seq), false, now);
	}
	lane->n_claim = 0;
}

static struct caution_claim claim_of(struct memory_db *db, struct memory_target *target,
				     const struct memory_lane *lane)
{
	struct caution_claim claim = { .count = (int64_t)lane->n_claim };
	const struct memory_detour *detour;

	if (!lane->n_claim)
		return claim;
	for (size_t i = 0; i < lane->n_claim; i++)
		claim.detours += !lane->claim[i].from_log;
	claim.first = lane->claim[0].seq;
	claim.last = lane->claim[lane->n_claim - 1].seq;
	detour = memory_delivery(db, target, claim.first)->detour;
	claim.first_is_suspect = detour && detour->suspect;
	return claim;
}

void memory_lane_take(struct memory_db *db, struct memory_target *target, int lane_number,
		      const char *owner, int64_t token, outbox_time now)
{
	struct memory_lane *lane = &target->lanes[lane_number];
	const struct memory_receipt *last = memory_receipt_last(lane);
	struct caution_claim claim = claim_of(db, target, lane);
	struct caution caution = caution_take_over(&last->caution, last->pos, &claim);
	struct memory_receipt *receipt = memory_receipt_append(db, lane, token, owner, now);

	receipt->take = true;
	receipt->caution = caution;
	lane->takeovers += lane->n_claim > 0;
	lane->read_to = receipt->pos;
	give_back(db, target, lane, now);
}

int memory_take_over(struct memory_store *s, const char *target_name, int lane_number,
		     const char *owner, int64_t new_token, struct outbox_head *ret_head,
		     struct outbox_error *err)
{
	const struct memory_receipt *last;
	struct memory_target *target;
	struct memory_lane *lane;
	int64_t in_flight;
	int status = memory_lane_get(s->db, target_name, lane_number, &target, &lane, err);

	if (status)
		return status;
	if (!lane->owner || strcmp(lane->owner, owner) != 0)
		return outbox_fail(err, OUTBOX_EFENCED, "lane %d of \"%s\" is leased to %s",
				   lane_number, target_name, lane->owner ? lane->owner : "nobody");

	status = memory_lane_check(s->db, target_name, lane_number, lane, err);
	if (status)
		return status;
	in_flight = (int64_t)lane->n_claim;
	last = memory_receipt_last(lane);
	if (!last->take || last->fence_token != new_token)
		memory_lane_take(s->db, target, lane_number, owner, new_token, memory_now(s));
	last = memory_receipt_last(lane);
	*ret_head = (struct outbox_head){ .n = last->n,
					  .fence_token = last->fence_token,
					  .takeovers = (int)last->caution.takeovers,
					  .cautious = memory_lane_is_cautious(lane),
					  .suspect_seq = last->caution.suspect_seq,
					  .in_flight = in_flight };
	return OUTBOX_OK;
}
