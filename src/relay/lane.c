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

/* How many lanes one call of the store is for, at most: their locks are held together. */
#define CALL_LANES 16

#define REFUSAL_DELAY_MIN (5 * OUTBOX_MILLISECONDS)
#define REFUSAL_DELAY_MAX (5 * OUTBOX_SECONDS)

/* When an answer is late, and how many late ones in a row, to a claim and to a settlement, before a lane asks for less. */
#define SLOW(link) ((link)->target->lease / 3)
#define SLOW_CLAIMS 2
#define SLOW_SETTLES 8

void lane_free(struct lane *lane)
{
	for (int i = 0; i < 2; i++)
		batch_deinit(&lane->batches[i]);
	free(lane);
}

int lane_new(int number, const struct link *link, struct lane **ret_lane, struct outbox_error *err)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int r = OUTBOX_OK;

	if (!lane)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	lane->number = number;
	lane->phase = LANE_TAKE;
	lane->limit = lane->most = link->target->batch_messages;
	for (int i = 0; i < 2 && !r; i++)
		r = batch_init(&lane->batches[i], link->plan->batch_bytes, err);
	if (r) {
		lane_free(lane);
		return r;
	}
	*ret_lane = lane;
	return OUTBOX_OK;
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
	lane->found_at = now;
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

/*
 * How long to wait before the next look: a part of the time for which nothing came, so that a lane is looked at often
 * while messages come and ever less when they do not.
 */
static outbox_time poll_interval(const struct link *link, const struct lane *lane, outbox_time now)
{
	outbox_time wait = (now - lane->found_at) / 4;

	if (wait < link->target->poll_min)
		wait = link->target->poll_min;
	if (wait > link->target->poll_max)
		wait = link->target->poll_max;
	if (link->wakeup && atomic_load(&link->wakeup->armed) && wait < ARMED_POLL)
		wait = ARMED_POLL;
	return wait;
}

/* Nothing came back: look again later, sooner when a retry is due before that; due: in so long, or 0. */
static void wait_for_more(struct link *link, struct lane *lane, outbox_time due, size_t want,
			  outbox_time now)
{
	outbox_time wait = poll_interval(link, lane, now);

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
	if (due && due < wait)
		wait = due > 0 ? due : 0;
	lane->run_at = now + wait;
	if (store_can_look(link->store))
		lane->phase = LANE_LOOK;
}

