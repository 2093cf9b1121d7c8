/* SPDX-License-Identifier: Apache-2.0 */

/*
 * settle_and_claim_lanes(): several lanes in one transaction. It gives each of them what it would get alone; if it
 * fails, each asks again alone, with the same token, and nothing was done twice.
 */

#include "store_world.h"

#include "store/store.h"

#define PAIR 2

/* Lanes 0 and 1 of target "a", taken and idle, of one connection. */
static void start_pair(struct store_world *w, struct worker *pair[PAIR])
{
	pair[0] = worker_start(w, "k", "a", 0);
	pair[1] = worker_new(w, "k", "a");
	worker_take(pair[1], 1);
}

/* Both settle and claim; k->last is what each asked. */
static int try_join(struct worker *pair[PAIR], size_t max)
{
	struct outbox_settle_and_claim requests[PAIR];
	struct outbox_arena *arenas[PAIR];
	struct outbox_claim claims[PAIR] = { 0 };
	int status;

	for (int i = 0; i < PAIR; i++) {
		requests[i] = worker_request(pair[i], max, BYTES);
		arenas[i] = pair[i]->arena;
		outbox_arena_reset(arenas[i]);
	}
	status = store_settle_and_claim_lanes(pair[0]->store, requests, PAIR, arenas, claims,
					      &pair[0]->err);
	for (int i = 0; i < PAIR && status == OUTBOX_OK; i++)
		worker_answered(pair[i], &claims[i]);
	return status;
}

static void join(struct worker *pair[PAIR], size_t max)
{
	struct store_world *w = pair[0]->w;
	int status = try_join(pair, max);

	w->err = pair[0]->err;
	OK(status);
}

/* 3 messages for each lane, one after the other; the seq of the first. */
static int64_t publish_for_both(struct store_world *w)
{
	int64_t first = 0;

	for (int i = 0; i < 6; i++) {
		int64_t seq = world_publish(w, key_in_lane(w, i % 2, i));

		first = first ? first : seq;
	}
	return first;
}

static void assert_same_claim(const struct worker *joined, const struct worker *alone)
{
	assert_int_equal(joined->n, alone->n);
	assert_int_equal(joined->fence_token, joined->last.new_token);
	assert_int_equal(joined->claim.count, alone->claim.count);
	assert_int_equal(joined->claim.next_due, alone->claim.next_due);
	assert_int_equal(joined->claim.paused, alone->claim.paused);
	for (size_t i = 0; i < joined->claim.count; i++) {
		assert_int_equal(joined->claim.items[i].seq, alone->claim.items[i].seq);
		assert_int_equal(joined->claim.items[i].blocked, alone->claim.items[i].blocked);
		assert_int_equal(joined->claim.items[i].attempts, alone->claim.items[i].attempts);
	}
}

/* Two targets with the same messages: what the one does together, the other does lane by lane. */
static void joined_lanes_get_what_they_would_get_alone(struct store_world *w)
{
	struct worker *pair[PAIR], *alone[PAIR];

	world_target(w, "a");
	world_target(w, "b");
	start_pair(w, pair);
	alone[0] = worker_start(w, "k", "b", 0);
	alone[1] = worker_new(w, "k", "b");
	worker_take(alone[1], 1);
	for (int round = 0; round < 6; round++) {
		if (round != 3) /* where there is nothing new for either */
			publish_for_both(w);
		join(pair, 2);
		for (int i = 0; i < PAIR; i++) {
			worker_advance(alone[i], 2);
			assert_same_claim(pair[i], alone[i]);
			if (round % 2 && pair[i]->claim.count) { /* a detour in both lanes */
				settle_wait(pair[i], 0, 10 * SEC);
				settle_wait(alone[i], 0, 10 * SEC);
			}
		}
		world_step(w, 4 * SEC);
	}
	for (int i = 0; i < PAIR; i++) {
		assert_int_equal(world_receipts(w, "a", i), world_receipts(w, "b", i));
		worker_advance(pair[i], 0);
		worker_advance(alone[i], 0);
	}
	assert_int_equal(world_stats(w, "a")->delivered_ever, world_stats(w, "b")->delivered_ever);
	assert_int_equal(world_stats(w, "a")->pending, world_stats(w, "b")->pending);
	assert_true(world_stats(w, "a")->delivered_ever > 10);
}

