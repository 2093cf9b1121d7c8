/* SPDX-License-Identifier: Apache-2.0 */

/* Receipts are a compare-and-append log: done twice is done once, and a foreign token is a fence. */

#include "store/store.h"
#include "store_world.h"

/* A second worker takes the lane over, after the first one's lease ran out. */
static struct worker *take_over(struct store_world *w, const char *owner, const char *target)
{
	world_step(w, LEASE);
	return worker_start(w, owner, target, 0);
}

static void a_take_over_fences_the_owner_before(struct store_world *w)
{
	int64_t a = world_publish(w, "x"), b = world_publish(w, "y");
	struct worker *dead, *alive;

	world_target(w, "a");
	dead = worker_start(w, "dead", "a", 0);
	worker_advance(dead, 1);
	alive = take_over(w, "alive", "a");
	assert_int_equal(worker_try_advance(dead, 1, BYTES), OUTBOX_EFENCED);
	assert_drains(alive, 2, a, b);
	assert_int_equal(worker_try_advance(dead, 1, BYTES), OUTBOX_EFENCED);
}

static void a_stale_settlement_changes_nothing(struct store_world *w)
{
	struct worker *dead, *alive;
	const char *picture;
	int64_t first;

	world_target(w, "a");
	dead = worker_start(w, "dead", "a", 0);
	first = world_publish(w, "w");
	worker_advance(dead, MANY);
	settle_wait(dead, 0, SEC);
	worker_advance(dead, 0);
	world_step(w, SEC);
	for (const char *const *key = (const char *const[]){ "x", "x", "y", "z", NULL }; *key; key++)
		world_publish(w, *key);
	assert_int_equal(worker_advance(dead, MANY), 5); /* a detour and log rows */
	alive = take_over(w, "alive", "a");
	picture = world_picture(w);
	settle_wait(dead, 1, SEC);
	settle_park(dead, 2);
	settle_fail(dead, 3);
	settle_defer(dead, 4, world_now(w));
	assert_int_equal(worker_try_advance(dead, MANY, BYTES), OUTBOX_EFENCED);
	assert_string_equal(world_picture(w), picture);
	assert_drains(alive, 5, first, first + 1, first + 2, first + 3, first + 4);
}

static void an_idle_worker_is_fenced_too(struct store_world *w)
{
	struct worker *old, *alive;

	world_target(w, "a");
	old = worker_start(w, "old", "a", 0);
	alive = take_over(w, "alive", "a");
	world_publish(w, "x");
	assert_int_equal(worker_try_advance(old, MANY, BYTES), OUTBOX_EFENCED);
	assert_int_equal(worker_advance(alive, MANY), 1);
}

static void a_wrong_token_is_fenced(struct store_world *w)
{
	struct worker *k;
	int64_t token;

	world_target(w, "a");
	world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	token = k->fence_token;
	k->fence_token ^= 1;
	assert_int_equal(worker_try_advance(k, 1, BYTES), OUTBOX_EFENCED);
	k->fence_token = token;
	k->n--;
	assert_int_equal(worker_try_advance(k, 1, BYTES), OUTBOX_EFENCED);
	k->n += 2;
	assert_int_equal(worker_try_advance(k, 1, BYTES), OUTBOX_EFENCED);
	k->n--;
	assert_int_equal(worker_advance(k, 1), 1);
}

static void a_repeated_request_is_done_once(struct store_world *w)
{
	int64_t s[5], n, token;
	struct worker *k;
	const char *picture;

	for (int i = 0; i < 5; i++)
		s[i] = world_publish(w, i == 1 || i == 3 ? "same" : NULL);
	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 2);
	settle_wait(k, 1, 60 * SEC);
	worker_advance(k, 2);
	n = k->n;
	token = k->fence_token;
	picture = world_picture(w);
	for (int i = 0; i < 3; i++) {
		OK(worker_repeat(k));
		assert_claim(k, 2, s[2], s[3]);
		assert_true(k->claim.items[1].blocked);
		assert_int_equal(k->claim.items[0].message.size, 2);
		assert_int_equal(k->n, n);
		assert_int_equal(k->fence_token, token);
		assert_string_equal(world_picture(w), picture);
	}
	settle_blocked(k);
	worker_advance(k, MANY);
	assert_claim(k, 1, s[4]);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 2);
}

static void a_repeated_claim_of_detours(struct store_world *w)
{
	struct worker *k;
	int64_t a, b, c;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	a = world_publish(w, "x");
	b = world_publish(w, "x");
	worker_advance(k, MANY);
	settle_wait(k, 0, SEC);
	settle_park(k, 1);
	worker_advance(k, 0);
	world_step(w, SEC);
	c = world_publish(w, "x");
	worker_advance(k, MANY);
	assert_claim(k, 3, a, b, c);
	OK(worker_repeat(k));
	assert_claim(k, 3, a, b, c);
	assert_true(k->claim.items[0].detour && k->claim.items[1].detour);
	assert_false(k->claim.items[2].detour || k->claim.items[2].blocked);
	assert_int_equal(k->claim.items[0].attempts, 1);
	assert_drains(k, 3, a, b, c);
}

