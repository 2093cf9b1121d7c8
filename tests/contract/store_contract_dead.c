/* SPDX-License-Identifier: Apache-2.0 */

/* Dead letters: what fails at one target goes on to another, in the same transaction. */

#include "store/store.h"
#include "store_world.h"

/* "dead" gets nothing by its route, and what fails at "a". */
static void targets(struct store_world *w, bool dead_routes)
{
	struct outbox_target_def dead = target_def("dead"), a = target_def("a");

	dead.route.nothing = !dead_routes;
	world_target_put(w, &dead);
	a.dead_letter = "dead";
	world_target_put(w, &a);
}

/* Who works on each of the two, and a message that waits for "a". */
struct started {
	struct worker *a, *dead;
	int64_t seq;
};

static struct started start(struct store_world *w, bool dead_routes)
{
	struct started s;

	targets(w, dead_routes);
	s.seq = world_publish(w, "k");
	s.a = worker_start(w, "a", "a", 0);
	s.dead = worker_start(w, "d", "dead", 0);
	return s;
}

/* Claim one at "a" and fail it for good. */
static void fail_one(struct worker *a, const char *error, int attempts)
{
	assert_int_equal(worker_advance(a, 1), 1);
	settle_fail(a, 0);
	a->settled[0].error = error;
	a->settled[0].attempts = attempts;
	worker_advance(a, 0);
}

/* The next claim at "dead" is this one, which failed at "a" for this reason. */
static void assert_next_dead(struct worker *dead, int64_t seq, const char *reason, int attempts,
			     outbox_time at)
{
	const struct outbox_claimed *item;

	worker_advance(dead, MANY);
	assert_claim(dead, 1, seq);
	item = &dead->claim.items[0];
	assert_string_equal(item->dead_target, "a");
	assert_string_equal(item->dead_reason, reason);
	assert_int_equal(item->dead_attempts, attempts);
	assert_int_equal(item->dead_at, at);
}

static void what_fails_goes_on(struct store_world *w)
{
	struct started s = start(w, false);
	outbox_time at;

	assert_int_equal(worker_advance(s.dead, MANY), 0);
	world_step(w, SEC);
	at = world_now(w);
	fail_one(s.a, "broken", 3);
	assert_state(w, "a", s.seq, OUTBOX_FAILED, 0);
	assert_state(w, "dead", s.seq, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_int_equal(world_row(w, "dead", s.seq)->attempts, 0);
	world_step(w, SEC);
	assert_next_dead(s.dead, s.seq, "broken", 3, at);
	assert_int_equal(s.dead->claim.items[0].attempts, 0);
	assert_int_equal(s.dead->claim.items[0].message.size, 2);
	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 0);
	assert_state(w, "dead", s.seq, OUTBOX_DELIVERED, 0);
	assert_state(w, "a", s.seq, OUTBOX_FAILED, 0);
}

static void all_of_a_batch_go_on(struct store_world *w)
{
	int64_t first = world_publish_run(w, NULL, 4);
	struct worker *a;

	targets(w, false);
	a = worker_start(w, "a", "a", 0);
	assert_int_equal(worker_advance(a, MANY), 4);
	for (size_t i = 0; i < 4; i++)
		settle_fail(a, i);
	worker_advance(a, 0);
	assert_drains(worker_start(w, "d", "dead", 0), 4, first, first + 1, first + 2, first + 3);
}

static void nothing_else_goes_on(struct store_world *w)
{
	struct worker *a, *dead;

	targets(w, false);
	world_publish_run(w, NULL, 5);
	a = worker_start(w, "a", "a", 0);
	assert_int_equal(worker_advance(a, MANY), 5);
	settle_wait(a, 1, SEC);
	settle_defer(a, 2, world_now(w) + SEC);
	settle_return(a, 3);
	worker_advance(a, 0);
	dead = worker_start(w, "d", "dead", 0);
	assert_int_equal(worker_advance(dead, MANY), 0);
	assert_int_equal(world_stats(w, "dead")->waiting, 0);
	assert_int_equal(world_stats(w, "dead")->pending, 0);
}

/* After a requeue it may fail once more, for another reason. */
static void failing_again_goes_on_again(struct store_world *w)
{
	struct started s = start(w, false);

	fail_one(s.a, "once", 1);
	assert_drains(s.dead, 1, s.seq);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", s.seq).done, 1);
	assert_state(w, "dead", s.seq, OUTBOX_DELIVERED, 0); /* only failing sends it on */
	world_step(w, SEC);
	fail_one(s.a, "twice", 2);
	assert_state(w, "dead", s.seq, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_next_dead(s.dead, s.seq, "twice", 2, world_now(w));
	settle_fail(s.dead, 0); /* it fails there, and once more here: sent again */
	worker_advance(s.dead, 0);
	assert_state(w, "dead", s.seq, OUTBOX_FAILED, 0);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", s.seq).done, 1);
	fail_one(s.a, "thrice", 1);
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "dead", s.seq).done, 1);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", s.seq).done, 1);
	fail_one(s.a, "and again", 1);
	assert_drains(s.dead, 1, s.seq);
}

