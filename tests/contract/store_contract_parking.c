/* SPDX-License-Identifier: Apache-2.0 */

/* Behind a message that waits, its key waits; released, the run comes in order. */

#include "store_world.h"

/* The first message of "x" waits for 10 s. */
static struct worker *with_waiting_head(struct store_world *w, int64_t *ret_seq)
{
	struct worker *k;

	world_target(w, "a");
	*ret_seq = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, 10 * SEC);
	worker_advance(k, 0);
	return k;
}

static void a_new_row_behind_a_waiting_one_is_blocked(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t behind = world_publish(w, "x"), other = world_publish(w, "y");

	worker_advance(k, MANY);
	assert_claim(k, 2, behind, other);
	assert_true(k->claim.items[0].blocked);
	assert_int_equal(k->claim.items[0].message.size, 0); /* not loaded */
	assert_null(k->claim.items[0].message.data);
	assert_string_equal(k->claim.items[0].message.key, "x");
	assert_false(k->claim.items[1].blocked);
	settle_blocked(k);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_state(w, "a", behind, OUTBOX_PENDING, OUTBOX_PARKED);
	assert_state(w, "a", other, OUTBOX_DELIVERED, 0);
	assert_int_equal(world_row(w, "a", behind)->attempts, 0);
	assert_int_equal(k->claim.next_due, world_now(w) + 10 * SEC); /* the head's */
}

static void a_parked_run_comes_with_its_head(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 3), fresh;

	assert_drains(k, 0);
	assert_int_equal(world_stats(w, "a")->parked, 3);
	world_step(w, 10 * SEC);
	fresh = world_publish(w, "x");
	worker_advance(k, MANY);
	assert_claim(k, 5, head, run, run + 1, run + 2, fresh);
	for (size_t i = 0; i < 5; i++) {
		assert_false(k->claim.items[i].blocked);
		assert_int_equal(k->claim.items[i].message.size, 2);
		assert_int_equal(k->claim.items[i].detour, i < 4);
	}
	assert_drains(k, 5, head, run, run + 1, run + 2, fresh);
	assert_int_equal(world_stats(w, "a")->parked, 0);
}

static void a_run_is_cut_by_the_budget_and_goes_on(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 4), fresh;

	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	fresh = world_publish(w, "x");
	worker_advance(k, 2);
	assert_claim(k, 2, head, run);
	worker_advance(k, 2);
	assert_claim(k, 2, run + 1, run + 2);
	worker_advance(k, 2);
	assert_claim(k, 2, run + 3, fresh);
	assert_false(k->claim.items[1].blocked);
}

static void behind_a_run_in_flight_nothing_overtakes(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 2);

	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	worker_advance(k, 2);
	assert_claim(k, 2, head, run);
	settle_wait(k, 0, 5 * SEC); /* the head fails again, the next was not sent */
	settle_park(k, 1);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_state(w, "a", run, OUTBOX_PENDING, OUTBOX_PARKED);
	world_step(w, 5 * SEC);
	assert_drains(k, 3, head, run, run + 1);
}

static void the_middle_of_a_run_fails(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 3);

	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	worker_advance(k, MANY);
	assert_claim(k, 4, head, run, run + 1, run + 2);
	settle_wait(k, 1, 5 * SEC);
	settle_park(k, 2);
	settle_park(k, 3);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_state(w, "a", head, OUTBOX_DELIVERED, 0);
	world_step(w, 5 * SEC);
	assert_drains(k, 3, run, run + 1, run + 2);
}

static void a_returned_run_comes_again_in_order(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 2), fresh;

	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	fresh = world_publish(w, "x");
	worker_advance(k, MANY);
	assert_claim(k, 4, head, run, run + 1, fresh);
	for (size_t i = 1; i < 4; i++) /* the broker went away after the first */
		settle_return(k, i);
	worker_advance(k, MANY);
	assert_claim(k, 3, run, run + 1, fresh);
	for (size_t i = 0; i < 3; i++)
		settle_return(k, i);
	assert_int_equal(worker_advance(k, MANY), 3);
	worker_restart(k);
	assert_drains(k, 3, run, run + 1, fresh);
}

