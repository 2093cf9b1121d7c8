/* SPDX-License-Identifier: Apache-2.0 */

/* The poison guard's half that a store keeps: take-overs in a row, caution, the suspect. */

#include "store/store.h"
#include "store_world.h"

static void take_overs_in_a_row_are_counted(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 10);
	k = worker_start(w, "k", "a", 0);
	assert_int_equal(k->head.takeovers, 0);
	worker_restart(k);
	assert_int_equal(k->head.takeovers, 0); /* nothing was in flight */
	for (int i = 1; i <= 3; i++) {
		worker_advance(k, 5);
		worker_restart(k);
		assert_int_equal(k->head.takeovers, i);
		assert_int_equal(k->head.cautious, i >= 2);
	}
	assert_int_equal(world_stats(w, "a")->lanes[0].takeovers, 3);
}

static void a_settlement_ends_the_row(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 10);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 2);
	worker_restart(k);
	assert_int_equal(k->head.takeovers, 1);
	worker_advance(k, 2);
	worker_advance(k, 2); /* settled: it did not kill */
	worker_restart(k);
	assert_int_equal(k->head.takeovers, 1);
	assert_false(k->head.cautious);
	assert_int_equal(world_stats(w, "a")->lanes[0].takeovers, 2);
}

static void returning_everything_ends_no_row(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 2);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	worker_restart(k);
	worker_advance(k, MANY);
	settle_return(k, 0);
	settle_return(k, 1);
	worker_advance(k, MANY); /* nothing was settled */
	worker_restart(k);
	assert_int_equal(k->head.takeovers, 2);
}

static void a_graceful_end_is_no_take_over(struct store_world *w)
{
	struct worker *k;

	world_target(w, "a");
	world_publish_many(w, 10);
	k = worker_start(w, "k", "a", 0);
	for (int i = 0; i < 3; i++) {
		worker_advance(k, 2);
		worker_advance(k, 0);
		OK(store_release(w->store, "a", 0, "k", &w->err));
		worker_restart(k);
		assert_int_equal(k->head.takeovers, 0);
	}
	assert_int_equal(world_stats(w, "a")->lanes[0].takeovers, 0);
}

static void a_cautious_lane_claims_one_until_the_claim_is_passed(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 8);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 3);
	worker_restart(k);
	worker_advance(k, 3);
	worker_restart(k);
	assert_true(k->head.cautious);
	for (int64_t i = 0; i < 3; i++) {
		worker_advance(k, MANY);
		assert_claim(k, 1, s + i);
		assert_true(k->claim.cautious);
	}
	worker_advance(k, MANY); /* the suspect claim is passed */
	assert_false(k->claim.cautious);
	assert_claim(k, 5, s + 3, s + 4, s + 5, s + 6, s + 7);
}

static void caution_survives_a_take_over_in_between(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 8);
	k = worker_start(w, "k", "a", 0);
	for (int i = 0; i < 2; i++) {
		worker_advance(k, 4);
		worker_restart(k);
	}
	worker_advance(k, MANY);
	assert_claim(k, 1, s);
	worker_advance(k, MANY); /* s is settled, s + 1 in flight */
	assert_claim(k, 1, s + 1);
	worker_restart(k);
	assert_true(k->head.cautious);
	assert_int_equal(k->head.suspect_seq, s + 1);
	assert_int_equal(k->head.takeovers, 1);
	worker_advance(k, MANY);
	assert_claim(k, 1, s + 1);
}

static void the_suspect_was_alone_in_flight(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 5);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1); /* alone, but the lane is not cautious yet: chance */
	worker_restart(k);
	assert_int_equal(k->head.suspect_seq, 0);
	worker_advance(k, 3);
	worker_restart(k);
	assert_int_equal(k->head.suspect_seq, 0); /* one of three */
	assert_true(k->head.cautious);
	worker_advance(k, 3);
	worker_restart(k);
	assert_int_equal(k->head.suspect_seq, s);
	worker_advance(k, 3);
	assert_claim(k, 1, s);
	settle_fail(k, 0);
	worker_advance(k, 3);
	worker_restart(k);
	assert_int_equal(k->head.suspect_seq, s + 1);
}

