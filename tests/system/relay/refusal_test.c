/* SPDX-License-Identifier: Apache-2.0 */
/* A lane whose position the store refuses waits for its repair; the worker's other lanes go on. */
#include "store/store.h"
#include "world.h"

#include <string.h>

#define REFUSED 1

static const struct outbox_store_ops *real;

static int refuse(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_EPROTO, "lane %d stands ahead of the log", REFUSED);
}

static int picky_take(struct outbox_store *store, const char *target, int lane, const char *owner,
		      int64_t new_token, struct outbox_head *ret_head, struct outbox_error *err)
{
	return lane == REFUSED
		       ? refuse(err)
		       : real->lane.take_over(store, target, lane, owner, new_token, ret_head, err);
}

static int picky_advance(struct outbox_store *store, const struct outbox_settle_and_claim *request,
			 struct outbox_arena *arena, struct outbox_claim *ret_claim,
			 struct outbox_error *err)
{
	return request->lane == REFUSED
		       ? refuse(err)
		       : real->lane.settle_and_claim(store, request, arena, ret_claim, err);
}

/* As a transaction fails: as a whole, and the others learn nothing. */
static int picky_advance_lanes(struct outbox_store *store,
			       const struct outbox_settle_and_claim *requests, size_t count,
			       struct outbox_arena *const *arenas, struct outbox_claim *ret_claims,
			       struct outbox_error *err)
{
	for (size_t i = 0; i < count; i++)
		if (requests[i].lane == REFUSED)
			return refuse(err);
	return real->lane.settle_and_claim_lanes(store, requests, count, arenas, ret_claims, err);
}

/* Relay 0 works, and from now on its store refuses the lane. */
static struct world *world_refusing(struct outbox_store_ops *picky)
{
	struct world *w = world_new(2);

	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	real = world_worker(w, 0)->link.store->ops;
	*picky = *real;
	picky->lane.take_over = picky_take;
	picky->lane.settle_and_claim = picky_advance;
	if (real->lane.settle_and_claim_lanes)
		picky->lane.settle_and_claim_lanes = picky_advance_lanes;
	world_worker(w, 0)->link.store->ops = picky;
	return w;
}

static int lines_with(const char *log, const char *words)
{
	int n = 0;

	for (const char *at = log; (at = strstr(at, words)); at++)
		n++;
	return n;
}

static void a_refused_lane_is_told_once_and_others_go_on(void **state)
{
	struct outbox_store_ops picky;
	struct world *w = world_refusing(&picky);
	size_t arrived;

	(void)state;
	for (int i = 0; i < 10; i++) {
		world_publish_many(w, 20, 20);
		world_run(w, OUTBOX_MINUTES);
	}
	arrived = memory_broker_count(w->brokers[0]);
	assert_true(arrived > 50);
	assert_int_equal(world_stats(w, "events").pending, 200 - arrived);
	assert_int_equal(lines_with(w->log, "nothing is sent from this lane"), 1);
	assert_int_equal(lines_with(w->log, "again"), 0);
	/* and the connection was kept */
	assert_ptr_equal(world_worker(w, 0)->link.store->ops, &picky);
	world_worker(w, 0)->link.store->ops = real;
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 200);
	assert_int_equal(lines_with(w->log, "all its lanes run again"), 1);
	world_free(w);
}

static void a_refused_lane_is_given_back_at_a_shutdown(void **state)
{
	struct outbox_store_ops picky;
	struct world *w = world_refusing(&picky);
	outbox_time began;

	(void)state;
	world_publish_many(w, 20, 20);
	world_run(w, OUTBOX_MINUTES);
	began = w->clock.base.mono(&w->clock.base);
	world_drain(w, 0, OUTBOX_HOURS);
	assert_true(worker_is_gone(world_worker(w, 0)));
	assert_int_equal(w->clock.base.mono(&w->clock.base), began);
	assert_int_equal(world_worker(w, 0)->lanes.count, 0);
	world_worker(w, 0)->link.store->ops = real;
	world_free(w);
}

/* --once: everything of the other lanes, then why it is not all. */
static void once_ends_with_the_refusal(void **state)
{
	struct outbox_store_ops picky;
	struct world *w = world_refusing(&picky);

	(void)state;
	world_publish_many(w, 100, 20);
	world_worker(w, 0)->link.once = true;
	world_worker(w, 0)->lanes.list[0]->ran_dry = false;
	world_run(w, OUTBOX_MINUTES);
	assert_true(worker_is_gone(world_worker(w, 0)));
	assert_int_equal(world_worker(w, 0)->gave_up.status, OUTBOX_EPROTO);
	assert_int_equal(world_stats(w, "events").pending, 100 - memory_broker_count(w->brokers[0]));
	assert_true(memory_broker_count(w->brokers[0]) > 20);
	world_worker(w, 0)->link.store->ops = real;
	world_free(w);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_lane_is_told_once_and_others_go_on),
		cmocka_unit_test(a_refused_lane_is_given_back_at_a_shutdown),
		cmocka_unit_test(once_ends_with_the_refusal),
	};

	return WORLD_MAIN(argc, argv, "relay_refusal", tests);
}
