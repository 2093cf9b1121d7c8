/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/lane.h"

#include "base/failpoint.h"
#include "base/text.h"
#include "relay/outage.h"
#include "relay/outgoing.h"
#include "relay/rejection_log.h"

#include <stdlib.h>

/* How often a lane polls while publishers would wake it. */
#define ARMED_POLL OUTBOX_SECONDS

/* Answers in a row that do not come in time before a lane asks for less: to a claim, and to a settlement. */
#define SLOW_CLAIMS 2
#define SLOW_SETTLES 8

int lane_new(int number, const struct worker *w, struct lane **ret_lane, struct outbox_error *err)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int r = OUTBOX_OK;

	if (!lane)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	lane->number = number;
	lane->phase = LANE_TAKE;
	lane->limit = lane->most = w->target->batch_messages;
	lane->poll = w->target->poll_min;
	for (int i = 0; i < 2 && !r; i++)
		r = batch_init(&lane->batches[i], w->plan->batch_bytes, err);
	if (r) {
		lane_free(lane);
		return r;
	}
	*ret_lane = lane;
	return OUTBOX_OK;
}

struct lane *lane_free(struct lane *lane)
{
	if (!lane)
		return NULL;
	for (int i = 0; i < 2; i++)
		batch_deinit(&lane->batches[i]);
	free(lane);
	return NULL;
}

struct batch *lane_batch(struct lane *lane)
{
	return &lane->batches[lane->current];
}

static int64_t draw_fence(struct worker *w, struct lane *lane)
{
	/* Kept until the append is known: repeated with the same token, done twice is done once. */
	while (!lane->next_fence)
		lane->next_fence = (int64_t)(w->random.base.next(&w->random.base) >> 1);
	return lane->next_fence;
}

static void take_over(struct worker *w, struct lane *lane, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	failpoint("before_take");
	if (w->store->ops->take_over(w->store, w->target->name, lane->number, w->owner,
				     draw_fence(w, lane), &lane->head, &err)) {
		outage_lane(w, lane, "take", &err, now);
		return;
	}
	failpoint("after_take");
	outage_lane_over(w, lane, "take", now);
	lane->next_fence = 0;
	lane->died_seq = lane->head.suspect_seq;
	lane->phase = LANE_READ;
	if (!lane->head.takeovers)
		return;
	tally_add(&w->tally->takeovers, 1);
	tally_add(&w->tally->duplicates_takeover, (uint64_t)lane->head.in_flight);
	log_event(&w->plan->log, EVENT_LANE_TAKEOVER, ABOUT_LANE(w, lane),
		  "taken over with messages in flight%s",
		  lane->head.cautious ? "; repeatedly, so one message at a time for now" : "");
}

/* How many messages the next claim may have. */
static size_t claim_size(const struct worker *w, const struct lane *lane, outbox_time now)
{
	if (lane->leaving || lane->lost || atomic_load(&w->draining) || w->stale_route ||
	    breaker_open(&w->breaker, now) || now >= w->lease_until)
		return 0;
	if (breaker_probing(&w->breaker))
		return 1;
	return lane->limit;
}

static void connect_broker(struct worker *w, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (w->transport->ops->connect(w->transport, now + w->target->publish_timeout, &err))
		outage_broker(w, &err, 0, now);
	else
		w->connected = true;
	failpoint("after_connect");
}

static void forget_batch(struct worker *w, struct lane *lane)
{
	struct batch *b = lane_batch(lane);

	if (b->claim.count) {
		tally_sub(&w->tally->in_flight_batches, 1);
		tally_sub(&w->tally->in_flight_messages, b->claim.count);
	}
	batch_reset(b);
	lane->trip = (struct trip){ 0 };
}

/* The claim was settled: count it, and let the batch grow again. */
static void count_settled(struct worker *w, struct lane *lane, outbox_time took)
{
	struct batch_outcomes t = batch_count(lane_batch(lane));

	tally_settled(w->tally, &(struct tally_batch){
					.target = w->target->name,
					.lane = lane->number,
					.batch = lane_batch(lane),
					.ended = &t,
					.trip = &lane->trip,
					.settle = took,
					.wall = w->plan->clock->wall(w->plan->clock),
					.outage = w->outage.message,
				});
	rejection_log_add(w, lane_batch(lane), w->plan->clock->mono(w->plan->clock));
	lane->limit = decide_next_claim(lane->limit, lane->most, lane_batch(lane)->claim.count,
					t.returned);
	forget_batch(w, lane);
}

static enum wire_order wire_order_of(const struct worker *w)
{
	return decide_order(w->target->order == OUTBOX_ORDER_STRICT, w->target->hold,
			    w->transport->ops->flags & OUTBOX_TRANSPORT_KEEPS_ORDER);
}