static void a_repeated_take_tells_the_suspect_again(struct store_world *w)
{
	struct outbox_head head;
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 5);
	k = worker_start(w, "k", "a", 0);
	for (int i = 0; i < 3; i++) {
		worker_advance(k, 3);
		worker_restart(k);
	}
	assert_int_equal(k->head.suspect_seq, s);
	OK(store_take_over(k->store, "a", 0, "k", k->head.fence_token, &head, &w->err));
	assert_int_equal(head.n, k->head.n);
	assert_int_equal(head.suspect_seq, s);
	assert_int_equal(head.takeovers, 3);
	assert_true(head.cautious);
}

static void a_suspect_comes_alone(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 5);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 3);
	settle_suspect(k, 1, SEC);
	worker_advance(k, 0);
	world_step(w, SEC);
	worker_advance(k, MANY);
	assert_claim(k, 1, s + 1);
	assert_true(k->claim.items[0].suspect);
	assert_int_equal(k->claim.items[0].attempts, 0); /* not charged */
	worker_advance(k, MANY);
	assert_claim(k, 2, s + 3, s + 4);
}

static void a_suspect_is_cleared_by_its_settlement(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 1);
	settle_suspect(k, 0, 0);
	worker_advance(k, MANY);
	assert_claim(k, 1, s);
	settle_return(k, 0); /* as if it had never been claimed: still one */
	worker_advance(k, MANY);
	assert_claim(k, 1, s);
	assert_true(k->claim.items[0].suspect);
	settle_wait(k, 0, 0); /* the broker spoke: it is none any more */
	worker_advance(k, MANY);
	assert_claim(k, 3, s, s + 1, s + 2);
	assert_false(k->claim.items[0].suspect);
}

static void a_suspect_in_the_middle_is_not_taken_along(struct store_world *w)
{
	int64_t s, seqs[8] = { 0 };
	struct worker *k;
	size_t count = 0;

	world_target(w, "a");
	s = world_publish_many(w, 4);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, SEC);
	settle_suspect(k, 1, SEC);
	settle_wait(k, 2, SEC);
	worker_advance(k, 0);
	world_step(w, SEC);
	while (worker_advance(k, MANY)) {
		for (size_t i = 0; i < k->claim.count; i++) {
			if (k->claim.items[i].seq == s + 1)
				assert_int_equal(k->claim.count, 1);
			seqs[count++] = k->claim.items[i].seq;
		}
	}
	assert_int_equal(count, 3);
	assert_int_equal(seqs[0] + seqs[1] + seqs[2], 3 * s + 3); /* s, s + 1, s + 2 */
}

static void a_suspect_alone_is_told_without_caution(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_suspect(k, 0, SEC);
	worker_advance(k, 0);
	world_step(w, SEC);
	worker_advance(k, MANY);
	assert_claim(k, 1, s);
	worker_restart(k);
	assert_int_equal(k->head.suspect_seq, s);
	assert_int_equal(k->head.takeovers, 1);
	assert_false(k->head.cautious);
	worker_advance(k, MANY);
	assert_claim(k, 1, s);
	assert_true(k->claim.items[0].suspect);
}

const struct store_case caution_cases[] = {
	{ "take_overs_in_a_row_are_counted", take_overs_in_a_row_are_counted, 0, 0 },
	{ "a_settlement_ends_the_row", a_settlement_ends_the_row, 0, 0 },
	{ "returning_everything_ends_no_row", returning_everything_ends_no_row, 0, 0 },
	{ "a_graceful_end_is_no_take_over", a_graceful_end_is_no_take_over, 0, 0 },
	{ "a_cautious_lane_claims_one_until_the_claim_is_passed",
	  a_cautious_lane_claims_one_until_the_claim_is_passed, 0, 0 },
	{ "caution_survives_a_take_over_in_between", caution_survives_a_take_over_in_between, 0, 0 },
	{ "the_suspect_was_alone_in_flight", the_suspect_was_alone_in_flight, 0, 0 },
	{ "a_repeated_take_tells_the_suspect_again", a_repeated_take_tells_the_suspect_again, 0, 0 },
	{ "a_suspect_comes_alone", a_suspect_comes_alone, 0, 0 },
	{ "a_suspect_is_cleared_by_its_settlement", a_suspect_is_cleared_by_its_settlement, 0, 0 },
	{ "a_suspect_in_the_middle_is_not_taken_along", a_suspect_in_the_middle_is_not_taken_along,
	  0, 0 },
	{ "a_suspect_alone_is_told_without_caution", a_suspect_alone_is_told_without_caution, 0, 0 },
	{ NULL, NULL, 0, 0 },
};
