/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/lane.h"

#include "base/error.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "relay/outgoing.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often a lane polls while publishers would wake it. */
#define ARMED_POLL OUTBOX_SECONDS

#define REFUSAL_DELAY_MIN (5 * OUTBOX_MILLISECONDS)
#define REFUSAL_DELAY_MAX (5 * OUTBOX_SECONDS)

/* How many late answers in a row, to a claim and to a settlement, before a lane asks for less. */
#define SLOW_CLAIMS 2
#define SLOW_SETTLES 8

static void lane_free(struct lane *lane)
{
	for (int i = 0; i < 2; i++)
		batch_deinit(&lane->batches[i]);
	free(lane);
}

static int lane_new(int number, const struct link *link, struct lane **ret_lane,
		    struct outbox_error *err)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int r = OUTBOX_OK;

	if (!lane)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	lane->number = number;
	lane->phase = LANE_TAKE;
	lane->limit = lane->most = link->target->batch_messages;
	lane->poll = link->target->poll_min;
	for (int i = 0; i < 2 && !r; i++)
		r = batch_init(&lane->batches[i], link->plan->batch_bytes, err);
	if (r) {
		lane_free(lane);
		return r;
	}
	*ret_lane = lane;
	return OUTBOX_OK;
}

int lanes_add(struct lanes *lanes, int number, const struct link *link, struct outbox_error *err)
{
	struct lane *lane = NULL;
	size_t i = lanes->count;
	int r = lane_new(number, link, &lane, err);

	if (r)
		return r;
	for (; i > 0 && lanes->list[i - 1]->number > number; i--)
		lanes->list[i] = lanes->list[i - 1];
	lanes->list[i] = lane;
	lanes->count++;
	return OUTBOX_OK;
}

struct lane *lanes_find(const struct lanes *lanes, int number)
{
	for (size_t i = 0; i < lanes->count; i++)
		if (lanes->list[i]->number == number)
			return lanes->list[i];
	return NULL;
}

void lanes_remove(struct lanes *lanes, struct lane *lane, struct link *link)
{
	size_t i = 0;

	while (lanes->list[i] != lane)
		i++;
	memmove(&lanes->list[i], &lanes->list[i + 1], (--lanes->count - i) * sizeof(lanes->list[0]));
	link->n_refused -= lane->refusal.status != OUTBOX_OK;
	lane_free(lane);
}

/*
 * A store call for this lane failed. What the store refuses to this lane alone, because its position and the log do not
 * belong together, makes this lane wait, and no other.
 */
static void store_failed(struct link *link, struct lane *lane, const char *call,
			 const struct outbox_error *err, outbox_time now)
{
	char where[OUTBOX_TARGET_NAME_MAX + 32];

	if (err->status != OUTBOX_EPROTO) {
		link_store_failed(link, call, err, now);
		return;
	}
	link_store_answered(link, call, now); /* it answers */
	lane->refusal_delay = lane->refusal_delay ? lane->refusal_delay * 2 : REFUSAL_DELAY_MIN;
	if (lane->refusal_delay > REFUSAL_DELAY_MAX)
		lane->refusal_delay = REFUSAL_DELAY_MAX;
	lane->run_at = now + random_between(&link->random.base, lane->refusal_delay / 2,
					    lane->refusal_delay);
	/* One repair fixes all lanes, so one line is enough; outbox status names each lane. */
	if (!link->n_refused) {
		link->refused_since = now;
		/* the store's text names the lane already */
		snprintf(where, sizeof(where), "target %s, lane %d", link->target->name,
			 lane->number);
		log_event(&link->plan->log, EVENT_LANE_REFUSED, ABOUT_LANE(link, lane),
			  "%s; until then nothing is sent from this lane; outbox status shows "
			  "whether others are refused",
			  error_behind(err, where));
	}
	link->n_refused += !lane->refusal.status;
	lane->refusal = *err;
}

static void store_answered(struct link *link, struct lane *lane, const char *call, outbox_time now)
{
	char waited[DURATION_TEXT_MAX];

	link_store_answered(link, call, now);
	if (!lane->refusal.status)
		return;
	lane->refusal.status = OUTBOX_OK;
	lane->refusal_delay = 0;
	if (!--link->n_refused)
		log_event(&link->plan->log, EVENT_LANE_BACK, ABOUT_TARGET(link),
			  "all its lanes run again after %s",
			  duration_human(now - link->refused_since, waited));
}

