/* SPDX-License-Identifier: Apache-2.0 */

/* Retention where targets do not get every message: who has nothing to do with one need not pass it first. */

#include "store_world.h"

static struct outbox_purge before(struct store_world *w, outbox_time delivered_age)
{
	return (struct outbox_purge){ .delivered_before = world_now(w) - delivered_age };
}

static struct outbox_target_def wants(const char *target, const char *const *type)
{
	struct outbox_target_def def = target_def(target);

	def.route.types = type;
	def.route.n_types = 1;
	return def;
}

/* An idle lane does not move for what it does not get, and somebody else's retention need not wait for it. */
static void a_lane_without_an_interest_holds_nothing_back(struct store_world *w)
{
	static const char *const types[] = { "zzz" };
	struct outbox_target_def part = wants("part", types), morgue = target_def("morgue");
	struct outbox_purge purge;
	struct worker *a, *p;
	int64_t s;

	morgue.route.nothing = true;
	world_target(w, "a");
	world_target_put(w, &part);
	world_target_put(w, &morgue);
	s = world_publish_many(w, 3);
	a = worker_start(w, "k", "a", 0);
	assert_drains(a, 3, s, s + 1, s + 2);
	world_step(w, 10 * SEC);
	purge = before(w, 11 * SEC);
	assert_int_equal(world_purge(w, &purge).messages, 0);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 3);
	s = world_publish_type(w, "zzz"); /* and it still gets what it is meant to get */
	p = worker_start(w, "k", "part", 0);
	assert_drains(p, 1, s);
	assert_drains(a, 1, s);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 1);
}

static void what_an_idle_lane_still_has_to_get_stays(struct store_world *w)
{
	static const char *const types[] = { "zzz" };
	struct outbox_target_def part = wants("part", types);
	struct outbox_purge purge;
	struct worker *a, *p;
	int64_t s, z;

	world_target(w, "a");
	world_target_put(w, &part);
	s = world_publish_many(w, 2);
	z = world_publish_type(w, "zzz");
	world_publish_many(w, 2);
	a = worker_start(w, "k", "a", 0);
	worker_drain(a, (int64_t[5]){ 0 }, 5);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 4); /* also those behind it */
	assert_null(world_find(w, "a", s));
	assert_state(w, "part", z, OUTBOX_PENDING, OUTBOX_NEW);
	p = worker_start(w, "k", "part", 0);
	worker_advance(p, MANY);
	assert_claim(p, 1, z);
	assert_int_equal(world_purge(w, &purge).messages, 0); /* in flight */
	worker_advance(p, 0);
	assert_int_equal(world_purge(w, &purge).messages, 0); /* just now */
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 1);
}

/* A message that nobody gets has its own age. */
static void what_nobody_gets_goes_by_its_age(struct store_world *w)
{
	static const char *const types[] = { "zzz" };
	struct outbox_target_def part = wants("part", types);
	struct outbox_purge purge;

	world_target_put(w, &part);
	world_publish_many(w, 2);
	world_step(w, 10 * SEC);
	world_publish_many(w, 1);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 2);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	assert_int_equal(world_purge(w, &purge).messages, 1);
}

/* What is wanted is judged by the routing of today, and by that of a claim in flight. */
static void a_new_route_wants_what_it_wants(struct store_world *w)
{
	static const char *const old[] = { "old" }, *const new[] = { "new" };
	struct outbox_target_def def = wants("part", old);
	struct outbox_purge purge;
	struct worker *k;
	int64_t o, n;

	world_target_put(w, &def);
	o = world_publish_type(w, "old");
	k = worker_start(w, "k", "part", 0);
	worker_advance(k, 1);
	assert_claim(k, 1, o);
	n = world_publish_type(w, "new");
	world_publish_type(w, "neither");
	def = wants("part", new);
	world_target_put(w, &def);
	world_step(w, 10 * SEC);
	purge = before(w, SEC);
	purge.limit = 1;
	assert_int_equal(world_purge(w, &purge).messages, 1); /* the third */
	purge.limit = 0;
	assert_int_equal(world_purge(w, &purge).messages, 0);
	k->version = world_target_put(w, &def);
	worker_restart(k); /* the one before died: what it had in flight nobody wants now */
	worker_advance(k, MANY);
	assert_claim(k, 1, n);
	assert_int_equal(world_purge(w, &purge).messages, 1);
	worker_advance(k, 0);
	assert_state(w, "part", n, OUTBOX_DELIVERED, 0);
}

/* Failed long ago at one target, not meant for the other: it goes without --delivered-before. */
static void a_failed_one_goes_where_others_do_not_want_it(struct store_world *w)
{
	static const char *const types[] = { "zzz" };
	struct outbox_target_def part = wants("part", types);
	struct outbox_purge purge = { 0 };
	struct worker *a;

	world_target(w, "a");
	world_target_put(w, &part);
	world_publish_many(w, 1);
	a = worker_start(w, "k", "a", 0);
	worker_advance(a, MANY);
	settle_fail(a, 0);
	worker_advance(a, 0);
	world_step(w, 10 * SEC);
	purge.failed_before = world_now(w) - SEC;
	assert_int_equal(world_purge(w, &purge).failed, 1);
	assert_int_equal(world_messages(w), 0);
}

#define CASE(name)                \
	{                         \
#name, name, 0, 0 \
	}

const struct store_case interest_cases[] = {
	CASE(a_lane_without_an_interest_holds_nothing_back),
	CASE(what_an_idle_lane_still_has_to_get_stays),
	CASE(what_nobody_gets_goes_by_its_age),
	CASE(a_new_route_wants_what_it_wants),
	CASE(a_failed_one_goes_where_others_do_not_want_it),
	{ NULL, NULL, 0, 0 },
};