static void begin_batch(struct link *link, struct lane *lane, size_t want, outbox_time now)
{
	struct batch *fresh = lane_next_batch(lane);
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
		wait_for_more(link, lane,
			      fresh->claim.next_due ? fresh->claim.next_due - fresh->claim.store_now
						    : 0,
			      want, now);
		return;
	}
	tally_add(&link->tally->in_flight_batches, 1);
	tally_add(&link->tally->in_flight_messages, fresh->claim.count);
	lane->ran_dry = false;
	if (link->wakeup && lane->dry && lane->dry == wakeup_count(link->wakeup) &&
	    !fresh->claim.items[fresh->claim.count - 1].detour)
		atomic_store(&link->wakeup->unheard, true);
	lane->dry = 0;
	lane->found_at = now;
	lane->read_at = ended;
	/* What took so long to come cannot be sent within the lease: it would be read again and again. */
	if (lane->read_at - now > SLOW(link))
		lane->limit = decide_smaller_claim(fresh->claim.count);
	lane->phase = LANE_SEND;
	if (batch_begin(fresh, link_wire_order(link), &err) ||
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
	     late = status == OUTBOX_ETIMEDOUT || took > SLOW(link);
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

/* One call of the store for one lane, or for several that are ready for it. */
struct store_call {
	size_t count;
	struct lane *lanes[CALL_LANES];
	size_t want[CALL_LANES];
	struct outbox_settle_and_claim requests[CALL_LANES];
	struct outbox_arena *arenas[CALL_LANES];
	struct outbox_claim claims[CALL_LANES];
};

/* Never claim into an outage: first see that the broker is there. */
static bool needs_broker(const struct link *link, struct lane *lane, outbox_time now)
{
	return !link->connected && !lane_batch(lane)->claim.count && claim_size(link, lane, now);
}

/* False: nothing to settle, and nothing may be claimed now. */
static bool wants_call(struct link *link, struct lane *lane, outbox_time now, size_t *ret_want)
{
	const struct batch *settled = lane_batch(lane);
	size_t want = link->connected ? claim_size(link, lane, now) : 0;

	lane->run_at = now; /* a wake-up may have come before its time */
	/* before the read: what is published later is looked at again */
	lane->read_wakeup = wakeup_count(link->wakeup);
	want = link_take_permits(link, want, now, &lane->permits_at, &lane->throttled);
	if (!want && !settled->claim.count) {
		wait_for_more(link, lane, 0, want, now);
		return false;
	}
	*ret_want = want;
	return true;
}

static void add_request(struct link *link, struct lane *lane, size_t want, struct store_call *call)
{
	const struct batch *settled = lane_batch(lane);

	batch_reset(lane_next_batch(lane));
	call->lanes[call->count] = lane;
	call->want[call->count] = want;
	call->arenas[call->count] = lane_next_batch(lane)->arena;
	call->requests[call->count++] = (struct outbox_settle_and_claim){
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
	};
}

/* Settling it locks a lane of another target, too: one lane of each at a time, or who locks all lanes of one and then of
 * the other could wait for it and be waited for. */
static bool makes_dead_letters(const struct link *link, struct lane *lane)
{
	return link->target->dead_letter && batch_count(lane_batch(lane)).failed;
}

static bool goes_alone(const struct link *link, struct lane *lane)
{
	return lane->alone || lane->refusal.status || makes_dead_letters(link, lane);
}

static bool may_join(const struct link *link, struct lane *lane, outbox_time now)
{
	return lane->phase == LANE_CLAIM && lane->run_at <= now && !goes_alone(link, lane) &&
	       !needs_broker(link, lane, now);
}

static void gather_requests(struct link *link, const struct lanes *lanes, struct lane *lane,
			    outbox_time now, struct store_call *call)
{
	bool alone = goes_alone(link, lane) || !store_joins_lanes(link->store);
	size_t room = alone ? 0 : CALL_LANES - 1, turn = 0;
	bool joins[OUTBOX_LANES_MAX] = { false };
	size_t wants[OUTBOX_LANES_MAX] = { 0 };

	while (lanes->list[turn] != lane)
		turn++;
	/* In turn, so that it is not always the same lane that gets the permits of a rate. */
	for (size_t k = 0; k < lanes->count; k++) {
		size_t i = (turn + k) % lanes->count;

		if (k && (!room || !may_join(link, lanes->list[i], now)))
			continue;
		room -= k > 0;
		joins[i] = wants_call(link, lanes->list[i], now, &wants[i]);
	}
	/* By number, in which order everybody locks them. */
	for (size_t i = 0; i < lanes->count; i++)
		if (joins[i])
			add_request(link, lanes->list[i], wants[i], call);
}

static void take_answer(struct link *link, const struct store_call *call, size_t i, outbox_time now)
{
	struct lane *lane = call->lanes[i];

	lane_next_batch(lane)->claim = call->claims[i];
	link_use_permits(link, &lane_next_batch(lane)->claim, call->want[i], now);
	lane->alone = false;
	lane->slow_failures = 0;
	store_answered(link, lane, "settle", now);
	begin_batch(link, lane, call->want[i], now);
}

/* Whatever it was, it is not known which of several lanes it is about: each asks again, alone, with the same token. */
static void take_failure(struct link *link, const struct store_call *call, size_t i,
			 const struct outbox_error *err, outbox_time now)
{
	struct lane *lane = call->lanes[i];

	batch_reset(lane_next_batch(lane));
	link_use_permits(link, &lane_next_batch(lane)->claim, call->want[i], now);
	if (call->count > 1) {
		lane->alone = true;
		return;
	}
	if (err->status == OUTBOX_EFENCED) {
		give_up_lane(link, lane);
		return;
	}
	ask_for_less(link, lane, err->status, link->plan->clock->mono(link->plan->clock) - now);
	store_failed(link, lane, "settle", err, now);
}

static void settle_and_claim(struct link *link, const struct lanes *lanes, struct lane *lane,
			     outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct store_call call = { 0 };
	int r;

	if (needs_broker(link, lane, now)) {
		lane->run_at = now;
		link_connect_broker(link, now);
		return;
	}
	gather_requests(link, lanes, lane, now, &call);
	if (!call.count)
		return;
	failpoint("before_settle");
	r = store_settle_and_claim_lanes(link->store, call.requests, call.count, call.arenas,
					 call.claims, &err);
	failpoint("after_settle");
	for (size_t i = 0; i < call.count; i++) {
		if (r)
			take_failure(link, &call, i, &err, now);
		else
			take_answer(link, &call, i, now);
	}
}

/* Nothing is in flight here: ask for all such lanes at once which of them have anything to claim. */
static void look_at_lanes(struct link *link, const struct lanes *lanes, outbox_time now)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct lane *asked[OUTBOX_LANES_MAX];
	int numbers[OUTBOX_LANES_MAX];
	int64_t n[OUTBOX_LANES_MAX], fence_tokens[OUTBOX_LANES_MAX];
	struct outbox_look question = { .target = link->target->name,
					.route_version = link->target->route_version,
					.lanes = numbers,
					.n = n,
					.fence_tokens = fence_tokens };
	struct outbox_looked looked = { 0 };

	for (size_t i = 0; i < lanes->count; i++) {
		struct lane *lane = lanes->list[i];

		if (lane->phase != LANE_LOOK)
			continue;
		if (!link->connected || !claim_size(link, lane, now)) {
			lane->phase = LANE_CLAIM; /* which knows why, and waits or leaves */
			lane->run_at = now;
			continue;
		}
		lane->read_wakeup = wakeup_count(link->wakeup);
		asked[question.count] = lane;
		numbers[question.count] = lane->number;
		n[question.count] = lane->head.n;
		fence_tokens[question.count++] = lane->head.fence_token;
	}
	if (!question.count)
		return;
	if (store_look(link->store, &question, &looked, &err)) {
		link_store_failed(link, "look", &err, now);
		return;
	}
	link_store_answered(link, "look", now);
	for (size_t i = 0; i < question.count; i++) {
		if (!looked.work[i]) {
			wait_for_more(link, asked[i],
				      looked.next_due ? looked.next_due - looked.store_now : 0, 1,
				      now);
			continue;
		}
		asked[i]->phase = LANE_CLAIM;
		asked[i]->run_at = now;
	}
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

void lane_step(struct link *link, const struct lanes *lanes, struct lane *lane, outbox_time now)
{
	switch (lane->phase) {
	case LANE_TAKE:
		take_over(link, lane, now);
		break;
	case LANE_LOOK:
		look_at_lanes(link, lanes, now);
		break;
	case LANE_CLAIM:
		settle_and_claim(link, lanes, lane, now);
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
