/* SPDX-License-Identifier: Apache-2.0 */

/* Leases: who works on which lane, in exact shares. */

#include "store/store.h"
#include "store_world.h"

#include <stdio.h>

#define WORKERS 5

static int lease(struct worker *k, bool leaving)
{
	struct outbox_lease_request request = { .target = k->target,
						.owner = k->owner,
						.duration = LEASE,
						.route_version = k->version,
						.leaving = leaving };

	return store_lease(k->store, &request, &k->lease, &k->err);
}

static void assert_no_lane_twice(struct worker *const *workers, size_t n, int lanes)
{
	int held[OUTBOX_LANES_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		for (int j = 0; j < workers[i]->lease.count; j++) {
			int lane = workers[i]->lease.lanes[j];

			assert_true(lane >= 0 && lane < lanes);
			assert_true(j == 0 || lane > workers[i]->lease.lanes[j - 1]);
			assert_int_equal(++held[lane], 1);
		}
	}
}

/* A worker above its share lets lanes go, as the relay does. */
static void let_go(struct worker *k)
{
	struct store_world *w = k->w;

	for (int i = k->lease.share; i < k->lease.count; i++)
		OK(store_release(k->store, k->target, k->lease.lanes[i], k->owner, &w->err));
}

static void shares_are_exact(struct store_world *w)
{
	static const int expected[WORKERS][WORKERS] = {
		{ 4 }, { 2, 2 }, { 2, 1, 1 }, { 1, 1, 1, 1 }, { 1, 1, 1, 1, 0 },
	};
	struct worker *workers[WORKERS];

	world_target(w, "a");
	for (int n = 0; n < WORKERS; n++) {
		char owner[16];

		snprintf(owner, sizeof(owner), "w%d", n);
		workers[n] = worker_new(w, owner, "a");
		for (int round = 0; round < 3; round++) {
			for (int i = 0; i <= n; i++) {
				worker_lease(workers[i]);
				let_go(workers[i]);
			}
		}
		for (int i = 0; i <= n; i++) {
			worker_lease(workers[i]);
			assert_int_equal(workers[i]->lease.total, 4);
			assert_int_equal(workers[i]->lease.share, expected[n][i]);
			assert_int_equal(workers[i]->lease.count, expected[n][i]);
			assert_false(workers[i]->lease.stale_route);
		}
		assert_no_lane_twice(workers, (size_t)n + 1, 4);
	}
}

static void the_first_by_name_gets_the_remainder(struct store_world *w)
{
	struct worker *late = worker_new(w, "a-first-by-name", "a"),
		      *early = worker_new(w, "z", "a");
	struct worker *middle = worker_new(w, "m", "a");

	world_target(w, "a");
	worker_lease(early);
	worker_lease(middle);
	worker_lease(late);
	worker_lease(early);
	worker_lease(middle);
	assert_int_equal(late->lease.share, 2);
	assert_int_equal(middle->lease.share, 1);
	assert_int_equal(early->lease.share, 1);
}

static void nothing_is_taken_away(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	a = worker_new(w, "a", "a");
	b = worker_new(w, "b", "a");
	worker_lease(a);
	assert_int_equal(a->lease.count, 4);
	worker_lease(b);
	assert_int_equal(b->lease.share, 2);
	assert_int_equal(b->lease.count, 0);
	worker_lease(a);
	assert_int_equal(a->lease.share, 2);
	assert_int_equal(a->lease.count, 4); /* renewed, all of them */
	OK(store_release(w->store, "a", 3, "a", &w->err));
	worker_lease(b);
	assert_int_equal(b->lease.count, 1);
	assert_int_equal(b->lease.lanes[0], 3);
	worker_lease(a);
	assert_int_equal(a->lease.count, 3);
}

static void a_lease_ends_exactly_at_its_end(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	a = worker_new(w, "a", "a");
	b = worker_new(w, "b", "a");
	worker_lease(a);
	assert_int_equal(world_stats(w, "a")->lanes[0].lease_until, world_now(w) + LEASE);
	assert_string_equal(world_stats(w, "a")->lanes[0].owner, "a");
	world_step(w, LEASE - 1);
	worker_lease(b);
	assert_int_equal(b->lease.count, 0);
	world_step(w, 1);
	worker_lease(b);
	assert_int_equal(b->lease.count, 1);
	assert_int_equal(b->lease.share, 1); /* the dead one does not count */
	worker_lease(a);
	assert_int_equal(a->lease.count, 0);
}

