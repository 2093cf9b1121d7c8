/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that wait are looked at together, and those that have something to settle or to claim ask together. */
#include "store/store.h"
#include "world.h"

#include <string.h>

#define LANES 4

static const struct outbox_store_ops *real;

/* What the worker asked its store for, and what it is to be told. */
static struct {
	int looks, lanes_looked, claims, joined;
	int64_t failed[LANES]; /* tokens of the lanes of a joined call that failed */
	int n_failed;
	int alone;                        /* calls of one lane with such a token */
	int joined_after;                 /* joined calls since then */
	int settled_together;             /* lanes of a joined call that had something in flight */
	int failing_looks, failing_joins; /* so many fail from now on */
	int status;                       /* how */
} seen;

static int counted_look(struct outbox_store *store, const struct outbox_look *look,
			struct outbox_looked *ret_looked, struct outbox_error *err)
{
	seen.looks++;
	seen.lanes_looked += (int)look->count;
	if (seen.failing_looks > 0) {
		seen.failing_looks--;
		return outbox_fail(err, seen.status, "the store does not look");
	}
	return real->lane.look(store, look, ret_looked, err);
}

static int counted_claim(struct outbox_store *store, const struct outbox_settle_and_claim *request,
			 struct outbox_arena *arena, struct outbox_claim *ret_claim,
			 struct outbox_error *err)
{
	seen.claims++;
	seen.alone += request->new_token == seen.failed[request->lane];
	return real->lane.settle_and_claim(store, request, arena, ret_claim, err);
}

/* A store that joins lanes, whether the real one does or not: as a transaction, it fails as a whole. */
static int counted_claims(struct outbox_store *store, const struct outbox_settle_and_claim *requests,
			  size_t count, struct outbox_arena *const *arenas,
			  struct outbox_claim *ret_claims, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	seen.claims++;
	seen.joined++;
	seen.joined_after += seen.alone > 0;
	if (seen.failing_joins > 0) {
		seen.failing_joins--;
		for (size_t i = 0; i < count; i++)
			seen.failed[requests[i].lane] = requests[i].new_token;
		seen.n_failed = (int)count;
		return outbox_fail(err, seen.status, "not together");
	}
	for (size_t i = 0; i < count; i++)
		seen.settled_together += requests[i].n_settled > 0;
	for (size_t i = 1; i < count; i++)
		assert_true(requests[i - 1].lane < requests[i].lane);
	if (real->lane.settle_and_claim_lanes)
		return real->lane.settle_and_claim_lanes(store, requests, count, arenas, ret_claims,
							 err);
	for (size_t i = 0; i < count && !r; i++)
		r = real->lane.settle_and_claim(store, &requests[i], arenas[i], &ret_claims[i], err);
	return r;
}

static struct outbox_store_ops counted;

static void count_calls(struct world *w)
{
	world_worker(w, 0)->link.store->ops = &counted;
	memset(&seen, 0, sizeof(seen));
}

/* Relay 0 has all lanes and nothing to do. NULL: this store does not look. */
static struct world *world_idle(void)
{
	struct world *w = world_new(LANES);

	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	real = world_worker(w, 0)->link.store->ops;
	if (!real->lane.look) {
		print_message("this store has no look\n");
		world_free(w);
		return NULL;
	}
	counted = *real;
	counted.lane.look = counted_look;
	counted.lane.settle_and_claim = counted_claim;
	counted.lane.settle_and_claim_lanes = counted_claims;
	count_calls(w);
	return w;
}

/* Every store call goes to the store again. */
static void end(struct world *w)
{
	if (world_worker(w, 0)->link.store)
		world_worker(w, 0)->link.store->ops = real;
	world_free(w);
}

static void idle_lanes_are_looked_at_in_one_call(void **state)
{
	struct world *w = world_idle();

	(void)state;
	if (!w)
		return;
	world_run(w, 10 * OUTBOX_SECONDS);
	assert_true(seen.looks > 10);
	assert_int_equal(seen.lanes_looked, LANES * seen.looks);
	assert_int_equal(seen.claims, 0);
	end(w);
}

static void looks_get_rarer_until_something_comes(void **state)
{
	struct world *w = world_idle();
	int early, late, after;

	(void)state;
	if (!w)
		return;
	world_publish(w, "order.placed", "x", NULL);
	world_run(w, 20 * OUTBOX_MILLISECONDS + w->poll_max[0]);
	assert_int_equal(memory_broker_count(w->brokers[0]), 1);
	seen.looks = 0;
	world_run(w, OUTBOX_SECONDS);
	early = seen.looks;
	world_run(w, 10 * OUTBOX_SECONDS);
	seen.looks = 0;
	world_run(w, OUTBOX_SECONDS);
	late = seen.looks;
	assert_in_range(late, 1, 6); /* 250 ms */
	assert_true(early > 2 * late);
	world_publish(w, "order.placed", "x", NULL);
	world_run(w, w->poll_max[0]);
	assert_int_equal(memory_broker_count(w->brokers[0]), 2);
	seen.looks = 0;
	world_run(w, OUTBOX_SECONDS);
	after = seen.looks;
	assert_true(after > 2 * late);
	end(w);
}

