/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publish one round of a lane's batch and decide it. Also here: the guard against messages that make a
 * broker drop the connection. After an UNKNOWN the next batches are halved, which searches for the culprit
 * while everything else is delivered; alone on the wire and UNKNOWN again, while others were acknowledged in
 * between, it is charged (core/decide.c).
 */
#include "base/failpoint.h"
#include "relay/lane.h"
#include "relay/trouble.h"

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

static int publish(struct worker *w, struct flight *f, outbox_time now, struct outbox_error *err)
{
	outbox_time deadline = now + w->target->publish_timeout;
	int r;

	if (deadline > w->lease_until)
		deadline = w->lease_until;
	failpoint("before_publish");
	r = w->transport->ops->publish(w->transport, &f->batch, deadline, err);
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

void lane_send(struct worker *w, struct lane *lane, outbox_time now)
{
	struct flight *f = lane_flight(lane);
	struct decide_context context = { .policy = &w->target->policy,
					  .now = f->claim.store_now + (now - lane->read_at),
					  .random = &w->random.base,
					  .memory = f->arena,
					  .suspect_delay = 2 * breaker_next(&w->breaker) };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct flight_verdicts said;
	size_t n = 0;
	struct suspicion *suspicion;
	int64_t alone = 0;
	outbox_time ended;
	int r;

	if (may_send(w, lane, now)) {
		n = flight_round(f, &context, lane->died_seq);
		forgive(lane);
	}
	if (!n) {
		flight_return_rest(f);
		lane->phase = LANE_READ;
		return;
	}
	if (n == 1)
		alone = f->batch.items[0]->seq;
	suspicion = alone ? suspected(lane, alone) : NULL;
	if (!lane->trip.began)
		lane->trip.began = w->plan->clock->wall(w->plan->clock);
	r = publish(w, f, now, &err);
	ended = w->plan->clock->mono(w->plan->clock);
	tally_published(w->tally, &lane->trip, f, ended - now,
			f->claim.store_now + (ended - lane->read_at), w->open_since);
	if (context.suspect_delay < 2 * f->batch.back_off)
		context.suspect_delay = 2 * f->batch.back_off;
	said = flight_judge(f, &context, r, suspicion && w->acked > suspicion->acked);
	failpoint("after_decide");
	w->acked += said.acked;
	tally_add(&w->tally->duplicates_unknown, said.unknown);
	tally_add(&w->tally->duplicates_recognised, said.duplicates);
	if (said.unknown) {
		lane->limit = f->claim.count > 1 ? f->claim.count / 2 : 1;
		if (alone)
			suspect(w, lane, alone);
	}
	if (!r) {
		trouble_broker_over(w, ended);
		return;
	}
	lane->trip.outage = true;
	trouble_broker(w, &err, f->batch.back_off, ended);
	flight_return_rest(f);
	lane->phase = LANE_READ;
}