static void a_renewed_lease_goes_on(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	a = worker_new(w, "a", "a");
	b = worker_new(w, "b", "a");
	worker_lease(a);
	for (int i = 0; i < 5; i++) {
		world_step(w, LEASE - 1);
		worker_lease(a);
		assert_int_equal(a->lease.count, 1);
		worker_lease(b);
		assert_int_equal(b->lease.count, 0);
	}
}

static void the_dead_do_not_count_in_shares(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	a = worker_new(w, "a", "a");
	b = worker_new(w, "b", "a");
	worker_lease(b);
	worker_lease(a);
	world_step(w, LEASE / 2);
	worker_lease(a);
	assert_int_equal(a->lease.share, 2);
	world_step(w, LEASE / 2 - 1);
	worker_lease(a);
	assert_int_equal(a->lease.share, 2);
	assert_int_equal(a->lease.count, 0);
	world_step(w, 2);
	worker_lease(a);
	assert_int_equal(a->lease.share, 4);
	assert_int_equal(a->lease.count, 4);
}

static void a_leaving_worker_counts_no_more(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	a = worker_new(w, "a", "a");
	b = worker_new(w, "b", "a");
	worker_lease(a);
	worker_lease(b);
	OK(store_release(w->store, "a", 0, "a", &w->err));
	world_step(w, LEASE - 1);
	OK(lease(a, true));
	assert_int_equal(a->lease.count, 3); /* renewed, but nothing new */
	worker_lease(b);
	assert_int_equal(b->lease.share, 4);
	assert_int_equal(b->lease.count, 1);
	world_step(w, LEASE - 1);
	worker_lease(b);
	assert_int_equal(b->lease.count, 1); /* a still finishes its three */
	for (int lane = 1; lane < 4; lane++)
		OK(store_release(w->store, "a", lane, "a", &w->err));
	worker_lease(b);
	assert_int_equal(b->lease.count, 4);
}

static void release_is_the_owners_only(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	a = worker_new(w, "a", "a");
	b = worker_new(w, "b", "a");
	worker_lease(a);
	OK(store_release(w->store, "a", 0, "b", &w->err)); /* no effect, no error */
	worker_lease(b);
	assert_int_equal(b->lease.count, 0);
	OK(store_release(w->store, "a", 0, "a", &w->err));
	OK(store_release(w->store, "a", 0, "a", &w->err));
	assert_null(world_stats(w, "a")->lanes[0].owner);
	OK(lease(a, true));
	worker_lease(b);
	assert_int_equal(b->lease.count, 1);
	OK(store_release(w->store, "a", 0, "a", &w->err)); /* not the owner any more */
	worker_lease(b);
	assert_int_equal(b->lease.count, 1);
}

static void targets_have_workers_of_their_own(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "a");
	world_target(w, "b");
	a = worker_new(w, "one", "a");
	b = worker_new(w, "two", "b");
	worker_lease(a);
	worker_lease(b);
	assert_int_equal(a->lease.count, 4);
	assert_int_equal(b->lease.count, 4);
}

static void an_unknown_target_has_no_lease(struct store_world *w)
{
	struct worker *k = worker_new(w, "k", "nobody");

	assert_int_equal(lease(k, false), OUTBOX_ENOTFOUND);
	assert_int_equal(store_release(w->store, "nobody", 0, "k", &w->err) == OUTBOX_OK ||
				 w->err.status == OUTBOX_ENOTFOUND,
			 1);
}

static void lease_at(struct worker *k, const char *place)
{
	struct outbox_lease_request request = { .target = k->target,
						.owner = k->owner,
						.duration = LEASE,
						.route_version = k->version,
						.place = place };
	struct store_world *w = k->w;

	OK(store_lease(k->store, &request, &k->lease, &w->err));
}

static void workers_of_a_target_send_to_one_place(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "t");
	a = worker_new(w, "a", "t");
	b = worker_new(w, "b", "t");
	lease_at(b, "amqp://one");
	assert_int_equal(b->lease.count, 4);
	lease_at(a, "amqp://two");
	assert_int_equal(a->lease.total, 4);
	assert_int_equal(a->lease.share, 0);
	assert_int_equal(a->lease.count, 0);
	assert_string_equal(a->lease.elsewhere, "amqp://one");
	assert_string_equal(a->lease.elsewhere_owner, "b");
	world_step(w, LEASE - 1);
	lease_at(b, "amqp://one"); /* who was here first goes on with all of it */
	assert_string_equal(b->lease.elsewhere, "");
	assert_int_equal(b->lease.share, 4);
	lease_at(a, "amqp://one"); /* and shares with who sends to the same place */
	assert_string_equal(a->lease.elsewhere, "");
	assert_int_equal(a->lease.share, 2);
	lease_at(a, "amqp://two");
	assert_int_equal(a->lease.count, 0);
	lease_at(b, "amqp://one");
	assert_int_equal(b->lease.share, 4);
	world_step(w, LEASE); /* b is dead: its place is */
	lease_at(a, "amqp://two");
	assert_string_equal(a->lease.elsewhere, "");
	assert_int_equal(a->lease.count, 4);
	lease_at(b, "amqp://one");
	assert_string_equal(b->lease.elsewhere, "amqp://two");
	OK(lease(a, true));
	lease_at(b, "amqp://one");
	assert_string_equal(b->lease.elsewhere, "");
	assert_int_equal(b->lease.share, 4);
}

