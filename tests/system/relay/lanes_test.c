/* SPDX-License-Identifier: Apache-2.0 */
/* Several lanes in one worker: they send together, and yet a culprit among them is found. */
#include "world.h"

#include <string.h>

#define KEYS 50

static size_t publishes(struct world *w)
{
	struct memory_counts counts;

	memory_broker_counts(w->brokers[0], &counts);
	return counts.publishes;
}

/* How many calls of the broker 1,000 messages of 50 keys take. */
static size_t calls_with(int lanes)
{
	struct world *w = world_new(lanes);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	size_t calls;

	config.batch_messages = 500;
	world_publish_many(w, 1000, KEYS);
	world_relay(w, 0, &config);
	world_run(w, 10 * OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 1000);
	world_assert_order(w, 0);
	calls = publishes(w);
	world_free(w);
	return calls;
}

/* A broker's answer takes as long for 12 messages as for 50, so calls are what counts. */
static void more_lanes_make_no_more_calls(void **state)
{
	size_t one = calls_with(1);

	(void)state;
	assert_in_range(one, 1000 / KEYS, 1000 / KEYS + 1);
	for (int lanes = 2; lanes <= 8; lanes *= 2) /* keys are not shared out evenly */
		assert_in_range(calls_with(lanes), 1, one + one / 2);
}

/* A call is no larger than a batch: what a broker must take at once does not grow with the lanes. */
static size_t largest;

static void note_size(void *context, const struct outbox_batch *batch)
{
	(void)context;
	largest = batch->count > largest ? batch->count : largest;
}

static void a_shared_call_is_no_larger_than_a_batch(void **state)
{
	const struct memory_hooks hooks = { .on_publish = note_size };
	struct world *w = world_new(8);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	largest = 0;
	memory_broker_hooks(w->brokers[0], &hooks);
	config.batch_messages = 30;
	world_publish_many(w, 400, 400);
	world_relay(w, 0, &config);
	world_run(w, 10 * OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 400);
	assert_in_range(largest, 10, 30);
	world_free(w);
}

/* Each refusal stays with its message, whichever lane's call it came in. */
static void each_lane_keeps_what_was_said(void **state)
{
	struct memory_rule rules[] = {
		{ .seq = 7, .fate = MEMORY_REJECT, .reason = "seven" },
		{ .seq = 12, .fate = MEMORY_RETRY, .times = 1, .reason = "twelve" },
		/* said in the next call, before anything is settled */
		{ .seq = 28, .fate = MEMORY_REJECT, .reason = "twenty-eight, which takes some room" },
	};
	struct world *w = world_new(4);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	config.batch_messages = 500;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		assert_int_equal(memory_broker_rule(w->brokers[0], &rules[i], NULL), OUTBOX_OK);
	world_publish_many(w, 40, 20);
	world_relay(w, 0, &config);
	world_settle(w);
	world_assert(w, "events", 7, OUTBOX_FAILED, 0, 1);
	assert_string_equal(world_delivery(w, "events", 7).error, "seven");
	world_assert(w, "events", 12, OUTBOX_PENDING, OUTBOX_WAITING, 1);
	assert_string_equal(world_delivery(w, "events", 12).error, "twelve");
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 38);
	world_assert_order(w, 0);
	world_free(w);
}

/* It breaks the connection whenever it is sent: it is charged, nobody else is, and all others arrive. */
static void a_culprit_among_busy_lanes_is_found(void **state)
{
	struct memory_rule rule = { .seq = 9, .fate = MEMORY_DROP };
	struct outbox_policy policy = *outbox_policy_find("default");
	struct world *w = world_new(4);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	policy.max_attempts = 3;
	target.policy = &policy;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_relay(w, 0, &config);
	for (int i = 0; i < 300; i++) {
		world_publish_many(w, 4, 4);
		world_run(w, 200 * OUTBOX_MILLISECONDS);
	}
	world_run(w, OUTBOX_HOURS);
	world_assert(w, "events", 9, OUTBOX_FAILED, 0, 3);
	assert_int_equal(memory_broker_count(w->brokers[0]), 1199);
	assert_int_equal(world_counts(w, 0).failed, 1);
	world_assert_order(w, 0);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_lane_keeps_what_was_said),
	};
	/* of the engine alone, and long */
	const struct CMUnitTest memory_tests[] = {
		cmocka_unit_test(more_lanes_make_no_more_calls),
		cmocka_unit_test(a_shared_call_is_no_larger_than_a_batch),
		cmocka_unit_test(a_culprit_among_busy_lanes_is_found),
	};
	int failed = WORLD_MAIN(argc, argv, "lanes", tests);

	if (world_kind == WORLD_MEMORY)
		failed += WORLD_MAIN(argc, argv, "lanes-engine", memory_tests);
	return failed;
}