/* Nothing came back: poll again later, sooner when a retry is due before that. */
static void wait_for_more(struct worker *w, struct lane *lane, const struct outbox_claim *claim,
			  size_t want, outbox_time now)
{
	outbox_time wait = lane->poll;

	if (w->wakeup && atomic_load(&w->wakeup->armed) && wait < ARMED_POLL)
		wait = ARMED_POLL;
	lane->ran_dry = want > 0;
	lane->dry = lane->read_wakeup;
	if (lane->leaving || lane->lost) {
		lane->phase = LANE_RELEASE;
		return;
	}
	if (breaker_open(&w->breaker, now)) {
		lane->run_at = w->breaker.until;
		return;
	}
	if (lane->throttled) {
		lane->dry = 0; /* who knows */
		lane->run_at = lane->permits_at;
		return;
	}
	if (claim->next_due && claim->next_due - claim->store_now < wait)
		wait = claim->next_due - claim->store_now;
	lane->run_at = now + (wait > 0 ? wait : 0);
	lane->poll = lane->poll * 2 < w->target->poll_max ? lane->poll * 2 : w->target->poll_max;
}

static outbox_time slow_limit(const struct worker *w)
{
	return w->target->lease / 3;
}

static void begin_batch(struct worker *w, struct lane *lane, size_t want, outbox_time now)
{
	struct batch *fresh = &lane->batches[!lane->current];
	struct outbox_error err = OUTBOX_ERROR_INIT;
	/* After the call: the store's time is that of its end, or nearly. */
	outbox_time ended = w->plan->clock->mono(w->plan->clock);

	if (lane_batch(lane)->claim.count)
		count_settled(w, lane, ended - now);
	lane->current = !lane->current;
	/* Nothing was written: ask with the same token again. An earlier try whose answer was lost may
	 * still arrive and claim; then that claim is ours, instead of locking us out. */
	if (fresh->claim.n != lane->head.n)
		lane->next_fence = 0;
	if (fresh->claim.paused)
		w->open_since = fresh->claim.store_now; /* at least; the next lease tells */
	lane->head.n = fresh->claim.n;
	lane->head.token = fresh->claim.token;
	lane->head.cautious = fresh->claim.cautious;
	if (fresh->claim.stale_route) {
		lane->leaving = true;
		w->lease_at = now; /* which says so and stops all lanes */
	}
	if (!fresh->claim.count) {
		wait_for_more(w, lane, &fresh->claim, want, now);
		return;
	}
	tally_add(&w->tally->in_flight_batches, 1);
	tally_add(&w->tally->in_flight_messages, fresh->claim.count);
	lane->ran_dry = false;
	lane->dry = 0;
	lane->poll = w->target->poll_min;
	lane->read_at = ended;
	/* What took so long to come cannot be sent within the lease: it would be read again and again. */
	if (lane->read_at - now > slow_limit(w))
		lane->limit = decide_smaller_claim(fresh->claim.count);
	lane->phase = LANE_SEND;
	if (batch_begin(fresh, wire_order_of(w), &err) ||
	    outgoing_prepare(fresh, w->plan, w->target, &err)) {
		/* Claimed, but no memory to work on it: take the lane anew. */
		forget_batch(w, lane);
		lane->phase = LANE_TAKE;
		lane->limit = decide_smaller_claim(lane->limit);
		outage_store(w, "settle", &err, now);
	}
}

/* Somebody else took the lane: our settlement had no effect, and all we remember is void. */
static void give_up_lane(struct worker *w, struct lane *lane)
{
	struct batch_outcomes t = batch_count(lane_batch(lane));

	tally_add(&w->tally->fenced, 1);
	tally_add(&w->tally->duplicates_fenced, t.delivered);
	log_event(&w->plan->log, EVENT_LANE_FENCED, ABOUT_LANE(w, lane),
		  "taken by another relay; %zu acknowledged messages of ours may be sent again",
		  t.delivered);
	forget_batch(w, lane);
	lane->phase = LANE_RELEASE;
	lane->lost = true;
}

/* We shall not get the answer. If its settlement was not done either, what we sent goes out again. */
static void give_up_answer(struct worker *w, struct lane *lane)
{
	struct batch_outcomes t = batch_count(lane_batch(lane));

	if (t.delivered) {
		tally_add(&w->tally->duplicates_fenced, t.delivered);
		log_event(&w->plan->log, EVENT_LANE_UNANSWERED, ABOUT_LANE(w, lane),
			  "no answer to its settlement; %zu acknowledged messages may be sent "
			  "again",
			  t.delivered);
	}
	forget_batch(w, lane);
	lane->next_fence = 0;
	lane->phase = LANE_TAKE;
}

/*
 * An answer that does not fit into memory, or not through the wire in time: ask for less. The same claim would come
 * again and again, so the lane is taken anew; early when that costs nothing, late when it may cost duplicates. Memory that
 * did not suffice for one claim does not suffice for the same one a moment later: at most once more, since the store may
 * have been short of it and done nothing.
 */