static void a_fenced_lane_fails_the_joined_call(struct store_world *w)
{
	struct worker *pair[PAIR], *thief = worker_new(w, "k", "a");
	int64_t first, receipts;

	world_target(w, "a");
	start_pair(w, pair);
	first = publish_for_both(w);
	join(pair, MANY);
	worker_take(thief, 1);
	receipts = world_receipts(w, "a", 0);
	assert_int_equal(try_join(pair, MANY), OUTBOX_EFENCED);
	assert_int_equal(world_receipts(w, "a", 0), receipts); /* as a whole */
	assert_int_equal(worker_repeat(pair[1]), OUTBOX_EFENCED);
	OK(worker_repeat(pair[0]));
	assert_int_equal(pair[0]->fence_token, pair[0]->last.new_token);
	assert_int_equal(world_receipts(w, "a", 0), receipts + 1);
	OK(worker_repeat(pair[0]));
	assert_int_equal(world_receipts(w, "a", 0), receipts + 1); /* once */
	assert_int_equal(world_stats(w, "a")->delivered_ever, 3);
	assert_drains(thief, 3, first + 1, first + 3, first + 5);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 6);
}

static void a_joined_call_without_an_answer_is_repeated_alone(struct store_world *w)
{
	struct worker *pair[PAIR];
	int64_t first, receipts[PAIR];

	world_target(w, "a");
	start_pair(w, pair);
	first = publish_for_both(w);
	join(pair, 2);
	join(pair, 2);
	for (int i = 0; i < PAIR; i++)
		receipts[i] = world_receipts(w, "a", i);
	for (int i = 0; i < PAIR; i++) {
		OK(worker_repeat(pair[i]));
		assert_claim(pair[i], 1, first + 4 + i);
		assert_int_equal(pair[i]->fence_token, pair[i]->last.new_token);
		assert_int_equal(world_receipts(w, "a", i), receipts[i]);
	}
	assert_int_equal(world_stats(w, "a")->delivered_ever, 4);
	join(pair, MANY); /* and together again */
	assert_int_equal(pair[0]->claim.count + pair[1]->claim.count, 0);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 6);
}

static void joined_lanes_have_their_own_detours(struct store_world *w)
{
	struct worker *pair[PAIR];
	int64_t first;

	world_target(w, "a");
	start_pair(w, pair);
	first = publish_for_both(w);
	join(pair, MANY);
	settle_wait(pair[0], 0, 10 * SEC);
	settle_wait(pair[1], 1, 20 * SEC);
	join(pair, MANY);
	assert_int_equal(pair[0]->claim.count + pair[1]->claim.count, 0);
	assert_int_equal(pair[0]->claim.next_due, world_now(w) + 10 * SEC);
	assert_int_equal(pair[1]->claim.next_due, world_now(w) + 20 * SEC);
	world_step(w, 10 * SEC);
	join(pair, MANY);
	assert_claim(pair[0], 1, first);
	assert_claim(pair[1], 0);
	world_step(w, 10 * SEC);
	join(pair, MANY);
	assert_claim(pair[0], 0);
	assert_claim(pair[1], 1, first + 3);
	join(pair, MANY);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 6);
}

static void joined_lanes_of_a_paused_target_settle_and_claim_nothing(struct store_world *w)
{
	struct worker *pair[PAIR];
	int64_t first, receipts[PAIR];

	world_target(w, "a");
	start_pair(w, pair);
	first = publish_for_both(w);
	join(pair, 2);
	OK(store_target_pause(w->store, "a", true, "anna", "why", &w->err));
	join(pair, 2);
	for (int i = 0; i < PAIR; i++) {
		assert_true(pair[i]->claim.paused);
		assert_claim(pair[i], 0);
		receipts[i] = world_receipts(w, "a", i);
	}
	assert_int_equal(world_stats(w, "a")->delivered_ever, 4);
	for (int n = 0; n < 3; n++)
		join(pair, 2);
	OK(store_target_pause(w->store, "a", false, "anna", "why", &w->err));
	for (int i = 0; i < PAIR; i++) {
		assert_int_equal(world_receipts(w, "a", i), receipts[i]);
		assert_drains(pair[i], 1, first + 4 + i);
	}
}

#define JOINS(name)                         \
	{                                   \
#name, name, 2, STORE_JOINS \
	}

const struct store_case joined_cases[] = {
	JOINS(joined_lanes_get_what_they_would_get_alone),
	JOINS(a_fenced_lane_fails_the_joined_call),
	JOINS(a_joined_call_without_an_answer_is_repeated_alone),
	JOINS(joined_lanes_have_their_own_detours),
	JOINS(joined_lanes_of_a_paused_target_settle_and_claim_nothing),
	{ NULL, NULL, 0, 0 },
};