static void many_parked_ones_stop_no_other_key(struct store_world *w)
{
	int64_t head, other;
	struct worker *k = with_waiting_head(w, &head);

	world_publish_run(w, "x", 100);
	other = world_publish(w, "y");
	for (int i = 0; i < 60; i++) {
		worker_advance(k, 10);
		settle_blocked(k);
		if (k->claim.count && !k->claim.items[k->claim.count - 1].blocked)
			break;
	}
	assert_claim(k, 1, other);
	worker_advance(k, 10);
	assert_int_equal(world_stats(w, "a")->parked, 100);
	assert_int_equal(world_stats(w, "a")->pending, 0);
}

static void a_returned_row_before_a_parked_one(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t other = world_publish(w, "y"), parked = world_publish(w, "x");
	int64_t last = world_publish(w, "z");

	worker_advance(k, MANY);
	assert_claim(k, 3, other, parked, last);
	settle_return(k, 0);
	settle_blocked(k);
	settle_return(k, 2);
	worker_advance(k, 0);
	assert_state(w, "a", other, OUTBOX_PENDING, OUTBOX_WAITING); /* a detour, due now */
	assert_state(w, "a", parked, OUTBOX_PENDING, OUTBOX_PARKED);
	assert_state(w, "a", last, OUTBOX_PENDING, OUTBOX_NEW);
	assert_drains(k, 2, other, last);
}

static void a_failed_head_releases_the_run(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 2);

	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	worker_advance(k, 1);
	assert_claim(k, 1, head);
	settle_fail(k, 0);
	worker_advance(k, MANY);
	assert_claim(k, 2, run, run + 1);
}

static void a_deferred_head_releases_the_run(struct store_world *w)
{
	int64_t head;
	struct worker *k = with_waiting_head(w, &head);
	int64_t run = world_publish_run(w, "x", 2);

	assert_drains(k, 0);
	world_step(w, 10 * SEC);
	worker_advance(k, 1);
	settle_defer(k, 0, world_now(w) + OUTBOX_HOURS);
	worker_advance(k, MANY);
	assert_claim(k, 2, run, run + 1);
}

static void no_key_is_never_parked(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 2);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, 10 * SEC);
	settle_wait(k, 1, 20 * SEC);
	worker_advance(k, 0);
	world_publish_many(w, 3);
	worker_advance(k, MANY);
	assert_claim(k, 3, s + 2, s + 3, s + 4);
	for (size_t i = 0; i < 3; i++)
		assert_false(k->claim.items[i].blocked);
	worker_advance(k, 0);
	world_step(w, 10 * SEC);
	assert_drains(k, 1, s);
	world_step(w, 10 * SEC);
	assert_drains(k, 1, s + 1);
}

static void parked_behind_nobody_is_due_at_once(struct store_world *w)
{
	int64_t seq;
	struct worker *k;

	world_target(w, "a");
	seq = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_park(k, 0); /* what it was behind is gone meanwhile */
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
}

static void parked_in_the_batch_that_frees_it(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_run(w, "x", 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_fail(k, 0); /* fails for good: the two behind may go on */
	settle_park(k, 1);
	settle_park(k, 2);
	worker_advance(k, MANY);
	assert_claim(k, 2, s + 1, s + 2);
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case parking_cases[] = {
	CASE(a_new_row_behind_a_waiting_one_is_blocked),
	CASE(a_parked_run_comes_with_its_head),
	CASE(a_run_is_cut_by_the_budget_and_goes_on),
	CASE(behind_a_run_in_flight_nothing_overtakes),
	CASE(the_middle_of_a_run_fails),
	CASE(a_returned_run_comes_again_in_order),
	CASE(many_parked_ones_stop_no_other_key),
	CASE(a_returned_row_before_a_parked_one),
	CASE(a_failed_head_releases_the_run),
	CASE(a_deferred_head_releases_the_run),
	CASE(no_key_is_never_parked),
	CASE(parked_behind_nobody_is_due_at_once),
	CASE(parked_in_the_batch_that_frees_it),
	{ NULL, NULL, 0, 0 },
};
