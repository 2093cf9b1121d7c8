/* SPDX-License-Identifier: Apache-2.0 */

/* Order behind failed and deferred messages: release, hold, unordered. */

#include "store_world.h"

static struct worker *start(struct store_world *w, bool hold, bool unordered)
{
	struct outbox_target_def def = target_def("a");

	def.hold = hold;
	def.unordered = unordered;
	world_target_put(w, &def);
	return worker_start(w, "k", "a", 0);
}

static void behind_a_failed_one_the_key_goes_on(struct store_world *w)
{
	struct worker *k = start(w, false, false);
	int64_t bad = world_publish(w, "x"), next;

	worker_advance(k, MANY);
	settle_fail(k, 0);
	worker_advance(k, MANY);
	next = world_publish(w, "x");
	worker_advance(k, MANY);
	assert_claim(k, 1, next);
	assert_false(k->claim.items[0].blocked);
	worker_advance(k, MANY);
	assert_state(w, "a", bad, OUTBOX_FAILED, 0);
	assert_state(w, "a", next, OUTBOX_DELIVERED, 0);
}

static void behind_a_failed_one_a_held_key_waits(struct store_world *w)
{
	struct worker *k = start(w, true, false);
	int64_t bad = world_publish(w, "x"), next, other;

	worker_advance(k, MANY);
	settle_fail(k, 0);
	worker_advance(k, MANY);
	next = world_publish(w, "x");
	other = world_publish(w, "y");
	worker_advance(k, MANY);
	assert_claim(k, 2, next, other);
	assert_true(k->claim.items[0].blocked);
	assert_false(k->claim.items[1].blocked);
	settle_blocked(k);
	worker_advance(k, MANY);
	world_step(w, OUTBOX_DAYS);
	assert_drains(k, 0);
	assert_state(w, "a", next, OUTBOX_PENDING, OUTBOX_PARKED);
	assert_state(w, "a", bad, OUTBOX_FAILED, 0);
}

static void a_held_key_goes_on_after_requeue(struct store_world *w)
{
	struct worker *k = start(w, true, false);
	int64_t bad = world_publish(w, "x"), run = world_publish_run(w, "x", 2);

	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_drains(k, 0);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", bad).done, 1);
	assert_drains(k, 3, bad, run, run + 1);
}

static void a_held_key_goes_on_after_discard(struct store_world *w)
{
	struct worker *k = start(w, true, false);
	int64_t bad = world_publish(w, "x"), run = world_publish_run(w, "x", 2);

	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_drains(k, 0);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", bad).done, 1);
	assert_drains(k, 2, run, run + 1);
}

static void a_head_that_fails_holds_its_run(struct store_world *w)
{
	struct worker *k = start(w, true, false);
	int64_t head = world_publish(w, "x"), run = world_publish_run(w, "x", 2);

	worker_advance(k, MANY);
	settle_wait(k, 0, SEC);
	settle_park(k, 1);
	settle_park(k, 2);
	worker_advance(k, 0);
	world_step(w, SEC);
	worker_advance(k, MANY);
	assert_claim(k, 3, head, run, run + 1);
	settle_fail(k, 0);
	settle_park(k, 1);
	settle_park(k, 2);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_state(w, "a", run, OUTBOX_PENDING, OUTBOX_PARKED);
	assert_int_equal(k->claim.next_due, 0);
}

static void hold_can_be_switched_off(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	struct worker *k = start(w, true, false);
	int64_t run;

	world_publish(w, "x");
	worker_advance(k, MANY);
	settle_fail(k, 0);
	worker_advance(k, 0);
	run = world_publish_run(w, "x", 2);
	assert_drains(k, 0);
	world_target_put(w, &def);
	assert_drains(k, 2, run, run + 1);
}

static void a_deferred_one_leaves_its_keys_order(struct store_world *w)
{
	struct worker *k = start(w, false, false);
	int64_t later = world_publish(w, "x"), next;

	worker_advance(k, MANY);
	settle_defer(k, 0, world_now(w) + OUTBOX_HOURS);
	worker_advance(k, 0);
	next = world_publish(w, "x");
	worker_advance(k, MANY);
	assert_claim(k, 1, next);
	assert_false(k->claim.items[0].blocked);
	worker_advance(k, 0);
	world_step(w, OUTBOX_HOURS);
	assert_drains(k, 1, later);
}

static void a_due_deferred_one_is_back_in_order(struct store_world *w)
{
	struct worker *k = start(w, false, false);
	int64_t later = world_publish(w, "x"), next;

	worker_advance(k, MANY);
	settle_defer(k, 0, world_now(w) + OUTBOX_HOURS);
	worker_advance(k, 0);
	world_step(w, OUTBOX_HOURS);
	next = world_publish(w, "x");
	worker_advance(k, 1);
	assert_claim(k, 1, later);
	settle_wait(k, 0, SEC); /* and now it waits like any other */
	worker_advance(k, MANY);
	assert_claim(k, 1, next);
	assert_true(k->claim.items[0].blocked);
	settle_blocked(k);
	worker_advance(k, 0);
	world_step(w, SEC);
	assert_drains(k, 2, later, next);
}

