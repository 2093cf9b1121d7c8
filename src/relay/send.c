/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publish one round of a lane's batch and record what decide says of it. Rounds of several lanes go out in one call: a
 * broker's answer takes as long for a few messages as for many, and each lane has few where they are spread, or where
 * a round has one message of each of few keys. While it looks for a culprit, a lane sends alone (core/decide.h).
 */
#include "relay/send.h"

#include "base/failpoint.h"

static int publish_round(struct link *link, struct outbox_batch *batch, outbox_time now,
			 struct outbox_error *err)
{
	outbox_time deadline = now + link->target->publish_timeout;
	int r;

	if (deadline > link->lease_until)
		deadline = link->lease_until;
	failpoint("before_publish");
	r = link->transport->ops->publish(link->transport, batch, deadline, err);
	failpoint("after_publish");
	return r;
}

/* May the rest of the batch still be sent? */
static bool may_send_more(const struct link *link, const struct lane *lane, outbox_time now)
{
	if (lane->lost || !link->connected || now >= link->lease_until)
		return false;
	return !atomic_load(&link->draining) || now < atomic_load(&link->drain_until);
}

/* The message that was alone in flight when a relay died was charged, once, when it came again. */
static void forget_death(struct lane *lane)
{
	const struct outbox_claim *claim = &lane_batch(lane)->claim;

	for (size_t i = 0; lane->died_seq && i < claim->count; i++)
		if (claim->items[i].seq == lane->died_seq)
			lane->died_seq = 0;
}

static struct decide_context decide_context_of(struct link *link, struct lane *lane, outbox_time now)
{
	struct batch *b = lane_batch(lane);

	return (struct decide_context){ .policy = &link->target->policy,
					.now = b->claim.store_now + (now - lane->read_at),
					.random = &link->random.base,
					.memory = b->arena,
					.hold = link->target->hold,
					.max_size = link->target->max_size,
					.breaker_delay = breaker_next(&link->breaker) };
}

/* The next round of a lane. False: it has none, and goes on to settle. */
static bool next_round(struct link *link, struct lane *lane, outbox_time now)
{
	struct decide_context context = decide_context_of(link, lane, now);
	struct batch *b = lane_batch(lane);
	size_t n = 0;

	if (may_send_more(link, lane, now)) {
		n = batch_next_round(b, &context, lane->died_seq);
		forget_death(lane);
	}
	if (!n) {
		batch_return_rest(b);
		lane->phase = LANE_CLAIM;
		return false;
	}
	if (!lane->trip.began)
		lane->trip.began = link->plan->clock->wall(link->plan->clock);
	return true;
}

static bool may_share(const struct link *link, struct lane *lane)
{
	const struct batch *b = lane_batch(lane);

	return lane->phase == LANE_SEND &&
	       decide_may_share(&(struct decide_lane){ .limit = lane->limit,
						       .most = lane->most,
						       .cautious = lane->head.cautious,
						       .died_alone = lane->died_seq,
						       .suspect = b->claim.items[0].suspect,
						       .probing = breaker_probing(&link->breaker) });
}

/* What goes out in one call: the rounds of these lanes. */
struct call {
	struct lane *lanes[OUTBOX_LANES_MAX];
	size_t n_lanes, messages, bytes;
	struct outbox_batch shared;
	struct outbox_batch *batch; /* the only lane's own, or the shared one */
};

/* A call is no larger than one lane's may be. */
static bool fits_call(const struct link *link, const struct call *call, const struct batch *b)
{
	size_t bytes = call->bytes;

	for (size_t i = b->ready_head; i < b->ready_tail; i++)
		bytes += b->items[b->ready[i]].message->size;
	return call->messages + b->ready_tail - b->ready_head <= link->target->batch_messages &&
	       bytes <= link->plan->batch_bytes;
}

static void add_lane(struct link *link, struct lane *lane, outbox_time now, struct call *call)
{
	const struct batch *b = lane_batch(lane);

	if (!next_round(link, lane, now))
		return;
	call->lanes[call->n_lanes++] = lane;
	call->messages += b->round.count;
	for (size_t i = 0; i < b->round.count; i++)
		call->bytes += b->round.items[i]->message->size;
}

/* Room for one batch of several rounds. False: there is no memory for it, and the lane goes alone. */
static bool prepare_shared_batch(struct link *link, struct outbox_batch *batch)
{
	outbox_arena_reset(link->call_memory);
	batch->memory = link->call_memory;
	batch->items = outbox_arena_alloc(link->call_memory,
					  link->target->batch_messages * sizeof(*batch->items));
	return batch->items;
}

