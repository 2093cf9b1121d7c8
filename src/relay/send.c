/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publish one round of a lane's batch and decide it. Rounds of several lanes go out in one call: a key has one message in
 * a round, so with few keys a round is small, and a broker's answer takes as long for a few as for many. Also here: the guard against messages that make a
 * broker drop the connection. After an UNKNOWN the next batches are halved, which searches for the culprit
 * while everything else is delivered; alone on the wire and UNKNOWN again, while others were acknowledged in
 * between, it is charged (core/decide.c).
 */
#include "base/failpoint.h"
#include "relay/lane.h"
#include "relay/outage.h"

static struct suspicion *suspected(struct lane *lane, int64_t seq)
{
	for (size_t i = 0; i < SUSPICIONS; i++)
		if (lane->suspicions[i].seq == seq)
			return &lane->suspicions[i];
	return NULL;
}

static void suspect(struct worker *w, struct lane *lane, int64_t seq)
{
	struct suspicion *s = suspected(lane, seq);

	if (!s)
		s = &lane->suspicions[lane->n_suspicions++ % SUSPICIONS];
	*s = (struct suspicion){ .seq = seq, .acked = w->acked };
}

static int publish(struct worker *w, struct outbox_batch *batch, outbox_time now,
		   struct outbox_error *err)
{
	outbox_time deadline = now + w->target->publish_timeout;
	int r;

	if (deadline > w->lease_until)
		deadline = w->lease_until;
	failpoint("before_publish");
	r = w->transport->ops->publish(w->transport, batch, deadline, err);
	failpoint("after_publish");
	return r;
}

/* May the rest of the batch still be sent? */
static bool may_send(const struct worker *w, const struct lane *lane, outbox_time now)
{
	if (lane->lost || !w->connected || now >= w->lease_until)
		return false;
	return !atomic_load(&w->draining) || now < atomic_load(&w->drain_until);
}

/* The message that was alone in flight when a relay died was charged, once, when it came again. */
static void forgive(struct lane *lane)
{
	const struct outbox_claim *claim = &lane_flight(lane)->claim;

	for (size_t i = 0; lane->died_seq && i < claim->count; i++)
		if (claim->items[i].seq == lane->died_seq)
			lane->died_seq = 0;
}

static struct decide_context context_of(struct worker *w, struct lane *lane, outbox_time now)
{
	struct flight *f = lane_flight(lane);

	return (struct decide_context){ .policy = &w->target->policy,
					.now = f->claim.store_now + (now - lane->read_at),
					.random = &w->random.base,
					.memory = f->arena,
					.suspect_delay = 2 * breaker_next(&w->breaker) };
}

/* The next round of a lane. False: it has none, and goes on to settle. */
static bool next_round(struct worker *w, struct lane *lane, outbox_time now)
{
	struct decide_context context = context_of(w, lane, now);
	struct flight *f = lane_flight(lane);
	size_t n = 0;

	if (may_send(w, lane, now)) {
		n = flight_round(f, &context, lane->died_seq);
		forgive(lane);
	}
	if (!n) {
		flight_return_rest(f);
		lane->phase = LANE_READ;
		return false;
	}
	if (!lane->trip.began)
		lane->trip.began = w->plan->clock->wall(w->plan->clock);
	return true;
}

/* While a culprit is looked for, a lane sends by itself: it must become alone on the wire. */
static bool may_share(const struct worker *w, struct lane *lane)
{
	const struct flight *f = lane_flight(lane);

	return lane->phase == LANE_SEND && f->mode == FLIGHT_ROUNDS && lane->limit == lane->most &&
	       !lane->head.cautious && !lane->died_seq && !f->claim.items[0].suspect &&
	       !breaker_probing(&w->breaker);
}

/* What goes out in one call: the rounds of these lanes. */
struct wire {
	struct lane *lanes[OUTBOX_LANES_MAX];
	size_t n_lanes, messages, bytes;
	struct outbox_batch shared;
	struct outbox_batch *batch; /* the only lane's own, or the shared one */
};

/* A call is no larger than one lane's may be. */
static bool fits(const struct worker *w, const struct wire *wire, const struct flight *f)
{
	size_t bytes = wire->bytes;

	for (size_t i = f->ready_head; i < f->ready_tail; i++)
		bytes += f->items[f->ready[i]].message->size;
	return wire->messages + f->ready_tail - f->ready_head <= w->target->batch_messages &&
	       bytes <= w->plan->batch_bytes;
}