static void a_deferred_one_inside_a_run_is_skipped(struct store_world *w)
{
	struct worker *k = start(w, false, false);
	int64_t s = world_publish_run(w, "x", 4);

	worker_advance(k, MANY);
	settle_wait(k, 0, SEC);
	settle_park(k, 1);
	settle_defer(k, 2, world_now(w) + OUTBOX_HOURS);
	settle_park(k, 3);
	worker_advance(k, 0);
	world_step(w, SEC);
	assert_drains(k, 3, s, s + 1, s + 3);
	world_step(w, OUTBOX_HOURS);
	assert_drains(k, 1, s + 2);
}

static void an_unordered_target_blocks_nobody(struct store_world *w)
{
	struct worker *k = start(w, false, true);
	int64_t s = world_publish_run(w, "x", 2), t;

	worker_advance(k, MANY);
	settle_wait(k, 0, 10 * SEC);
	settle_wait(k, 1, 5 * SEC);
	worker_advance(k, 0);
	t = world_publish_run(w, "x", 2);
	worker_advance(k, MANY);
	assert_claim(k, 2, t, t + 1);
	assert_false(k->claim.items[0].blocked || k->claim.items[1].blocked);
	worker_advance(k, 0);
	world_step(w, 5 * SEC);
	assert_drains(k, 1, s + 1); /* its own time, not its key's */
	world_step(w, 5 * SEC);
	assert_drains(k, 1, s);
}

static void a_target_that_becomes_unordered_releases_its_runs(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	struct worker *k = start(w, false, false);
	int64_t head = world_publish(w, "x"), run;

	worker_advance(k, MANY);
	settle_wait(k, 0, 10 * SEC);
	worker_advance(k, 0);
	run = world_publish_run(w, "x", 2);
	assert_drains(k, 0);
	def.unordered = true;
	world_target_put(w, &def);
	assert_drains(k, 2, run, run + 1); /* keys mean nothing: nothing is parked */
	world_step(w, 10 * SEC);
	assert_drains(k, 1, head);
}

static void keys_wait_apart(struct store_world *w)
{
	struct worker *k = start(w, false, false);
	int64_t x = world_publish(w, "x"), y = world_publish(w, "y"), x2, y2;

	worker_advance(k, MANY);
	settle_wait(k, 0, 10 * SEC);
	settle_wait(k, 1, 5 * SEC);
	worker_advance(k, 0);
	x2 = world_publish(w, "x");
	y2 = world_publish(w, "y");
	assert_drains(k, 0);
	world_step(w, 5 * SEC);
	assert_drains(k, 2, y, y2);
	world_step(w, 5 * SEC);
	assert_drains(k, 2, x, x2);
}

static void order_survives_take_overs(struct store_world *w)
{
	struct worker *k = start(w, false, false);
	int64_t s = world_publish_run(w, "x", 6);

	worker_advance(k, 3);
	settle_wait(k, 0, SEC);
	settle_park(k, 1);
	settle_park(k, 2);
	worker_advance(k, 2); /* two blocked ones in flight: the relay dies */
	worker_restart(k);
	world_step(w, SEC);
	worker_advance(k, 2);
	assert_claim(k, 2, s, s + 1);
	worker_restart(k);
	assert_drains(k, 6, s, s + 1, s + 2, s + 3, s + 4, s + 5);
}

const struct store_case order_cases[] = {
	{ "behind_a_failed_one_the_key_goes_on", behind_a_failed_one_the_key_goes_on, 0, 0 },
	{ "behind_a_failed_one_a_held_key_waits", behind_a_failed_one_a_held_key_waits, 0, 0 },
	{ "a_held_key_goes_on_after_requeue", a_held_key_goes_on_after_requeue, 0, 0 },
	{ "a_held_key_goes_on_after_discard", a_held_key_goes_on_after_discard, 0, 0 },
	{ "a_head_that_fails_holds_its_run", a_head_that_fails_holds_its_run, 0, 0 },
	{ "hold_can_be_switched_off", hold_can_be_switched_off, 0, 0 },
	{ "a_deferred_one_leaves_its_keys_order", a_deferred_one_leaves_its_keys_order, 0, 0 },
	{ "a_due_deferred_one_is_back_in_order", a_due_deferred_one_is_back_in_order, 0, 0 },
	{ "a_deferred_one_inside_a_run_is_skipped", a_deferred_one_inside_a_run_is_skipped, 0, 0 },
	{ "an_unordered_target_blocks_nobody", an_unordered_target_blocks_nobody, 0, 0 },
	{ "a_target_that_becomes_unordered_releases_its_runs",
	  a_target_that_becomes_unordered_releases_its_runs, 0, 0 },
	{ "keys_wait_apart", keys_wait_apart, 0, 0 },
	{ "order_survives_take_overs", order_survives_take_overs, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