/* One batch of all rounds. */
static void merge_rounds(struct call *call)
{
	struct outbox_batch *batch = &call->shared;

	for (size_t i = 0; i < call->n_lanes; i++) {
		struct batch *b = lane_batch(call->lanes[i]);

		for (size_t k = 0; k < b->round.count; k++)
			batch->items[batch->count++] = b->round.items[k];
		b->shared = true;
	}
	call->batch = batch;
}

/* Lanes that have sent everything, too, go on with this one: they settle in one call of the store. */
static void finish_others(struct link *link, const struct lanes *lanes, outbox_time now)
{
	for (size_t i = 0; i < lanes->count; i++) {
		const struct batch *b = lane_batch(lanes->list[i]);

		if (lanes->list[i]->phase == LANE_SEND && b->ready_head == b->ready_tail)
			next_round(link, lanes->list[i], now);
	}
}

static void gather_rounds(struct link *link, const struct lanes *lanes, struct lane *lane,
			  outbox_time now, struct call *call)
{
	bool shares_call = lanes->count > 1 && may_share(link, lane);

	add_lane(link, lane, now, call);
	if (!call->n_lanes) {
		finish_others(link, lanes, now);
		return;
	}
	/* before the others' rounds are begun: what has begun must be sent */
	shares_call = shares_call && prepare_shared_batch(link, &call->shared);
	for (size_t i = 0; shares_call && i < lanes->count; i++) {
		struct lane *other = lanes->list[i];

		if (other != lane && may_share(link, other) &&
		    fits_call(link, call, lane_batch(other)))
			add_lane(link, other, now, call);
	}
	call->batch = &lane_batch(lane)->round;
	if (call->n_lanes > 1)
		merge_rounds(call);
}

/* What was said of a lane's messages lives as long as its claim, not as long as the call. */
static void keep_reasons(struct batch *b)
{
	for (size_t i = 0; b->shared && i < b->round.count; i++) {
		struct outbox_item *item = b->round.items[i];

		if (item->reason)
			item->reason = outbox_arena_text(b->arena, item->reason);
		if (item->answer)
			item->answer = outbox_arena_text(b->arena, item->answer);
	}
}

static void judge_round(struct link *link, struct lane *lane, const struct call *call, int status,
			outbox_time now)
{
	outbox_time ended = link->plan->clock->mono(link->plan->clock),
		    back_off = call->batch->back_off;
	struct decide_context context = decide_context_of(link, lane, now);
	struct batch *b = lane_batch(lane);
	int64_t alone = call->batch->count == 1 ? b->round.items[0]->seq : 0;
	bool others_acked = decide_others_acked(&lane->suspicions, alone, link->acked);
	struct batch_verdicts said;

	keep_reasons(b);
	tally_published(link->tally, &lane->trip, b, ended - now,
			b->claim.store_now + (ended - lane->read_at), link->open_since);
	if (context.breaker_delay < back_off)
		context.breaker_delay = back_off;
	said = batch_judge(b, &context, status, others_acked);
	failpoint("after_decide");
	link->acked += said.acked;
	tally_add(&link->tally->duplicates_unknown, said.unknown);
	tally_add(&link->tally->duplicates_recognised, said.duplicates);
	if (!said.unknown)
		return;
	lane->limit = decide_smaller_claim(b->claim.count);
	if (alone)
		decide_suspect(&lane->suspicions, alone, link->acked);
}

void send_rounds(struct link *link, const struct lanes *lanes, struct lane *lane, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct call call = { 0 };
	outbox_time ended;
	int r;

	gather_rounds(link, lanes, lane, now, &call);
	if (!call.n_lanes)
		return;
	r = publish_round(link, call.batch, now, &err);
	ended = link->plan->clock->mono(link->plan->clock);
	tally_called(link->tally, ended - now);
	for (size_t i = 0; i < call.n_lanes; i++)
		judge_round(link, call.lanes[i], &call, r, now);
	if (!r) {
		link_broker_answered(link, ended);
		return;
	}
	link_broker_failed(link, &err, call.batch->back_off, ended);
	for (size_t i = 0; i < call.n_lanes; i++) {
		call.lanes[i]->trip.outage = true;
		batch_return_rest(lane_batch(call.lanes[i]));
		call.lanes[i]->phase = LANE_CLAIM;
	}
}