/* While the first one is in flight there, the next arrives: one more is sent when that is settled. */
static void what_arrives_in_flight_is_sent_again(struct store_world *w)
{
	struct started s = start(w, false);

	fail_one(s.a, "once", 1);
	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 1, s.seq);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "a", s.seq).done, 1);
	fail_one(s.a, "twice", 1);
	assert_state(w, "dead", s.seq, OUTBOX_SENDING, 0);
	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 1, s.seq);
	assert_string_equal(s.dead->claim.items[0].dead_reason, "twice");
	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 0);
	assert_state(w, "dead", s.seq, OUTBOX_DELIVERED, 0);
}

/* A dead letter that gets the message by its own route as well, at this very moment. */
static void what_is_in_flight_from_the_log_is_sent_again(struct store_world *w)
{
	struct started s = start(w, true);
	int64_t second = world_publish(w, "l");

	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 2, s.seq, second);
	assert_null(s.dead->claim.items[0].dead_target);
	fail_one(s.a, "once", 1);
	OK(worker_repeat(s.dead)); /* the answer was lost: the claim is what it was */
	assert_claim(s.dead, 2, s.seq, second);
	assert_next_dead(s.dead, s.seq, "once", 1, world_now(w));
	fail_one(s.a, "also", 1);
	assert_next_dead(s.dead, second, "also", 1, world_now(w)); /* delivered by the log before */
	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 0);
	assert_state(w, "dead", s.seq, OUTBOX_DELIVERED, 0);
	assert_state(w, "dead", second, OUTBOX_DELIVERED, 0);
}

static void other_outcomes_of_what_is_in_flight(struct store_world *w)
{
	struct worker *a, *dead;
	int64_t first, second, third;

	targets(w, true);
	first = world_publish(w, NULL);
	second = world_publish(w, NULL);
	third = world_publish(w, NULL);
	a = worker_start(w, "a", "a", 0);
	dead = worker_start(w, "d", "dead", 0);
	worker_advance(dead, MANY);
	fail_one(a, "one", 1);
	fail_one(a, "two", 1);
	fail_one(a, "three", 1);
	settle_wait(dead, 0, SEC);
	settle_return(dead, 2);
	worker_advance(dead, 0);
	assert_state(w, "dead", first, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_state(w, "dead", second, OUTBOX_PENDING, OUTBOX_WAITING);
	assert_state(w, "dead", third, OUTBOX_PENDING, OUTBOX_WAITING);
	world_step(w, 2 * SEC);
	worker_advance(dead, MANY);
	assert_claim(dead, 3, first, second, third);
	assert_string_equal(dead->claim.items[0].dead_reason, "one");
	assert_string_equal(dead->claim.items[2].dead_reason, "three");
	worker_advance(dead, MANY);
	assert_claim(dead, 0);
}

/* Its owner dies with it in flight. */
static void a_take_over_loses_none(struct store_world *w)
{
	struct started s = start(w, true);

	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 1, s.seq);
	fail_one(s.a, "once", 1);
	worker_restart(s.dead);
	assert_next_dead(s.dead, s.seq, "once", 1, world_now(w));
	worker_advance(s.dead, MANY);
	assert_claim(s.dead, 0);
}

static void it_is_done_once(struct store_world *w)
{
	struct started s = start(w, false);

	fail_one(s.a, "once", 1);
	assert_drains(s.dead, 1, s.seq);
	OK(worker_repeat(s.a));
	assert_drains(s.dead, 0);
}

static void who_is_fenced_sends_nothing_on(struct store_world *w)
{
	struct worker *a, *other;
	int64_t seq;

	targets(w, false);
	seq = world_publish(w, "k");
	a = worker_start(w, "a", "a", 0);
	assert_int_equal(worker_advance(a, 1), 1);
	world_step(w, LEASE + SEC);
	other = worker_start(w, "b", "a", 0);
	settle_fail(a, 0);
	assert_int_equal(worker_try_advance(a, 0, BYTES), OUTBOX_EFENCED);
	assert_null(world_find(w, "dead", seq));
	assert_drains(other, 1, seq);
	assert_null(world_find(w, "dead", seq));
}

