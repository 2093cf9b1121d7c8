/* SPDX-License-Identifier: Apache-2.0 */

/* Operators' actions on one delivery: what each does, and that the lifecycle table is kept. */

#include "store_world.h"

#include "core/lifecycle.h"
#include "store/store.h"

static const int action_events[] = { 0, LIFE_REQUEUE, LIFE_DISCARD, LIFE_DEFER };

static struct outbox_audit *audit_of(struct store_world *w, const char *id, size_t *ret_count)
{
	struct outbox_audit *rows = NULL;

	OK(store_audit(w->store, id, 100, w->arena, &rows, ret_count, &w->err));
	return rows;
}

/* A delivery in the wanted state, of a key of its own. */
static int64_t make(struct store_world *w, struct worker *k, int state, int why)
{
	int64_t seq = world_publish(w, why == OUTBOX_PARKED ? "parked" : NULL);

	if (state == OUTBOX_PENDING && why == OUTBOX_NEW)
		return seq;
	if (why == OUTBOX_PARKED) { /* that one becomes its head */
		worker_advance(k, MANY);
		settle_wait(k, 0, OUTBOX_HOURS);
		worker_advance(k, 0);
		seq = world_publish(w, "parked");
	}
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	if (state == OUTBOX_FAILED)
		settle_fail(k, 0);
	if (why == OUTBOX_WAITING)
		settle_wait(k, 0, OUTBOX_HOURS);
	if (why == OUTBOX_DEFERRED)
		settle_defer(k, 0, world_now(w) + OUTBOX_HOURS);
	if (why == OUTBOX_PARKED)
		settle_park(k, 0);
	worker_advance(k, 0);
	return seq;
}

/* Nothing that is unfinished is in the way of the next round. */
static void clear(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .action = OUTBOX_DISCARD, .reason = "clear", .filter = &filter };

	world_act_filter(w, &act);
	assert_int_equal(world_stats(w, "a")->oldest, 0);
}

static void the_lifecycle_table_is_kept(struct store_world *w)
{
	static const struct {
		int state, why;
	} from[] = {
		{ OUTBOX_PENDING, OUTBOX_WAITING },
		{ OUTBOX_PENDING, OUTBOX_DEFERRED },
		{ OUTBOX_PENDING, OUTBOX_PARKED },
		{ OUTBOX_DELIVERED, 0 },
		{ OUTBOX_FAILED, 0 },
		{ OUTBOX_PENDING, OUTBOX_NEW },
	};
	struct worker *k;

	world_target(w, "a");
	k = worker_start(w, "k", "a", 0);
	for (int action = OUTBOX_REQUEUE; action <= OUTBOX_DEFER; action++) {
		for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
			int64_t seq = make(w, k, from[i].state, from[i].why);
			int to = lifecycle_next(from[i].state, action_events[action]);
			struct outbox_acted acted;

			assert_state(w, "a", seq, from[i].state, from[i].why);
			acted = world_act(w, action, "a", seq);
			assert_int_equal(acted.done, to != 0);
			assert_int_equal(acted.refused, to == 0);
			assert_int_equal(world_row(w, "a", seq)->state, to ? to : from[i].state);
			assert_int_equal(acted.why[0] != 0, to == 0);
			if (!to)
				assert_non_null(strstr(acted.why, action_names[action]));
			clear(w);
		}
	}
}

static void discarded_is_final(struct store_world *w)
{
	int64_t seq;

	world_target(w, "a");
	seq = world_publish(w, "x");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", seq).done, 1);
	for (int action = OUTBOX_REQUEUE; action <= OUTBOX_DEFER; action++) {
		struct outbox_acted acted = world_act(w, action, "a", seq);

		assert_int_equal(acted.done, 0);
		assert_int_equal(acted.refused, 1);
		assert_state(w, "a", seq, OUTBOX_DISCARDED, 0);
	}
}