static void ask_for_less(struct worker *w, struct lane *lane, int status, outbox_time took)
{
	bool memory = status == OUTBOX_ENOMEM,
	     late = status == OUTBOX_ETIMEDOUT || took > slow_limit(w);
	bool costs = lane_batch(lane)->claim.count;
	int patience = memory ? 1 + costs : costs ? SLOW_SETTLES : SLOW_CLAIMS;

	lane->slow_failures = memory || late ? lane->slow_failures + 1 : 0;
	if (!memory && lane->slow_failures < patience)
		return;
	lane->limit = decide_smaller_claim(lane->limit);
	lane->most = lane->limit;
	if (lane->slow_failures < patience)
		return;
	give_up_answer(w, lane);
	lane->slow_failures = 0;
}

/*
 * The rate is asked before a claim, never within one. Taken in advance, given back when there was less to claim: a
 * worker that idles must not keep others from it.
 */
static size_t take_permits(struct worker *w, struct lane *lane, size_t want, outbox_time now)
{
	size_t may = want;

	if (want)
		may = throttle_take(w->target->throttle, w->target->rank, want, now,
				    &lane->permits_at);
	lane->throttled = want && !may;
	return may;
}

/* What is parked at once is not sent. */
static void use_permits(struct worker *w, const struct outbox_claim *claim, size_t taken,
			outbox_time now)
{
	size_t used = 0;

	if (!taken && !claim->count)
		return;
	for (size_t i = 0; i < claim->count; i++)
		used += !claim->items[i].blocked;
	throttle_used(w->target->throttle, w->target->rank, taken, used, now);
}

static void settle_and_read(struct worker *w, struct lane *lane, outbox_time now)
{
	struct batch *settled = lane_batch(lane), *fresh = &lane->batches[!lane->current];
	struct outbox_error err = OUTBOX_ERROR_INIT;
	size_t want = claim_size(w, lane, now);
	int r;

	lane->throttled = false;

	lane->run_at = now; /* a wake-up may have come before its time */
	lane->read_wakeup =
		worker_wakeups(w); /* before the read: what is published later is looked at again */
	if (want && !w->connected) {
		/* Never claim into an outage: first see that the broker is there. */
		if (!settled->claim.count) {
			connect_broker(w, now);
			return;
		}
		want = 0;
	}
	want = take_permits(w, lane, want, now);
	if (!want && !settled->claim.count) {
		wait_for_more(w, lane, &fresh->claim, want, now);
		return;
	}
	batch_reset(fresh);
	failpoint("before_settle");
	r = w->store->ops->settle_and_claim(w->store,
					    &(struct outbox_settle_and_claim){
						    .target = w->target->name,
						    .lane = lane->number,
						    .owner = w->owner,
						    .n = lane->head.n,
						    .token = lane->head.token,
						    .new_token = draw_fence(w, lane),
						    .route_version = w->target->route_version,
						    .settled = settled->outcomes,
						    .n_settled = settled->claim.count,
						    .max_messages = want,
						    .max_bytes = w->plan->batch_bytes,
					    },
					    fresh->arena, &fresh->claim, &err);
	failpoint("after_settle");
	if (r)
		batch_reset(fresh);
	use_permits(w, &fresh->claim, want, now);
	if (!r) {
		lane->slow_failures = 0;
		outage_lane_over(w, lane, "settle", now);
		begin_batch(w, lane, want, now);
		return;
	}
	if (r == OUTBOX_EFENCED) {
		give_up_lane(w, lane);
		return;
	}
	ask_for_less(w, lane, r, w->plan->clock->mono(w->plan->clock) - now);
	outage_lane(w, lane, "settle", &err, now);
}

static void release_lane(struct worker *w, struct lane *lane, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	failpoint("before_release");
	if (lane->lost)
		return;
	if (w->store->ops->release(w->store, w->target->name, lane->number, w->owner, &err))
		outage_store(w, "release", &err, now);
	else
		lane->lost = true;
	failpoint("after_release");
}

void lane_step(struct worker *w, struct lane *lane, outbox_time now)
{
	switch (lane->phase) {
	case LANE_TAKE:
		take_over(w, lane, now);
		break;
	case LANE_READ:
		settle_and_read(w, lane, now);
		break;
	case LANE_SEND:
		lane_send(w, lane, now);
		break;
	case LANE_RELEASE:
		release_lane(w, lane, now);
		break;
	}
}

void lane_stop_sending(struct lane *lane)
{
	if (lane->phase != LANE_SEND)
		return;
	batch_return_rest(lane_batch(lane));
	lane->phase = LANE_READ;
}

void lane_lose(struct lane *lane)
{
	lane->lost = true;
	lane_stop_sending(lane);
	if (lane->phase == LANE_TAKE || !lane_batch(lane)->claim.count)
		lane->phase = LANE_RELEASE;
	lane->run_at = 0;
}
