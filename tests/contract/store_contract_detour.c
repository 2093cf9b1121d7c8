/* SPDX-License-Identifier: Apache-2.0 */

/* Detours: retry, failed, deferred, on their own; order among keys is the next files'. */

#include "store_world.h"

/* One message, claimed. */
static struct worker *claimed(struct store_world *w, int64_t *ret_seq)
{
	struct worker *k;

	world_target(w, "a");
	*ret_seq = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 1, *ret_seq);
	return k;
}

static void a_retry_comes_exactly_at_its_time(struct store_world *w)
{
	const struct outbox_delivery *row;
	int64_t seq;
	struct worker *k = claimed(w, &seq);

	settle_wait(k, 0, 10 * SEC);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_int_equal(k->claim.next_due, world_now(w) + 10 * SEC);
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_PENDING);
	assert_int_equal(row->why, OUTBOX_WAITING);
	assert_int_equal(row->attempts, 1);
	assert_string_equal(row->error, "try again");
	assert_int_equal(row->next_attempt_at, world_now(w) + 10 * SEC);
	assert_int_equal(row->last_status_at, world_now(w));
	world_step(w, 10 * SEC - 1);
	assert_int_equal(worker_advance(k, MANY), 0);
	world_step(w, 1);
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	assert_true(k->claim.items[0].detour);
	assert_int_equal(k->claim.items[0].attempts, 1);
	assert_int_equal(k->claim.items[0].message.size, 2);
	assert_int_equal(world_row(w, "a", seq)->state, OUTBOX_SENDING);
	assert_string_equal(world_row(w, "a", seq)->owner, "k");
}

static void failing_since_is_the_first_failure(struct store_world *w)
{
	int64_t seq;
	struct worker *k = claimed(w, &seq);
	outbox_time first;

	assert_int_equal(k->claim.items[0].failing_since, 0);
	world_step(w, SEC);
	first = world_now(w);
	for (int i = 1; i <= 3; i++) {
		settle_wait(k, 0, 2 * SEC);
		worker_advance(k, 0);
		world_step(w, 2 * SEC);
		worker_advance(k, MANY);
		assert_claim(k, 1, seq);
		assert_int_equal(k->claim.items[0].attempts, i);
		assert_int_equal(k->claim.items[0].failing_since, first);
	}
}

static void an_uncharged_wait_is_no_failure(struct store_world *w)
{
	int64_t seq;
	struct worker *k = claimed(w, &seq);

	settle_suspect(k, 0, SEC);
	worker_advance(k, 0);
	world_step(w, SEC);
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	assert_int_equal(k->claim.items[0].attempts, 0);
	assert_int_equal(k->claim.items[0].failing_since, 0);
}

static void a_failed_one_is_kept_and_not_sent(struct store_world *w)
{
	const struct outbox_delivery *row;
	int64_t seq;
	struct worker *k = claimed(w, &seq);

	settle_fail(k, 0);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_int_equal(k->claim.next_due, 0);
	world_step(w, 1000 * OUTBOX_DAYS);
	assert_int_equal(worker_advance(k, MANY), 0);
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_FAILED);
	assert_int_equal(row->attempts, 1);
	assert_string_equal(row->error, "will never do");
	assert_int_equal(world_stats(w, "a")->failed, 1);
}

static void a_deferred_one_comes_exactly_at_its_time(struct store_world *w)
{
	int64_t seq;
	struct worker *k = claimed(w, &seq);
	outbox_time due = world_now(w) + OUTBOX_HOURS;

	settle_defer(k, 0, due);
	worker_advance(k, MANY);
	assert_claim(k, 0);
	assert_int_equal(k->claim.next_due, due);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_DEFERRED);
	assert_int_equal(world_row(w, "a", seq)->next_attempt_at, due);
	assert_int_equal(world_row(w, "a", seq)->attempts, 0);
	world_step(w, OUTBOX_HOURS - 1);
	assert_int_equal(worker_advance(k, MANY), 0);
	world_step(w, 1);
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	assert_int_equal(k->claim.items[0].attempts, 0);
}

static void a_delivered_detour_is_history(struct store_world *w)
{
	const struct outbox_delivery *row;
	int64_t seq;
	struct worker *k = claimed(w, &seq);

	settle_wait(k, 0, SEC);
	worker_advance(k, 0);
	world_step(w, SEC);
	assert_drains(k, 1, seq);
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_DELIVERED);
	assert_int_equal(row->why, 0);
	assert_int_equal(row->attempts, 1);
	assert_int_equal(row->next_attempt_at, 0);
	assert_int_equal(row->last_status_at, world_now(w));
	assert_int_equal(world_stats(w, "a")->delivered_ever, 1);
	assert_int_equal(world_stats(w, "a")->waiting, 0);
	worker_restart(k);
	assert_drains(k, 0);
}

static void detours_and_new_rows_merge_by_seq(struct store_world *w)
{
	struct worker *k;
	int64_t s, t;

	world_target(w, "a");
	s = world_publish_many(w, 6);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 1, SEC);
	settle_defer(k, 3, world_now(w) + SEC);
	settle_return(k, 4);
	worker_advance(k, 0);
	t = world_publish_many(w, 3);
	world_step(w, SEC);
	worker_advance(k, 4);
	assert_claim(k, 4, s + 1, s + 3, s + 4, t);
	worker_advance(k, 4);
	assert_claim(k, 2, t + 1, t + 2);
}

