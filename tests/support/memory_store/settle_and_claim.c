/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

/*
 * Settle and claim, as one compare-and-append. The order of things matters: everything that can be
 * refused is refused before the first change; the arena is the one thing that can run out later, and
 * then the claim is simply cut to what fitted.
 */

static int fenced(const struct outbox_settle_and_claim *request, const struct memory_receipt *last,
		  struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EFENCED,
			   "lane %d of \"%s\": receipt %lld is not ours any more, %s wrote receipt %lld",
			   request->lane, request->target, (long long)request->n,
			   last->owner[0] ? last->owner : "the store", (long long)last->n);
}

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM,
			   "claim: the arena has no room for one message; give it a larger maximum");
}

static void answer(struct outbox_claim *claim, const struct memory_lane *lane, outbox_time now)
{
	const struct memory_receipt *last = memory_receipt_last(lane);

	claim->n = last->n;
	claim->fence_token = last->fence_token;
	claim->store_now = now;
	claim->cautious = memory_lane_is_cautious(lane);
	claim->next_due = memory_claim_next_due(lane, now);
}

static int claim_again(struct memory_db *db, struct memory_target *target, int lane_number,
		       struct outbox_arena *arena, struct outbox_claim *claim,
		       struct outbox_error *err)
{
	const struct memory_lane *lane = &target->lanes[lane_number];

	claim->items = memory_claim_read(db, target, lane_number, arena, &claim->count);
	if (claim->count < lane->n_claim)
		return no_room(err);
	return OUTBOX_OK;
}

/* How many messages the next claim may have. */
static size_t claim_size(const struct memory_target *target, const struct memory_lane *lane,
			 const struct outbox_settle_and_claim *request, struct outbox_claim *claim)
{
	claim->paused = target->paused;
	claim->stale_route = request->route_version != target->version;
	if (claim->paused || claim->stale_route)
		return 0;
	return memory_lane_is_cautious(lane) && request->max_messages > 1 ? 1
									  : request->max_messages;
}

/* How far the log is read: to its end, unless the claim was cut. */
static void pass_log(struct memory_db *db, struct memory_target *target, int lane_number, bool cut)
{
	struct memory_lane *lane = &target->lanes[lane_number];
	int64_t through = cut ? lane->read_to : db->visible;

	if (cut && lane->n_claim && lane->claim[lane->n_claim - 1].seq > through)
		through = lane->claim[lane->n_claim - 1].seq;
	memory_claim_pass(db, target, lane_number, through);
	if (!lane->n_claim)
		memory_receipt_last(lane)->pos = through;
}

static int settle_and_claim(struct memory_store *s, struct memory_target *target,
			    const struct outbox_settle_and_claim *request,
			    struct outbox_arena *arena, struct outbox_claim *claim,
			    struct outbox_error *err)
{
	struct memory_db *db = s->db;
	struct memory_lane *lane = &target->lanes[request->lane];
	bool settling = request->n_settled > 0, cut = true;
	outbox_time now = memory_now(s);
	size_t max, picked;

	if (settling)
		memory_settle(db, target, request,
			      memory_receipt_append(db, lane, request->new_token, request->owner,
						    now),
			      now);
	max = claim_size(target, lane, request, claim);
	if (max)
		cut = memory_claim_pick(db, target, request->lane, max, request->max_bytes, now);

	picked = lane->n_claim;
	claim->items = memory_claim_read(db, target, request->lane, arena, &claim->count);
	lane->n_claim = claim->count;
	if (picked > claim->count) {
		cut = true;
		if (!claim->count && !settling)
			return no_room(err);
	}

	/* An idle lane writes nothing, but follows when the log has run far ahead of it. */
	if (!settling && !claim->count && (cut || db->visible - lane->read_to <= MEMORY_AHEAD))
		return OUTBOX_OK;
	if (!settling)
		memory_receipt_append(db, lane, request->new_token, request->owner, now);
	memory_claim_mark(db, target, request->lane, now);
	pass_log(db, target, request->lane, cut);
	return OUTBOX_OK;
}

int memory_settle_and_claim(struct memory_store *s, const struct outbox_settle_and_claim *request,
			    struct outbox_arena *arena, struct outbox_claim *ret_claim,
			    struct outbox_error *err)
{
	struct outbox_claim claim = { 0 };
	const struct memory_receipt *last;
	struct memory_target *target;
	struct memory_lane *lane;
	bool ours, done;
	int status = memory_lane_get(s->db, request->target, request->lane, &target, &lane, err);

	if (status)
		return status;
	last = memory_receipt_last(lane);
	ours = last->n == request->n && last->fence_token == request->fence_token;
	done = last->n == request->n + 1 && last->fence_token == request->new_token;
	if (!ours && !done)
		return fenced(request, last, err);
	status = memory_lane_check(s->db, request->target, request->lane, lane, err);
	if (!status && ours)
		status = memory_settle_check(lane, request, err);
	if (!status && ours) {
		status = settle_and_claim(s, target, request, arena, &claim, err);
	} else if (!status) {
		claim_size(target, lane, request, &claim);
		status = claim_again(s->db, target, request->lane, arena, &claim, err);
	}
	if (status)
		return status;
	answer(&claim, lane, memory_now(s));
	*ret_claim = claim;
	return OUTBOX_OK;
}

/* Would a claim of one message find any? What is picked is not marked, and forgotten again. */
static bool finds_work(struct memory_store *s, struct memory_target *target, int lane_number)
{
	struct memory_lane *lane = &target->lanes[lane_number];
	bool found;

	if (s->db->visible - lane->read_to > MEMORY_AHEAD)
		return true;
	memory_claim_pick(s->db, target, lane_number, 1, SIZE_MAX, memory_now(s));
	found = lane->n_claim;
	lane->n_claim = 0;
	return found;
}

int memory_look(struct memory_store *s, const struct outbox_look *look,
		struct outbox_looked *ret_looked, struct outbox_error *err)
{
	outbox_time now = memory_now(s);

	*ret_looked = (struct outbox_looked){ .store_now = now };
	for (size_t i = 0; i < look->count; i++) {
		struct outbox_error ignored = OUTBOX_ERROR_INIT;
		const struct memory_receipt *last;
		struct memory_target *target;
		struct memory_lane *lane;
		outbox_time due;
		int status =
			memory_lane_get(s->db, look->target, look->lanes[i], &target, &lane, err);

		if (status)
			return status;
		last = memory_receipt_last(lane);
		due = memory_claim_next_due(lane, now);
		if (due && (!ret_looked->next_due || due < ret_looked->next_due))
			ret_looked->next_due = due;
		ret_looked->work[i] =
			last->n != look->n[i] || last->fence_token != look->fence_tokens[i] ||
			lane->n_claim ||
			memory_lane_check(s->db, look->target, look->lanes[i], lane, &ignored) ||
			finds_work(s, target, look->lanes[i]);
	}
	return OUTBOX_OK;
}