static void a_place_that_is_not_known_is_no_other_place(struct store_world *w)
{
	struct worker *a, *b;

	world_target(w, "t");
	a = worker_new(w, "a", "t");
	b = worker_new(w, "b", "t");
	lease_at(a, "amqp://one");
	lease_at(b, NULL);
	assert_string_equal(b->lease.elsewhere, "");
	assert_int_equal(b->lease.share, 2);
	lease_at(a, "amqp://two"); /* its own place of a moment ago is nobody else's */
	assert_string_equal(a->lease.elsewhere, "");
	assert_int_equal(a->lease.share, 2);
}

static void note_unserved(struct store_world *w, const char *target, const char *owner,
			  const char *why)
{
	OK(store_unserved(w->store,
			  &(struct outbox_unserved){
				  .target = target, .owner = owner, .duration = LEASE, .why = why },
			  &w->err));
}

static void what_is_not_served_is_told(struct store_world *w)
{
	outbox_time began = world_now(w);

	world_target(w, "b");
	assert_null(world_stats(w, "b")->unserved);
	note_unserved(w, "b", "z", "first");
	world_step(w, 1);
	note_unserved(w, "b", "a", "second");
	note_unserved(w, "a", "a", "not registered");
	note_unserved(w, "c", "a", "nor this");
	assert_string_equal(world_stats(w, "b")->unserved, "first");
	assert_int_equal(world_stats(w, "b")->unserved_since, began);
	assert_int_equal(world_stats(w, "b")->n_lanes, 1);
	assert_string_equal(world_stats(w, "a")->unserved, "not registered");
	assert_int_equal(world_stats(w, "a")->n_lanes, 0);
	assert_string_equal(world_stats(w, "c")->unserved, "nor this");
	world_step(w, LEASE - 2);
	note_unserved(w, "b", "z", "first again"); /* since is when it began */
	assert_string_equal(world_stats(w, "b")->unserved, "first again");
	assert_int_equal(world_stats(w, "b")->unserved_since, began);
	note_unserved(w, "b", "z", NULL);
	assert_string_equal(world_stats(w, "b")->unserved, "second");
	world_step(w, 2); /* nobody repeats it */
	assert_null(world_stats(w, "b")->unserved);
	note_unserved(w, "b", "z", NULL);
	note_unserved(w, "b", "z", "anew");
	assert_int_equal(world_stats(w, "b")->unserved_since, world_now(w));
	OK(store_target_drop(w->store, "b", "me", "test", &w->err));
	world_target(w, "b");
	assert_null(world_stats(w, "b")->unserved);
}

const struct store_case lease_cases[] = {
	{ "shares_are_exact", shares_are_exact, 4, 0 },
	{ "the_first_by_name_gets_the_remainder", the_first_by_name_gets_the_remainder, 4, 0 },
	{ "nothing_is_taken_away", nothing_is_taken_away, 4, 0 },
	{ "a_lease_ends_exactly_at_its_end", a_lease_ends_exactly_at_its_end, 0, 0 },
	{ "a_renewed_lease_goes_on", a_renewed_lease_goes_on, 0, 0 },
	{ "the_dead_do_not_count_in_shares", the_dead_do_not_count_in_shares, 4, 0 },
	{ "a_leaving_worker_counts_no_more", a_leaving_worker_counts_no_more, 4, 0 },
	{ "release_is_the_owners_only", release_is_the_owners_only, 0, 0 },
	{ "targets_have_workers_of_their_own", targets_have_workers_of_their_own, 4, 0 },
	{ "an_unknown_target_has_no_lease", an_unknown_target_has_no_lease, 0, 0 },
	{ "workers_of_a_target_send_to_one_place", workers_of_a_target_send_to_one_place, 4, 0 },
	{ "a_place_that_is_not_known_is_no_other_place",
	  a_place_that_is_not_known_is_no_other_place, 4, 0 },
	{ "what_is_not_served_is_told", what_is_not_served_is_told, 1, 0 },
	{ NULL, NULL, 0, 0 },
};