static int64_t draw_fence(struct link *link, struct lane *lane)
{
	/* Kept until the append is known to have succeeded: repeated with the same token it takes effect once. */
	while (!lane->next_fence)
		lane->next_fence = (int64_t)(link->random.base.next(&link->random.base) >> 1);
	return lane->next_fence;
}

static void take_over(struct link *link, struct lane *lane, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	failpoint("before_take");
	if (store_take_over(link->store, link->target->name, lane->number, link->owner,
			    draw_fence(link, lane), &lane->head, &err)) {
		store_failed(link, lane, "take", &err, now);
		return;
	}
	failpoint("after_take");
	store_answered(link, lane, "take", now);
	lane->next_fence = 0;
	lane->died_seq = lane->head.suspect_seq;
	lane->phase = LANE_CLAIM;
	if (!lane->head.takeovers)
		return;
	tally_add(&link->tally->takeovers, 1);
	tally_add(&link->tally->duplicates_takeover, (uint64_t)lane->head.in_flight);
	log_event(&link->plan->log, EVENT_LANE_TAKEOVER, ABOUT_LANE(link, lane),
		  "taken over with messages in flight%s",
		  lane->head.cautious
			  ? "; this happened repeatedly, so messages are sent one at a time for now"
			  : "");
}

/* How many messages the next claim may have. */
static size_t claim_size(const struct link *link, const struct lane *lane, outbox_time now)
{
	if (lane->leaving || lane->lost || atomic_load(&link->draining) || link->stale_route ||
	    breaker_open(&link->breaker, now) || now >= link->lease_until)
		return 0;
	if (breaker_probing(&link->breaker))
		return 1;
	return lane->limit;
}

static void forget_batch(struct link *link, struct lane *lane)
{
	struct batch *b = lane_batch(lane);

	if (b->claim.count) {
		tally_sub(&link->tally->in_flight_batches, 1);
		tally_sub(&link->tally->in_flight_messages, b->claim.count);
	}
	batch_reset(b);
	lane->trip = (struct trip){ 0 };
}

/* The claim was settled: count it, and let the batch grow again. */
static void count_settled(struct link *link, struct lane *lane, outbox_time took)
{
	struct batch_outcomes t = batch_count(lane_batch(lane));

	tally_settled(link->tally, &(struct tally_batch){
					   .target = link->target->name,
					   .lane = lane->number,
					   .batch = lane_batch(lane),
					   .ended = &t,
					   .trip = &lane->trip,
					   .settle = took,
					   .wall = link->plan->clock->wall(link->plan->clock),
					   .outage = link->outage.message,
				   });
	rejection_log_add(&link->rejections, lane_batch(lane),
			  link->plan->clock->mono(link->plan->clock));
	lane->limit = decide_next_claim(lane->limit, lane->most, lane_batch(lane)->claim.count,
					t.returned);
	forget_batch(link, lane);
}

static enum wire_order wire_order_of(const struct link *link)
{
	return decide_order(link->target->order == OUTBOX_ORDER_STRICT, link->target->hold,
			    link->transport->ops->flags & OUTBOX_TRANSPORT_KEEPS_ORDER);
}

/* Nothing came back: poll again later, sooner when a retry is due before that. */
static void wait_for_more(struct link *link, struct lane *lane, const struct outbox_claim *claim,
			  size_t want, outbox_time now)
{
	outbox_time wait = lane->poll;

	if (link->wakeup && atomic_load(&link->wakeup->armed) && wait < ARMED_POLL)
		wait = ARMED_POLL;
	lane->ran_dry = want > 0;
	lane->dry = lane->read_wakeup;
	if (lane->leaving || lane->lost) {
		lane->phase = LANE_RELEASE;
		return;
	}
	if (breaker_open(&link->breaker, now)) {
		lane->run_at = link->breaker.until;
		return;
	}
	if (lane->throttled) {
		lane->dry = 0; /* nothing was read: unknown */
		lane->run_at = lane->permits_at;
		return;
	}
	if (claim->next_due && claim->next_due - claim->store_now < wait)
		wait = claim->next_due - claim->store_now;
	lane->run_at = now + (wait > 0 ? wait : 0);
	lane->poll =
		lane->poll * 2 < link->target->poll_max ? lane->poll * 2 : link->target->poll_max;
}

