/* SPDX-License-Identifier: Apache-2.0 */
/* Order per key: rounds, parking, holding back, and nobody else being held back. */
#include "world.h"

#include <string.h>

static void delivers_in_log_order_without_keys(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_publish_many(w, 25, 0);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 "
						 "20 21 22 23 24 25");
	assert_int_equal(world_stats(w, "events").pending, 0);
	assert_int_equal(world_counts(w, 0).delivered, 25);
	world_assert(w, "events", 25, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

/* Checks that no publish() ever holds two messages of one key. */
static void one_of_a_key(void *context, const struct outbox_batch *batch)
{
	size_t *largest = context;

	if (batch->count > *largest)
		*largest = batch->count;
	for (size_t i = 0; i < batch->count; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(batch->items[i]->message->key,
						batch->items[j]->message->key);
}

static void rounds_hold_one_message_of_a_key(void **state)
{
	struct world *w = world_new(1);
	size_t largest = 0;
	struct memory_hooks hooks = { .context = &largest, .on_publish = one_of_a_key };

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish_many(w, 30, 3);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 30);
	assert_int_equal(largest, 3);
	world_assert_order(w, 0);
	world_free(w);
}

static void pipelined_sends_a_key_together(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct memory_counts counts;

	(void)state;
	target.order = OUTBOX_ORDER_PIPELINED;
	world_publish_many(w, 10, 1);
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_SECONDS);
	memory_broker_counts(w->brokers[0], &counts);
	assert_int_equal(counts.publishes, 1);
	world_free(w);
}

static void a_retry_holds_its_key_only(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .seq = 1, .fate = MEMORY_RETRY, .times = 1 };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 6, 2); /* k0: 1 3 5, k1: 2 4 6 */
	world_relay_plain(w, 0);
	world_settle(w);
	assert_string_equal(world_arrived(w, 0), "2 4 6");
	world_assert(w, "events", 1, OUTBOX_PENDING, OUTBOX_WAITING, 1);
	world_assert(w, "events", 3, OUTBOX_PENDING, OUTBOX_PARKED, 0);
	/* what is published later waits behind them too, and other keys do not */
	world_publish(w, "order.placed", "k0", NULL);
	world_publish(w, "order.placed", "k2", NULL);
	world_run(w, 300 * OUTBOX_MILLISECONDS);
	assert_string_equal(world_arrived(w, 0), "2 4 6 8");
	world_run(w, 2 * OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "2 4 6 8 1 3 5 7");
	assert_int_equal(world_stats(w, "events").parked, 0);
	world_assert(w, "events", 7, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void messages_without_a_key_are_never_parked(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .seq = 1, .fate = MEMORY_RETRY, .times = 1 };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 4, 0);
	world_relay_plain(w, 0);
	world_settle(w);
	assert_string_equal(world_arrived(w, 0), "2 3 4");
	world_run(w, 2 * OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "2 3 4 1");
	world_free(w);
}

static void release_goes_on_behind_a_failed_message(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .seq = 2, .fate = MEMORY_REJECT };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 1);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1 3");
	world_assert(w, "events", 2, OUTBOX_FAILED, 0, 1);
	world_free(w);
}

static void hold_waits_behind_a_failed_message(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct memory_rule rule = { .seq = 2, .fate = MEMORY_REJECT, .times = 1 };

	(void)state;
	target.hold = true;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 4, 1);
	world_publish(w, "order.placed", "other", NULL);
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_HOURS);
	assert_string_equal(world_arrived(w, 0), "1 5");
	world_assert(w, "events", 3, OUTBOX_PENDING, OUTBOX_PARKED, 0);
	/* requeued, it goes first and the others follow in order */
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "events", 2, 0), 1);
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1 5 2 3 4");
	world_free(w);
}

static void discarding_frees_a_held_key(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct memory_rule rule = { .seq = 1, .fate = MEMORY_REJECT };

	(void)state;
	target.hold = true;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 1);
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_MINUTES);
	assert_string_equal(world_arrived(w, 0), "");
	assert_int_equal(world_act(w, OUTBOX_DISCARD, "events", 1, 0), 1);
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "2 3");
	world_free(w);
}

static void order_none_parks_nobody(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct memory_rule rule = { .seq = 1, .fate = MEMORY_RETRY, .times = 1 };

	(void)state;
	target.order = OUTBOX_ORDER_NONE;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 1);
	world_relay(w, 0, &config);
	world_settle(w);
	assert_string_equal(world_arrived(w, 0), "2 3");
	world_free(w);
}

static void a_long_parked_run_is_released_in_batches_in_order(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .seq = 1, .fate = MEMORY_RETRY, .times = 2 };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 35, 1);
	world_relay_plain(w, 0);
	world_settle(w);
	world_publish_many(w, 5, 1);
	world_run(w, 10 * OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 40);
	world_assert_order(w, 0);
	assert_int_equal(world_stats(w, "events").pending, 0);
	assert_int_equal(world_stats(w, "events").parked, 0);
	world_free(w);
}

/* A key of nothing but bad messages costs others nothing: they fail together, not one a claim. */
static void a_key_full_of_bad_messages_stops_nobody(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .key = "bad", .fate = MEMORY_REJECT };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	for (int i = 0; i < 50; i++)
		world_publish(w, "order.placed", "bad", NULL);
	world_publish(w, "order.placed", "good", NULL);
	world_relay_plain(w, 0);
	world_settle(w);
	assert_string_equal(world_arrived(w, 0), "51");
	assert_int_equal(world_stats(w, "events").failed, 50);
	assert_in_range(world_stats(w, "events").lanes[0].receipts, 6, 10);
	world_free(w);
}

static void lanes_keep_a_key_together(void **state)
{
	struct world *w = world_new(4);

	(void)state;
	world_publish_many(w, 60, 13);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 60);
	world_assert_order(w, 0);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delivers_in_log_order_without_keys),
		cmocka_unit_test(rounds_hold_one_message_of_a_key),
		cmocka_unit_test(pipelined_sends_a_key_together),
		cmocka_unit_test(a_retry_holds_its_key_only),
		cmocka_unit_test(messages_without_a_key_are_never_parked),
		cmocka_unit_test(release_goes_on_behind_a_failed_message),
		cmocka_unit_test(hold_waits_behind_a_failed_message),
		cmocka_unit_test(discarding_frees_a_held_key),
		cmocka_unit_test(order_none_parks_nobody),
		cmocka_unit_test(a_long_parked_run_is_released_in_batches_in_order),
		cmocka_unit_test(a_key_full_of_bad_messages_stops_nobody),
		cmocka_unit_test(lanes_keep_a_key_together),
	};

	return WORLD_MAIN(argc, argv, "order", tests);
}