static void requeue_starts_anew(struct store_world *w)
{
	const struct outbox_delivery *row;
	struct outbox_audit *rows;
	struct worker *k;
	size_t count;
	int64_t seq;

	world_target(w, "a");
	seq = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_fail(k, 0);
	k->settled[0].attempts = 10;
	worker_advance(k, 0);
	world_step(w, SEC);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", seq).done, 1);
	row = world_row(w, "a", seq);
	assert_int_equal(row->state, OUTBOX_PENDING);
	assert_int_equal(row->attempts, 0);
	assert_int_equal(row->next_attempt_at, world_now(w));
	assert_int_equal(row->last_status_at, world_now(w));

	rows = audit_of(w, row->id, &count);
	assert_int_equal(count, 1);
	assert_string_equal(rows[0].action, "requeue");
	assert_string_equal(rows[0].actor, "anna");
	assert_string_equal(rows[0].target, "a");
	assert_string_equal(rows[0].id, row->id);
	assert_string_equal(rows[0].reason, "because");
	assert_int_equal(rows[0].at, world_now(w));
	assert_non_null(rows[0].detail);
	assert_non_null(strstr(rows[0].detail, "will never do")); /* the error is kept */

	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	assert_int_equal(k->claim.items[0].attempts, 0);
	assert_int_equal(k->claim.items[0].failing_since, 0);
}

static void discard_wants_a_reason(struct store_world *w)
{
	struct outbox_filter filter = filter_of("a");
	struct outbox_act act = { .action = OUTBOX_DISCARD, .actor = "anna", .filter = &filter };
	struct outbox_acted acted;
	int64_t seq;

	world_target(w, "a");
	seq = world_publish(w, "x");
	assert_int_equal(store_act(w->store, &act, &acted, &w->err), OUTBOX_EINVAL);
	assert_non_null(strstr(w->err.message, "reason"));
	act.reason = "";
	assert_int_equal(store_act(w->store, &act, &acted, &w->err), OUTBOX_EINVAL);
	assert_state(w, "a", seq, OUTBOX_PENDING, OUTBOX_NEW);
}

static void an_unread_message_is_discarded(struct store_world *w)
{
	struct worker *k;
	int64_t a, b, c;

	world_target(w, "a");
	world_target(w, "b");
	a = world_publish(w, "x");
	b = world_publish(w, "x");
	c = world_publish(w, "x");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", b).done, 1);
	assert_state(w, "a", b, OUTBOX_DISCARDED, 0);
	assert_string_equal(world_row(w, "a", b)->reason, "because");
	assert_state(w, "b", b, OUTBOX_PENDING, OUTBOX_NEW);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, a, c);
	k = worker_start(w, "k", "b", 0);
	assert_drains(k, 3, a, b, c);
	assert_int_equal(world_stats(w, "a")->discarded, 1);
}

static void an_unread_message_is_deferred(struct store_world *w)
{
	struct worker *k;
	int64_t a, b, c;

	world_target(w, "a");
	a = world_publish(w, "x");
	b = world_publish(w, "x");
	c = world_publish(w, "x");
	assert_int_equal(world_act(w, OUTBOX_DEFER, "a", b).done, 1);
	assert_state(w, "a", b, OUTBOX_PENDING, OUTBOX_DEFERRED);
	assert_int_equal(world_row(w, "a", b)->next_attempt_at, world_now(w) + 60 * SEC);
	k = worker_start(w, "k", "a", 0);
	assert_drains(k, 2, a, c); /* nobody waits for it */
	assert_int_equal(k->claim.next_due, world_now(w) + 60 * SEC);
	world_step(w, 60 * SEC);
	assert_drains(k, 1, b);
}

static void a_deferred_ahead_and_due_stays_in_order(struct store_world *w)
{
	struct worker *k;
	int64_t a, b, c;

	world_target(w, "a");
	a = world_publish(w, "x");
	b = world_publish(w, "x");
	c = world_publish(w, "x");
	world_act(w, OUTBOX_DEFER, "a", b);
	world_step(w, 60 * SEC);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	assert_claim(k, 3, a, b, c);
	assert_drains(k, 3, a, b, c);
}

static void a_due_one_ahead_waits_for_unread_ones(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_run(w, "x", 4);
	world_act(w, OUTBOX_DEFER, "a", s + 3);
	world_step(w, 60 * SEC);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, 2); /* it is due, but two of its key are not even read */
	assert_claim(k, 2, s, s + 1);
	assert_drains(k, 4, s, s + 1, s + 2, s + 3);
}

/*
 * Deferred before their lane came by, claimed, the owner dies: each is sent, none twice. Two of them wait behind
 * the first one then, so that the lane comes by these while the one behind them is on its way.
 */