static void a_repeated_settlement_without_a_claim(struct store_world *w)
{
	struct worker *k;
	int64_t n, late;

	world_target(w, "a");
	world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	worker_advance(k, MANY);
	n = k->n;
	late = world_publish(w, "x"); /* meanwhile there is something new */
	OK(worker_repeat(k));
	assert_int_equal(k->n, n);
	assert_int_equal(k->claim.count, 0);
	assert_int_equal(world_stats(w, "a")->delivered_ever, 1);
	assert_drains(k, 1, late);
}

static void a_request_of_before_is_fenced(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 4);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	k->settled[0].outcome = OUTBOX_OUT_DELIVERED;
	worker_advance(k, 1);
	{
		struct outbox_settle_and_claim stale = k->last;
		struct outbox_claim claim;

		worker_advance(k, 1);
		/* two receipts ago: somebody's late packet */
		assert_int_equal(store_settle_and_claim(k->store, &stale, k->arena, &claim, &k->err),
				 OUTBOX_EFENCED);
	}
	assert_int_equal(world_stats(w, "a")->delivered_ever, 2);
}

static void a_repeated_take_is_done_once(struct store_world *w)
{
	struct outbox_head first, second;
	struct worker *dead, *alive;

	world_target(w, "a");
	world_publish_many(w, 3);
	dead = worker_start(w, "dead", "a", 0);
	worker_advance(dead, 2);
	world_step(w, LEASE);
	alive = worker_new(w, "alive", "a");
	worker_lease(alive);
	OK(store_take_over(alive->store, "a", 0, "alive", 4242, &first, &w->err));
	OK(store_take_over(alive->store, "a", 0, "alive", 4242, &second, &w->err));
	assert_int_equal(first.n, second.n);
	assert_int_equal(first.fence_token, 4242);
	assert_int_equal(second.fence_token, 4242);
	assert_int_equal(first.takeovers, 1);
	assert_int_equal(second.takeovers, 1);
	assert_int_equal(world_receipts(w, "a", 0), first.n);
	assert_int_equal(world_stats(w, "a")->lanes[0].takeovers, 1);
}

static void a_take_over_returns_what_was_in_flight(struct store_world *w)
{
	struct worker *dead, *alive;
	int64_t a, b;

	world_target(w, "a");
	dead = worker_start(w, "dead", "a", 0);
	a = world_publish(w, "x");
	worker_advance(dead, MANY);
	settle_wait(dead, 0, SEC);
	worker_advance(dead, 0);
	world_step(w, SEC);
	b = world_publish(w, "y");
	worker_advance(dead, MANY);
	assert_claim(dead, 2, a, b);
	alive = take_over(w, "alive", "a");
	assert_int_equal(world_row(w, "a", a)->state, OUTBOX_PENDING);
	assert_state(w, "a", b, OUTBOX_PENDING, OUTBOX_NEW);
	worker_advance(alive, MANY);
	assert_claim(alive, 2, a, b);
	assert_int_equal(alive->claim.items[0].attempts, 1); /* not charged */
	assert_int_equal(alive->claim.items[1].attempts, 0);
}

static void two_takers_only_the_last_one_works(struct store_world *w)
{
	struct worker *k, *again;

	world_target(w, "a");
	world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	again = worker_start(w, "k", "a", 0); /* the same name, another life */
	assert_int_equal(worker_try_advance(k, 1, BYTES), OUTBOX_EFENCED);
	assert_int_equal(worker_advance(again, 1), 1);
}

const struct store_case fence_cases[] = {
	{ "a_take_over_fences_the_owner_before", a_take_over_fences_the_owner_before, 0, 0 },
	{ "a_stale_settlement_changes_nothing", a_stale_settlement_changes_nothing, 0, 0 },
	{ "an_idle_worker_is_fenced_too", an_idle_worker_is_fenced_too, 0, 0 },
	{ "a_wrong_token_is_fenced", a_wrong_token_is_fenced, 0, 0 },
	{ "a_repeated_request_is_done_once", a_repeated_request_is_done_once, 0, 0 },
	{ "a_repeated_claim_of_detours", a_repeated_claim_of_detours, 0, 0 },
	{ "a_repeated_settlement_without_a_claim", a_repeated_settlement_without_a_claim, 0, 0 },
	{ "a_request_of_before_is_fenced", a_request_of_before_is_fenced, 0, 0 },
	{ "a_repeated_take_is_done_once", a_repeated_take_is_done_once, 0, 0 },
	{ "a_take_over_returns_what_was_in_flight", a_take_over_returns_what_was_in_flight, 0, 0 },
	{ "two_takers_only_the_last_one_works", two_takers_only_the_last_one_works, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