static void add_lane(struct worker *w, struct lane *lane, outbox_time now, struct wire *wire)
{
	const struct flight *f = lane_flight(lane);

	if (!next_round(w, lane, now))
		return;
	wire->lanes[wire->n_lanes++] = lane;
	wire->messages += f->batch.count;
	for (size_t i = 0; i < f->batch.count; i++)
		wire->bytes += f->batch.items[i]->message->size;
}

/* Room for one batch of several rounds. False: there is no memory for it, and the lane goes alone. */
static bool prepare(struct worker *w, struct outbox_batch *batch)
{
	outbox_arena_reset(w->wire_memory);
	batch->memory = w->wire_memory;
	batch->items = outbox_arena_alloc(w->wire_memory,
					  w->target->batch_messages * sizeof(*batch->items));
	return batch->items;
}

/* One batch of all rounds. */
static void share(struct wire *wire)
{
	struct outbox_batch *batch = &wire->shared;

	for (size_t i = 0; i < wire->n_lanes; i++) {
		struct flight *f = lane_flight(wire->lanes[i]);

		for (size_t k = 0; k < f->batch.count; k++)
			batch->items[batch->count++] = f->batch.items[k];
		f->shared = true;
	}
	wire->batch = batch;
}

static void gather(struct worker *w, struct lane *lane, outbox_time now, struct wire *wire)
{
	bool sociable = w->n_lanes > 1 && may_share(w, lane);

	add_lane(w, lane, now, wire);
	if (!wire->n_lanes)
		return;
	/* before the others' rounds are begun: what has begun must be sent */
	sociable = sociable && prepare(w, &wire->shared);
	for (size_t i = 0; sociable && i < w->n_lanes; i++) {
		struct lane *other = w->lanes[i];

		if (other != lane && may_share(w, other) && fits(w, wire, lane_flight(other)))
			add_lane(w, other, now, wire);
	}
	wire->batch = &lane_flight(lane)->batch;
	if (wire->n_lanes > 1)
		share(wire);
}

/* What was said of a lane's messages lives as long as its claim, not as long as the call. */
static void keep_reasons(struct flight *f)
{
	for (size_t i = 0; f->shared && i < f->batch.count; i++) {
		struct outbox_item *item = f->batch.items[i];

		if (item->reason)
			item->reason = outbox_arena_text(f->arena, item->reason);
	}
}

static void judge(struct worker *w, struct lane *lane, const struct wire *wire, int status,
		  outbox_time now)
{
	outbox_time ended = w->plan->clock->mono(w->plan->clock), back_off = wire->batch->back_off;
	struct decide_context context = context_of(w, lane, now);
	struct flight *f = lane_flight(lane);
	int64_t alone = wire->batch->count == 1 ? f->batch.items[0]->seq : 0;
	struct suspicion *suspicion = alone ? suspected(lane, alone) : NULL;
	struct flight_verdicts said;

	keep_reasons(f);
	tally_published(w->tally, &lane->trip, f, ended - now,
			f->claim.store_now + (ended - lane->read_at), w->open_since);
	if (context.suspect_delay < 2 * back_off)
		context.suspect_delay = 2 * back_off;
	said = flight_judge(f, &context, status, suspicion && w->acked > suspicion->acked);
	failpoint("after_decide");
	w->acked += said.acked;
	tally_add(&w->tally->duplicates_unknown, said.unknown);
	tally_add(&w->tally->duplicates_recognised, said.duplicates);
	if (!said.unknown)
		return;
	lane->limit = f->claim.count > 1 ? f->claim.count / 2 : 1;
	if (alone)
		suspect(w, lane, alone);
}

void lane_send(struct worker *w, struct lane *lane, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct wire wire = { 0 };
	outbox_time ended;
	int r;

	gather(w, lane, now, &wire);
	if (!wire.n_lanes)
		return;
	r = publish(w, wire.batch, now, &err);
	ended = w->plan->clock->mono(w->plan->clock);
	tally_called(w->tally, ended - now);
	for (size_t i = 0; i < wire.n_lanes; i++)
		judge(w, wire.lanes[i], &wire, r, now);
	if (!r) {
		trouble_broker_over(w, ended);
		return;
	}
	trouble_broker(w, &err, wire.batch->back_off, ended);
	for (size_t i = 0; i < wire.n_lanes; i++) {
		wire.lanes[i]->trip.outage = true;
		flight_return_rest(lane_flight(wire.lanes[i]));
		wire.lanes[i]->phase = LANE_READ;
	}
}