static outbox_time slow_limit(const struct link *link)
{
	return link->target->lease / 3;
}

static void begin_batch(struct link *link, struct lane *lane, size_t want, outbox_time now)
{
	struct batch *fresh = &lane->batches[!lane->current];
	struct outbox_error err = OUTBOX_ERROR_INIT;
	/* After the call: the store's time is that of its end, or nearly. */
	outbox_time ended = link->plan->clock->mono(link->plan->clock);

	if (lane_batch(lane)->claim.count)
		count_settled(link, lane, ended - now);
	lane->current = !lane->current;
	/* Nothing was written: ask with the same token again. An earlier try whose answer was lost may
	 * still arrive and claim; then that claim is ours, instead of locking us out. */
	if (fresh->claim.n != lane->head.n)
		lane->next_fence = 0;
	/* a lower bound; the next lease says exactly */
	if (fresh->claim.paused)
		link->open_since = fresh->claim.store_now;
	lane->head.n = fresh->claim.n;
	lane->head.fence_token = fresh->claim.fence_token;
	lane->head.cautious = fresh->claim.cautious;
	if (fresh->claim.stale_route) {
		lane->leaving = true;
		link->lease_at = now; /* which says so and stops all lanes */
	}
	if (!fresh->claim.count) {
		wait_for_more(link, lane, &fresh->claim, want, now);
		return;
	}
	tally_add(&link->tally->in_flight_batches, 1);
	tally_add(&link->tally->in_flight_messages, fresh->claim.count);
	lane->ran_dry = false;
	lane->dry = 0;
	lane->poll = link->target->poll_min;
	lane->read_at = ended;
	/* What took so long to come cannot be sent within the lease: it would be read again and again. */
	if (lane->read_at - now > slow_limit(link))
		lane->limit = decide_smaller_claim(fresh->claim.count);
	lane->phase = LANE_SEND;
	if (batch_begin(fresh, wire_order_of(link), &err) ||
	    outgoing_prepare(fresh, link->plan, link->target, &err)) {
		/* Claimed, but no memory to work on it: take the lane over again. */
		forget_batch(link, lane);
		lane->phase = LANE_TAKE;
		lane->limit = decide_smaller_claim(lane->limit);
		link_store_failed(link, "settle", &err, now);
	}
}

/* Somebody else took the lane: our settlement had no effect, and all we remember is void. */
static void give_up_lane(struct link *link, struct lane *lane)
{
	struct batch_outcomes t = batch_count(lane_batch(lane));

	tally_add(&link->tally->fenced, 1);
	tally_add(&link->tally->duplicates_fenced, t.delivered);
	log_event(&link->plan->log, EVENT_LANE_FENCED, ABOUT_LANE(link, lane),
		  "taken by another relay; %zu acknowledged messages of ours may be sent again",
		  t.delivered);
	forget_batch(link, lane);
	lane->phase = LANE_RELEASE;
	lane->lost = true;
}

/* We shall not get the answer. If its settlement was not done either, what we sent goes out again. */
static void give_up_answer(struct link *link, struct lane *lane)
{
	struct batch_outcomes t = batch_count(lane_batch(lane));

	if (t.delivered) {
		tally_add(&link->tally->duplicates_fenced, t.delivered);
		log_event(&link->plan->log, EVENT_LANE_UNANSWERED, ABOUT_LANE(link, lane),
			  "no answer to its settlement; %zu acknowledged messages may be sent "
			  "again",
			  t.delivered);
	}
	forget_batch(link, lane);
	lane->next_fence = 0;
	lane->phase = LANE_TAKE;
}

/*
 * An answer that does not fit into memory, or not through the wire in time: ask for less. The same claim would come
 * again and again, so the lane is taken over again; early when that costs nothing, late when it may cost duplicates. Memory that
 * did not suffice for one claim does not suffice for the same one a moment later: at most once more, since the store may
 * have been short of it and done nothing.
 */
static void ask_for_less(struct link *link, struct lane *lane, int status, outbox_time took)
{
	bool memory = status == OUTBOX_ENOMEM,
	     late = status == OUTBOX_ETIMEDOUT || took > slow_limit(link);
	bool costs = lane_batch(lane)->claim.count;
	int patience = memory ? 1 + costs : costs ? SLOW_SETTLES : SLOW_CLAIMS;

	lane->slow_failures = memory || late ? lane->slow_failures + 1 : 0;
	if (!memory && lane->slow_failures < patience)
		return;
	lane->limit = decide_smaller_claim(lane->limit);
	lane->most = lane->limit;
	if (lane->slow_failures < patience)
		return;
	give_up_answer(link, lane);
	lane->slow_failures = 0;
}

