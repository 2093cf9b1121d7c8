/* SPDX-License-Identifier: Apache-2.0 */
/* Rate limits, and brokers that say when they may be asked again. */
#include "world.h"

#include "core/key_hash.h"

#include <string.h>

#define S OUTBOX_SECONDS

static struct outbox_relay_config limited(struct world *w, struct outbox_target_config *target)
{
	struct outbox_relay_config config = world_config(w, target);

	target->rate_count = 5;
	target->rate_period = S;
	target->rate_burst = 10;
	return config;
}

static void no_more_is_sent_than_the_rate_allows(void **state)
{
	struct world *w = world_new(4);
	struct outbox_target_config target;
	struct outbox_relay_config config = limited(w, &target);

	(void)state;
	config.workers = 2;
	world_publish_many(w, 300, 30);
	world_relay(w, 0, &config);
	world_settle(w);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	world_run(w, 10 * S);
	/* the last one is due in the moment in which we look */
	assert_in_range(memory_broker_count(w->brokers[0]), 59, 60);
	world_run(w, 20 * S);
	assert_in_range(memory_broker_count(w->brokers[0]), 159, 160);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 300);
	assert_int_equal(world_counts(w, 0).takeovers, 0);
	world_assert_order(w, 0);
	/* after a long pause a burst, and no more */
	world_run(w, 10 * OUTBOX_MINUTES);
	world_publish_many(w, 100, 30);
	world_run(w, 250 * OUTBOX_MILLISECONDS);
	assert_in_range(memory_broker_count(w->brokers[0]), 310, 311);
	world_free(w);
}

/* Each batch costs a claim and a settlement: one for each permit would keep the database busy with nothing. */
static void a_rate_makes_batches_of_a_tenth_of_a_second(void **state)
{
	struct world *w = world_new(4);
	struct outbox_target_config target;
	struct outbox_relay_config config = limited(w, &target);

	(void)state;
	target.rate_count = 500;
	target.rate_burst = 0;
	config.batch_messages = 500;
	world_publish_many(w, 3000, 0);
	world_relay(w, 0, &config);
	world_run(w, 6 * S);
	assert_int_equal(memory_broker_count(w->brokers[0]), 3000);
	assert_in_range(world_counts(w, 0).batches, 6, 3000 / 50 + 10);
	world_free(w);
}

/* Lanes that are asked for in one call take turns, too. */
static void every_lane_gets_its_share(void **state)
{
	struct world *w = world_new(4);
	struct outbox_target_config target;
	struct outbox_relay_config config = limited(w, &target);
	int lanes[4] = { 0 };

	(void)state;
	world_publish_many(w, 2000, 100);
	world_relay(w, 0, &config);
	world_run(w, 30 * S);
	for (size_t i = 0; i < memory_broker_count(w->brokers[0]); i++)
		lanes[key_hash(memory_broker_at(w->brokers[0], i)->key) % 4]++;
	for (int i = 0; i < 4; i++)
		assert_true(lanes[i] > 20); /* of some 160 */
	world_free(w);
}

static void nothing_waits_in_a_claim(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = limited(w, &target);

	(void)state;
	target.rate_count = 1;
	target.rate_period = OUTBOX_MINUTES;
	target.rate_burst = 3;
	world_publish_many(w, 20, 5);
	world_relay(w, 0, &config);
	world_run(w, 30 * S);
	assert_int_equal(memory_broker_count(w->brokers[0]), 3);
	assert_int_equal(world_stats(w, "events").sending, 0);
	assert_int_equal(world_stats(w, "events").pending, 17);
	world_run(w, 17 * OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 20);
	assert_int_equal(world_counts(w, 0).takeovers, 0);
	world_free(w);
}

/* Retries are sent, too. */
static void a_retry_costs_a_permit(void **state)
{
	struct memory_rule rule = { .fate = MEMORY_RETRY, .times = 10 };
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = limited(w, &target);
	struct memory_counts counts;

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 20, 0);
	world_relay(w, 0, &config);
	world_run(w, 2 * S);
	memory_broker_counts(w->brokers[0], &counts);
	assert_in_range(counts.offered, 19, 20);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 20);
	world_free(w);
}

static void a_message_comes_again_when_the_broker_wants_it(void **state)
{
	struct memory_rule rule = { .seq = 2, .fate = MEMORY_RETRY, .times = 1, .wait = 200 * S };
	struct world *w = world_new(1);

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 0);
	world_relay_plain(w, 0);
	world_run(w, 199 * S);
	world_assert(w, "events", 2, OUTBOX_PENDING, OUTBOX_WAITING, 1);
	world_assert(w, "events", 3, OUTBOX_DELIVERED, 0, 0);
	world_run(w, 2 * S);
	world_assert(w, "events", 2, OUTBOX_DELIVERED, 0, 1);
	world_free(w);
}

static void a_broker_is_left_alone_as_long_as_it_wants(void **state)
{
	struct memory_rule rule = { .fate = MEMORY_DROP,
				    .times = 1,
				    .status = OUTBOX_EFULL,
				    .reason = "429 slow down",
				    .wait = 600 * S };
	struct world *w = world_new(1);
	struct memory_counts counts;

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 0);
	world_relay_plain(w, 0);
	world_run(w, 599 * S);
	memory_broker_counts(w->brokers[0], &counts);
	assert_int_equal(counts.publishes, 1);
	assert_int_equal(counts.connects, 1);
	for (int64_t seq = 1; seq <= 3; seq++)
		world_assert(w, "events", seq, OUTBOX_PENDING, OUTBOX_NEW, 0);
	assert_string_equal(world_stats(w, "events").outage, "429 slow down");
	world_run(w, 2 * S);
	assert_int_equal(memory_broker_count(w->brokers[0]), 3);
	for (int64_t seq = 1; seq <= 3; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

/* Whoever says "in a year" does not stop a target for a year. */
static void a_broker_cannot_ask_for_more_than_an_hour(void **state)
{
	struct memory_rule rule = { .fate = MEMORY_DROP, .times = 1, .wait = 365 * OUTBOX_DAYS };
	struct world *w = world_new(1);

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 0);
	world_relay_plain(w, 0);
	world_run(w, 59 * OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 0);
	world_run(w, 3 * OUTBOX_HOURS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 3);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_more_is_sent_than_the_rate_allows),
		cmocka_unit_test(every_lane_gets_its_share),
		cmocka_unit_test(nothing_waits_in_a_claim),
		cmocka_unit_test(a_retry_costs_a_permit),
		cmocka_unit_test(a_message_comes_again_when_the_broker_wants_it),
		cmocka_unit_test(a_broker_is_left_alone_as_long_as_it_wants),
		cmocka_unit_test(a_broker_cannot_ask_for_more_than_an_hour),
	};
	/* of the engine alone, and long */
	const struct CMUnitTest memory_tests[] = {
		cmocka_unit_test(a_rate_makes_batches_of_a_tenth_of_a_second),
	};
	int failed = WORLD_MAIN(argc, argv, "rate", tests);

	if (world_kind == WORLD_MEMORY)
		failed += WORLD_MAIN(argc, argv, "rate-engine", memory_tests);
	return failed;
}