static void deferred_ahead_survive_a_take_over(struct store_world *w)
{
	int64_t first, second, third, other, last;
	struct worker *k;

	world_target(w, "a");
	first = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, 30 * SEC);
	worker_advance(k, 0);
	second = world_publish(w, "x");
	third = world_publish(w, "x");
	other = world_publish(w, "y");
	last = world_publish(w, "z");
	world_act(w, OUTBOX_DEFER, "a", second);
	world_act(w, OUTBOX_DEFER, "a", third);
	world_act(w, OUTBOX_DEFER, "a", other);
	world_step(w, 60 * SEC);
	worker_advance(k, 4);
	assert_claim(k, 4, first, second, third, other);
	worker_restart(k);
	worker_advance(k, 1);
	assert_claim(k, 1, first);
	settle_wait(k, 0, OUTBOX_HOURS);
	worker_advance(k, 1);
	assert_claim(k, 1, other);
	worker_advance(k, 0);
	world_act(w, OUTBOX_DISCARD, "a", first);
	world_act(w, OUTBOX_DISCARD, "a", second);
	world_act(w, OUTBOX_DISCARD, "a", third);
	assert_drains(k, 1, last);
}

static void defer_keeps_the_attempts(struct store_world *w)
{
	struct worker *k;
	int64_t seq;

	world_target(w, "a");
	seq = world_publish(w, "x");
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, SEC);
	worker_advance(k, 0);
	assert_int_equal(world_act(w, OUTBOX_DEFER, "a", seq).done, 1);
	world_step(w, SEC);
	assert_drains(k, 0); /* its retry would have been now */
	world_step(w, 59 * SEC);
	worker_advance(k, MANY);
	assert_claim(k, 1, seq);
	assert_int_equal(k->claim.items[0].attempts, 1);
}

/* What an action on the head means for the run parked behind it. */
static void the_head_goes(struct store_world *w, int action)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_run(w, "x", 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, OUTBOX_DAYS);
	settle_park(k, 1);
	settle_park(k, 2);
	worker_advance(k, 0);
	assert_drains(k, 0);
	assert_int_equal(world_act(w, action, "a", s).done, 1);
	worker_advance(k, 1);
	assert_claim(k, 1, s + 1);
	assert_drains(k, 2, s + 1, s + 2);
}

static void discarding_the_head_releases_the_run(struct store_world *w)
{
	the_head_goes(w, OUTBOX_DISCARD);
}

static void deferring_the_head_releases_the_run(struct store_world *w)
{
	the_head_goes(w, OUTBOX_DEFER);
}

static void discarding_inside_the_run_keeps_it_waiting(struct store_world *w)
{
	struct worker *k;
	int64_t s;

	world_target(w, "a");
	s = world_publish_run(w, "x", 3);
	k = worker_start(w, "k", "a", 0);
	worker_advance(k, MANY);
	settle_wait(k, 0, SEC);
	settle_park(k, 1);
	settle_park(k, 2);
	worker_advance(k, 0);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "a", s + 1).done, 1);
	assert_drains(k, 0);
	world_step(w, SEC);
	assert_drains(k, 2, s, s + 2);
}

const struct store_case act_cases[] = {
	{ "the_lifecycle_table_is_kept", the_lifecycle_table_is_kept, 0, 0 },
	{ "discarded_is_final", discarded_is_final, 0, 0 },
	{ "requeue_starts_anew", requeue_starts_anew, 0, 0 },
	{ "discard_wants_a_reason", discard_wants_a_reason, 0, 0 },
	{ "an_unread_message_is_discarded", an_unread_message_is_discarded, 0, 0 },
	{ "an_unread_message_is_deferred", an_unread_message_is_deferred, 0, 0 },
	{ "a_deferred_ahead_and_due_stays_in_order", a_deferred_ahead_and_due_stays_in_order, 0, 0 },
	{ "a_due_one_ahead_waits_for_unread_ones", a_due_one_ahead_waits_for_unread_ones, 0, 0 },
	{ "deferred_ahead_survive_a_take_over", deferred_ahead_survive_a_take_over, 0, 0 },
	{ "defer_keeps_the_attempts", defer_keeps_the_attempts, 0, 0 },
	{ "discarding_the_head_releases_the_run", discarding_the_head_releases_the_run, 0, 0 },
	{ "deferring_the_head_releases_the_run", deferring_the_head_releases_the_run, 0, 0 },
	{ "discarding_inside_the_run_keeps_it_waiting", discarding_inside_the_run_keeps_it_waiting,
	  0, 0 },
	{ NULL, NULL, 0, 0 },
};