/*
 * Permits are taken before a claim, never during one, and given back if there was less to claim: an idle worker must
 * not keep them from others.
 */
static size_t take_permits(struct link *link, struct lane *lane, size_t want, outbox_time now)
{
	size_t may = want;

	if (want)
		may = throttle_take(link->target->throttle, link->target->rank, want, now,
				    &lane->permits_at);
	lane->throttled = want && !may;
	return may;
}

/* Blocked messages are parked, not sent: they use no permit. */
static void use_permits(struct link *link, const struct outbox_claim *claim, size_t taken,
			outbox_time now)
{
	size_t used = 0;

	if (!taken && !claim->count)
		return;
	for (size_t i = 0; i < claim->count; i++)
		used += !claim->items[i].blocked;
	throttle_used(link->target->throttle, link->target->rank, taken, used, now);
}

static void settle_and_claim(struct link *link, struct lane *lane, outbox_time now)
{
	struct batch *settled = lane_batch(lane), *fresh = &lane->batches[!lane->current];
	struct outbox_error err = OUTBOX_ERROR_INIT;
	size_t want = claim_size(link, lane, now);
	int r;

	lane->throttled = false;

	lane->run_at = now; /* a wake-up may have come before its time */
	lane->read_wakeup = wakeup_count(
		link->wakeup); /* before the read: what is published later is looked at again */
	if (want && !link->connected) {
		/* Never claim into an outage: first see that the broker is there. */
		if (!settled->claim.count) {
			link_connect_broker(link, now);
			return;
		}
		want = 0;
	}
	want = take_permits(link, lane, want, now);
	if (!want && !settled->claim.count) {
		wait_for_more(link, lane, &fresh->claim, want, now);
		return;
	}
	batch_reset(fresh);
	failpoint("before_settle");
	r = store_settle_and_claim(link->store,
				   &(struct outbox_settle_and_claim){
					   .target = link->target->name,
					   .lane = lane->number,
					   .owner = link->owner,
					   .n = lane->head.n,
					   .fence_token = lane->head.fence_token,
					   .new_token = draw_fence(link, lane),
					   .route_version = link->target->route_version,
					   .settled = settled->outcomes,
					   .n_settled = settled->claim.count,
					   .max_messages = want,
					   .max_bytes = link->plan->batch_bytes,
				   },
				   fresh->arena, &fresh->claim, &err);
	failpoint("after_settle");
	if (r)
		batch_reset(fresh);
	use_permits(link, &fresh->claim, want, now);
	if (!r) {
		lane->slow_failures = 0;
		store_answered(link, lane, "settle", now);
		begin_batch(link, lane, want, now);
		return;
	}
	if (r == OUTBOX_EFENCED) {
		give_up_lane(link, lane);
		return;
	}
	ask_for_less(link, lane, r, link->plan->clock->mono(link->plan->clock) - now);
	store_failed(link, lane, "settle", &err, now);
}

static void release_lane(struct link *link, struct lane *lane, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	failpoint("before_release");
	if (lane->lost)
		return;
	if (store_release(link->store, link->target->name, lane->number, link->owner, &err))
		link_store_failed(link, "release", &err, now);
	else
		lane->lost = true;
	failpoint("after_release");
}

void lane_step(struct link *link, struct lane *lane, outbox_time now)
{
	switch (lane->phase) {
	case LANE_TAKE:
		take_over(link, lane, now);
		break;
	case LANE_CLAIM:
		settle_and_claim(link, lane, now);
		break;
	case LANE_SEND:
		break;
	case LANE_RELEASE:
		release_lane(link, lane, now);
		break;
	}
}

void lane_stop_sending(struct lane *lane)
{
	if (lane->phase != LANE_SEND)
		return;
	batch_return_rest(lane_batch(lane));
	lane->phase = LANE_CLAIM;
}

void lane_lose(struct lane *lane)
{
	lane->lost = true;
	lane_stop_sending(lane);
	if (lane->phase == LANE_TAKE || !lane_batch(lane)->claim.count)
		lane->phase = LANE_RELEASE;
	lane->run_at = 0;
}