static void next_due_is_the_earliest(struct store_world *w)
{
	struct worker *k;
	outbox_time now;

	world_target(w, "a");
	world_publish_many(w, 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_int_equal(k->claim.next_due, 0);
	now = world_now(w);
	settle_wait(k, 0, 30 * SEC);
	settle_defer(k, 1, now + 20 * SEC);
	settle_wait(k, 2, 40 * SEC);
	worker_advance(k, MANY);
	assert_int_equal(k->claim.next_due, now + 20 * SEC);
	world_step(w, 20 * SEC);
	worker_advance(k, MANY);
	assert_int_equal(k->claim.count, 1);
	assert_int_equal(k->claim.next_due, now + 30 * SEC);
	worker_advance(k, 0);
	assert_int_equal(k->claim.next_due, now + 30 * SEC);
}

static void a_long_error_survives(struct store_world *w)
{
	char error[2001];
	int64_t seq;
	struct worker *k = claimed(w, &seq);

	memset(error, 'e', sizeof(error) - 1);
	error[sizeof(error) - 1] = 0;
	memcpy(error, "'\"\\ \xe2\x82\xac\n", 8);
	settle_wait(k, 0, SEC);
	k->settled[0].error = error;
	worker_advance(k, 0);
	assert_string_equal(world_row(w, "a", seq)->error, error);
}

static void a_detour_of_one_target_is_not_the_others(struct store_world *w)
{
	int64_t seq;
	struct worker *k = claimed(w, &seq), *other;

	world_target(w, "b");
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_state(w, "b", seq, OUTBOX_PENDING, OUTBOX_NEW);
	other = worker_start(w, "k", "b", 0);
	worker_advance(other, MANY);
	assert_claim(other, 1, seq);
	settle_wait(other, 0, SEC);
	worker_advance(other, 0);
	assert_state(w, "a", seq, OUTBOX_FAILED, 0);
	assert_state(w, "b", seq, OUTBOX_PENDING, OUTBOX_WAITING);
}

/* A dead letter with a route of its own that has not read the message yet: it comes once, as a dead letter. */
static void a_dead_letter_ahead_of_its_lane(struct store_world *w)
{
	struct outbox_target_def a = target_def("a");
	int64_t first = world_publish(w, "k"), second = world_publish(w, "l"), third;
	struct worker *k, *dead;

	world_target(w, "dead");
	a.dead_letter = "dead";
	world_target_put(w, &a);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_fail(k, 0);
	worker_advance(k, 0);
	dead = worker_start(w, "d", "dead", 0);
	worker_advance(dead, 1);
	assert_claim(dead, 1, first);
	assert_string_equal(dead->claim.items[0].dead_target, "a");
	worker_advance(dead, 0); /* and nothing is left that is in trouble */
	assert_drains(dead, 1, second);
	third = world_publish(w, "k");
	assert_drains(dead, 1, third);
	worker_restart(dead);
	assert_drains(dead, 0);
	assert_int_equal(world_stats(w, "dead")->delivered_ever, 3);
}

/* What became of it there before is forgotten when it arrives once more. */
static void a_dead_letter_begins_anew(struct store_world *w)
{
	struct outbox_target_def a = target_def("a"), d = target_def("dead");
	int64_t seq = world_publish(w, "k");
	struct worker *k, *dead;

	d.route.nothing = true;
	world_target_put(w, &d);
	a.dead_letter = "dead";
	world_target_put(w, &a);
	k = worker_start(w, "k", "a", 0);
	dead = worker_start(w, "d", "dead", 0);
	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	worker_advance(dead, 1);
	settle_fail(dead, 0);
	dead->settled[0].attempts = 9;
	dead->settled[0].error = "full";
	worker_advance(dead, 0);
	assert_int_equal(world_row(w, "dead", seq)->attempts, 9);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", seq).done, 1);
	worker_advance(k, 1);
	settle_fail(k, 0);
	worker_advance(k, 0);
	assert_int_equal(world_row(w, "dead", seq)->attempts, 0);
	assert_null(world_row(w, "dead", seq)->error);
	worker_advance(dead, 1);
	assert_claim(dead, 1, seq);
	assert_int_equal(dead->claim.items[0].attempts, 0);
	assert_int_equal(dead->claim.items[0].failing_since, 0);
}

const struct store_case detour_cases[] = {
	{ "a_retry_comes_exactly_at_its_time", a_retry_comes_exactly_at_its_time, 0, 0 },
	{ "failing_since_is_the_first_failure", failing_since_is_the_first_failure, 0, 0 },
	{ "an_uncharged_wait_is_no_failure", an_uncharged_wait_is_no_failure, 0, 0 },
	{ "a_failed_one_is_kept_and_not_sent", a_failed_one_is_kept_and_not_sent, 0, 0 },
	{ "a_deferred_one_comes_exactly_at_its_time", a_deferred_one_comes_exactly_at_its_time, 0, 0 },
	{ "a_delivered_detour_is_history", a_delivered_detour_is_history, 0, 0 },
	{ "detours_and_new_rows_merge_by_seq", detours_and_new_rows_merge_by_seq, 0, 0 },
	{ "next_due_is_the_earliest", next_due_is_the_earliest, 0, 0 },
	{ "a_long_error_survives", a_long_error_survives, 0, 0 },
	{ "a_detour_of_one_target_is_not_the_others", a_detour_of_one_target_is_not_the_others, 0, 0 },
	{ "a_dead_letter_ahead_of_its_lane", a_dead_letter_ahead_of_its_lane, 1, 0 },
	{ "a_dead_letter_begins_anew", a_dead_letter_begins_anew, 1, 0 },
	{ NULL, NULL, 0, 0 },
};