static void a_key_keeps_its_order(struct store_world *w)
{
	struct worker *a, *dead;
	int64_t first = world_publish_run(w, "k", 3);

	targets(w, false);
	a = worker_start(w, "a", "a", 0);
	dead = worker_start(w, "d", "dead", 0);
	fail_one(a, "1", 1);
	worker_advance(dead, MANY);
	settle_wait(dead, 0, 10 * SEC);
	worker_advance(dead, 0);
	fail_one(a, "2", 1);
	fail_one(a, "3", 1);
	worker_advance(dead, MANY);
	assert_claim(dead, 0); /* behind the first, which waits */
	world_step(w, 11 * SEC);
	assert_drains(dead, 3, first, first + 1, first + 2);
}

static void every_lane_has_its_own(struct store_world *w)
{
	int64_t seqs[4];
	struct worker *a, *dead;

	targets(w, false);
	for (int i = 0; i < 4; i++)
		seqs[i] = world_publish(w, key_in_lane(w, i, 0));
	for (int i = 0; i < 4; i++) {
		a = worker_new(w, "a", "a");
		worker_lease(a);
		worker_take(a, i);
		fail_one(a, "x", 1);
		dead = worker_new(w, "d", "dead");
		worker_lease(dead);
		worker_take(dead, i);
		assert_drains(dead, 1, seqs[i]);
	}
}

static void a_message_stays_until_its_dead_letter_is_done(struct store_world *w)
{
	struct outbox_purge purge = { 0 };
	struct started s = start(w, false);

	fail_one(s.a, "x", 1);
	world_step(w, OUTBOX_DAYS);
	purge.delivered_before = purge.failed_before = world_now(w);
	assert_int_equal(world_purge(w, &purge).messages, 0);
	worker_restart(s.dead);
	assert_drains(s.dead, 1, s.seq);
	assert_int_equal(world_purge(w, &purge).messages, 0);
	world_step(w, OUTBOX_DAYS);
	purge.delivered_before = purge.failed_before = world_now(w);
	assert_int_equal(world_purge(w, &purge).messages, 1);
}

static int put(struct store_world *w, const char *name, const char *dead_letter)
{
	struct outbox_target_def def = target_def(name);
	int64_t version;

	def.dead_letter = dead_letter;
	return store_target_put(w->store, &def, &version, &w->err);
}

static void loops_and_strangers_are_refused(struct store_world *w)
{
	assert_int_equal(put(w, "a", "a"), OUTBOX_ECONFIG);
	assert_int_equal(put(w, "a", "b"), OUTBOX_ECONFIG);
	assert_non_null(strstr(w->err.message, "\"b\""));
	assert_null(world_find(w, "a", 1));
	OK(put(w, "c", NULL));
	OK(put(w, "b", "c"));
	OK(put(w, "a", "b"));
	assert_int_equal(put(w, "c", "a"), OUTBOX_ECONFIG);
	assert_int_equal(put(w, "c", "c"), OUTBOX_ECONFIG);
	assert_int_equal(put(w, "c", "b"), OUTBOX_ECONFIG);
	assert_int_equal(store_target_drop(w->store, "b", "me", "x", &w->err), OUTBOX_ECONFLICT);
	assert_non_null(strstr(w->err.message, "\"a\""));
	OK(put(w, "a", NULL));
	OK(store_target_drop(w->store, "b", "me", "x", &w->err));
	OK(put(w, "c", "a"));
}

static void a_change_of_it_is_no_change_of_routing(struct store_world *w)
{
	struct outbox_target_def def = target_def("a");
	struct worker *a;
	int64_t version, seq;

	world_target(w, "dead");
	version = world_target_put(w, &def);
	def.dead_letter = "dead";
	assert_int_equal(world_target_put(w, &def), version);
	def.dead_letter = NULL;
	assert_int_equal(world_target_put(w, &def), version);
	seq = world_publish(w, "k");
	a = worker_start(w, "a", "a", 0);
	fail_one(a, "x", 1);
	assert_state(w, "dead", seq, OUTBOX_PENDING, OUTBOX_NEW); /* by its own route */
}

#define CASE(name, lanes)             \
	{                             \
#name, name, lanes, 0 \
	}
const struct store_case dead_cases[] = {
	CASE(what_fails_goes_on, 1),
	CASE(all_of_a_batch_go_on, 1),
	CASE(nothing_else_goes_on, 1),
	CASE(failing_again_goes_on_again, 1),
	CASE(what_arrives_in_flight_is_sent_again, 1),
	CASE(what_is_in_flight_from_the_log_is_sent_again, 1),
	CASE(other_outcomes_of_what_is_in_flight, 1),
	CASE(a_take_over_loses_none, 1),
	CASE(it_is_done_once, 1),
	CASE(who_is_fenced_sends_nothing_on, 1),
	CASE(a_key_keeps_its_order, 1),
	CASE(every_lane_has_its_own, 4),
	CASE(a_message_stays_until_its_dead_letter_is_done, 1),
	CASE(loops_and_strangers_are_refused, 1),
	CASE(a_change_of_it_is_no_change_of_routing, 1),
	{ NULL, NULL, 0, 0 },
};
