/* SPDX-License-Identifier: Apache-2.0 */
/* An outage costs time, never attempts; and messages that break the connection are found. */
#include "world.h"

#include <stdio.h>
#include <string.h>

static void an_outage_charges_nothing(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	memory_broker_down(w->brokers[0], OUTBOX_ECONN);
	world_publish_many(w, 20, 3);
	world_relay_plain(w, 0);
	world_run(w, 2 * OUTBOX_HOURS);
	for (int64_t seq = 1; seq <= 20; seq++)
		world_assert(w, "events", seq, OUTBOX_PENDING, OUTBOX_NEW, 0);
	assert_int_equal(world_counts(w, 0).outages, 1);
	assert_non_null(strstr(w->log, "breaker open"));
	/* everybody can see it, not only who reads the relay's log */
	assert_non_null(world_stats(w, "events").outage);
	assert_int_equal(world_stats(w, "events").outage_since,
			 w->clock.base.wall(&w->clock.base) - 2 * OUTBOX_HOURS);
	memory_broker_up(w->brokers[0]);
	world_run(w, OUTBOX_MINUTES);
	assert_null(world_stats(w, "events").outage);
	assert_int_equal(memory_broker_count(w->brokers[0]), 20);
	world_assert_order(w, 0);
	assert_non_null(strstr(w->log, "breaker closed"));
	world_free(w);
}

static void waits_grow_to_their_limit_during_an_outage(void **state)
{
	struct world *w = world_new(1);
	struct memory_counts counts;

	(void)state;
	memory_broker_down(w->brokers[0], OUTBOX_ECONN);
	world_publish_many(w, 1, 0);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_HOURS);
	memory_broker_counts(w->brokers[0], &counts);
	/* 0.5 s doubling to 30 s: six tries, then between 120 and 160 an hour */
	assert_in_range(counts.refused, 120, 175);
	world_free(w);
}

static void an_outage_in_a_batch_keeps_what_was_acknowledged(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	memory_broker_lose(w->brokers[0], 4, false);
	world_publish_many(w, 10, 0);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	for (int64_t seq = 1; seq <= 10; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void lost_acknowledgements_become_duplicates_with_the_same_id(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	memory_broker_lose(w->brokers[0], 4, true);
	world_publish_many(w, 10, 10);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	assert_true(memory_broker_count(w->brokers[0]) > 10);
	assert_true(memory_broker_count(w->brokers[0]) <= 20);
	assert_true(world_counts(w, 0).unknown > 0);
	world_assert_order(w, 0);
	for (int64_t seq = 1; seq <= 10; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void repeats_that_the_broker_recognises_are_counted(void **state)
{
	struct memory_rule rule = { .fate = MEMORY_ACK_ONCE };
	struct world *w = world_new(1);

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	memory_broker_lose(w->brokers[0], 4, true);
	world_publish_many(w, 10, 0);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	assert_int_equal(world_counts(w, 0).delivered, 10);
	assert_int_equal(world_counts(w, 0).duplicates, 4);
	world_free(w);
}

static void one_dead_target_does_not_stop_another(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	world_publish_many(w, 20, 3);
	world_relay(w, 0, &config);
	target.name = "partner";
	target.start = OUTBOX_START_OLDEST;
	config.registry = w->registries[1];
	world_relay(w, 1, &config);
	memory_broker_down(w->brokers[1], OUTBOX_ECONN);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 20);
	assert_int_equal(world_stats(w, "partner").pending, 20);
	world_free(w);
}

/* One message makes the broker drop the connection each time it is sent. */
static void a_message_that_breaks_the_connection_fails_in_the_end(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .seq = 7, .fate = MEMORY_DROP };
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	config.batch_messages = 20;
	world_publish_many(w, 40, 5);
	world_relay(w, 0, &config);
	/* others must get through soon, whatever it does */
	world_run(w, 5 * OUTBOX_MINUTES);
	for (int i = 0; i < 200 && world_delivery(w, "events", 7).state != OUTBOX_FAILED; i++) {
		world_publish(w, "order.placed", "other", NULL);
		world_run(w, 30 * OUTBOX_SECONDS);
	}
	world_assert(w, "events", 7, OUTBOX_FAILED, 0, 10);
	assert_int_equal(world_stats(w, "events").pending, 0);
	assert_int_equal(world_stats(w, "events").parked, 0);
	for (int64_t seq = 1; seq <= 40; seq++)
		if (seq != 7)
			world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_assert_order(w, 0);
	world_free(w);
}

struct culprit {
	struct memory_broker *broker;
	int64_t seq;
	int with_others;
};

/* A broker that confirms at the end: the culprit takes the answers of its whole batch with it. */
static void lose_its_batch(void *context, const struct outbox_batch *batch)
{
	struct culprit *c = context;

	for (size_t i = 0; i < batch->count; i++) {
		if (batch->items[i]->seq != c->seq)
			continue;
		c->with_others += batch->count > 1;
		memory_broker_lose(c->broker, 0, true);
	}
}

/* Halving finds the culprit in a few steps, so few others are sent twice on the way. */
static void the_batch_shrinks_around_the_culprit(void **state)
{
	struct world *w = world_new(1);
	struct culprit culprit = { .broker = w->brokers[0], .seq = 120 };
	struct memory_hooks hooks = { .context = &culprit, .on_publish = lose_its_batch };
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	config.batch_messages = 128;
	world_publish_many(w, 128, 0);
	world_relay(w, 0, &config);
	world_run(w, 10 * OUTBOX_MINUTES);
	assert_in_range(culprit.with_others, 1, 6);
	assert_int_equal(world_stats(w, "events").pending, 0);
	world_free(w);
}

static void a_flapping_broker_charges_nobody(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .fate = MEMORY_DROP, .times = 40 };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 10, 3);
	world_relay_plain(w, 0);
	world_run(w, 2 * OUTBOX_HOURS);
	for (int64_t seq = 1; seq <= 10; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	assert_int_equal(world_counts(w, 0).failed, 0);
	world_assert_order(w, 0);
	world_free(w);
}

static void a_full_broker_is_an_outage(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .fate = MEMORY_DROP, .times = 30, .status = OUTBOX_EFULL };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 5, 2);
	world_relay_plain(w, 0);
	world_run(w, 5 * OUTBOX_MINUTES);
	/* nothing was accepted, so nothing is unknown, charged or set aside */
	assert_int_equal(world_counts(w, 0).unknown, 0);
	assert_int_equal(world_stats(w, "events").waiting, 0);
	world_run(w, OUTBOX_HOURS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 5);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_outage_charges_nothing),
		cmocka_unit_test(waits_grow_to_their_limit_during_an_outage),
		cmocka_unit_test(an_outage_in_a_batch_keeps_what_was_acknowledged),
		cmocka_unit_test(lost_acknowledgements_become_duplicates_with_the_same_id),
		cmocka_unit_test(repeats_that_the_broker_recognises_are_counted),
		cmocka_unit_test(one_dead_target_does_not_stop_another),
		cmocka_unit_test(a_message_that_breaks_the_connection_fails_in_the_end),
		cmocka_unit_test(the_batch_shrinks_around_the_culprit),
		cmocka_unit_test(a_flapping_broker_charges_nobody),
		cmocka_unit_test(a_full_broker_is_an_outage),
	};

	return WORLD_MAIN(argc, argv, "outage", tests);
}