static int lines_with(const char *log, const char *words)
{
	int n = 0;

	for (const char *at = log; (at = strstr(at, words)); at++)
		n++;
	return n;
}

static void a_failing_look_is_an_outage(void **state)
{
	static const int statuses[] = { OUTBOX_EFULL, OUTBOX_ECONN };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct world *w = world_idle();

		if (!w)
			return;
		seen.status = statuses[i];
		seen.failing_looks = 1000000;
		world_publish(w, "order.placed", "x", NULL);
		world_run(w, 5 * OUTBOX_SECONDS);
		assert_int_equal(lines_with(w->log, "the store does not look"), 1);
		if (statuses[i] == OUTBOX_EFULL) { /* the connection was kept, so is the fault */
			assert_ptr_equal(world_worker(w, 0)->link.store->ops, &counted);
			world_run(w, OUTBOX_MINUTES);
			assert_int_equal(memory_broker_count(w->brokers[0]), 0);
			assert_in_range(seen.looks, 5, 60); /* with pauses */
			assert_int_equal(lines_with(w->log, "the store does not look"), 1);
			assert_int_equal(lines_with(w->log, "store answers again"), 0);
			seen.failing_looks = 0;
		}
		world_run(w, OUTBOX_MINUTES);
		assert_int_equal(memory_broker_count(w->brokers[0]), 1);
		assert_int_equal(lines_with(w->log, "the store does not look"), 1);
		assert_int_equal(lines_with(w->log, "store answers again"), 1);
		end(w);
	}
}

/* Some for every lane, so that several ask at once. */
static void publish_for_all(struct world *w)
{
	world_publish_many(w, 8, 20);
	world_run(w, w->poll_max[0] + OUTBOX_SECONDS);
}

/* What went out in one call of the broker is settled in one call of the store. */
static void lanes_that_sent_together_settle_together(void **state)
{
	struct world *w = world_idle();

	(void)state;
	if (!w)
		return;
	publish_for_all(w);
	assert_int_equal(memory_broker_count(w->brokers[0]), 8);
	assert_true(seen.settled_together > 1);
	assert_int_equal(seen.claims, 2);
	end(w);
}

static void lanes_that_failed_together_ask_alone_and_join_again(void **state)
{
	struct world *w = world_idle();

	(void)state;
	if (!w)
		return;
	publish_for_all(w);
	assert_int_equal(memory_broker_count(w->brokers[0]), 8);
	assert_true(seen.joined > 0);
	seen.status = OUTBOX_EBUSY;
	seen.failing_joins = 1;
	publish_for_all(w);
	assert_int_equal(memory_broker_count(w->brokers[0]), 16);
	assert_true(seen.n_failed > 1);
	assert_int_equal(seen.alone, seen.n_failed); /* each once, with the same token */
	publish_for_all(w);
	assert_true(seen.joined_after > 0);
	assert_int_equal(seen.alone, seen.n_failed);
	assert_int_equal(lines_with(w->log, "not together"), 0);
	world_assert_order(w, 0);
	end(w);
}

/* A retry that is due and cannot be claimed makes nobody ask all the time. */
static void a_paused_target_is_not_asked_all_the_time(void **state)
{
	struct world *w = world_idle();
	struct memory_rule rule = { .fate = MEMORY_RETRY };
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	if (!w)
		return;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish(w, "order.placed", "x", NULL);
	world_run(w, OUTBOX_SECONDS / 2);
	assert_true(world_delivery(w, "events", 1).attempts > 0);
	assert_int_equal(store_target_pause(w->store, "events", true, "anna", "why", &err),
			 OUTBOX_OK);
	count_calls(w);
	world_run(w, OUTBOX_MINUTES);
	assert_in_range(seen.looks + seen.claims, 1, 4 * 240 + 50);
	end(w);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle_lanes_are_looked_at_in_one_call),
		cmocka_unit_test(looks_get_rarer_until_something_comes),
		cmocka_unit_test(a_failing_look_is_an_outage),
		cmocka_unit_test(lanes_that_sent_together_settle_together),
		cmocka_unit_test(lanes_that_failed_together_ask_alone_and_join_again),
		cmocka_unit_test(a_paused_target_is_not_asked_all_the_time),
	};

	return WORLD_MAIN(argc, argv, "relay_look", tests);
}
