/* SPDX-License-Identifier: Apache-2.0 */
/* Several relays: fair shares, joining, leaving, shutting down, once. */
#include "store/store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define LEASE (15 * OUTBOX_SECONDS)

static void assert_lanes(struct world *w, const char *expected)
{
	char text[64] = "";

	for (int i = 0; i < WORLD_RELAYS; i++)
		if (w->relays[i])
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c%zu",
				 *text ? " " : "", 'a' + i, world_worker(w, i)->lanes.count);
	assert_string_equal(text, expected);
}

static void relays_share_the_lanes(void **state)
{
	struct world *w = world_new(4);

	(void)state;
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	assert_lanes(w, "a4");
	world_relay_plain(w, 1);
	world_run(w, LEASE);
	assert_lanes(w, "a2 b2");
	world_relay_plain(w, 2);
	world_run(w, LEASE);
	assert_lanes(w, "a2 b1 c1");
	world_publish_many(w, 60, 13);
	world_run(w, LEASE);
	assert_int_equal(memory_broker_count(w->brokers[0]), 60);
	world_assert_order(w, 0);
	world_free(w);
}

static void a_relay_that_leaves_frees_its_lanes_at_once(void **state)
{
	struct world *w = world_new(4);

	(void)state;
	world_relay_plain(w, 0);
	world_relay_plain(w, 1);
	world_run(w, LEASE);
	assert_lanes(w, "a2 b2");
	world_drain(w, 0, 30 * OUTBOX_SECONDS);
	world_kill(w, 0);
	world_run(w, LEASE / 3 + OUTBOX_SECONDS);
	assert_lanes(w, "b4");
	world_free(w);
}

static void a_dead_relays_lanes_are_shared_after_the_lease(void **state)
{
	struct world *w = world_new(4);

	(void)state;
	world_relay_plain(w, 0);
	world_relay_plain(w, 1);
	world_run(w, LEASE);
	world_kill(w, 0);
	world_run(w, LEASE / 2);
	assert_lanes(w, "b2");
	world_run(w, LEASE);
	assert_lanes(w, "b4");
	world_free(w);
}

/* Shutting down with a batch in flight: it is finished and settled, and nothing is sent twice. */
static void a_drained_shutdown_causes_no_duplicate(void **state)
{
	(void)state;
	for (int steps = 1; steps < 40; steps++) {
		struct world *w = world_new(2);

		world_publish_many(w, 40, 3);
		world_relay_plain(w, 0);
		for (int i = 0; i < steps; i++)
			worker_step(world_worker(w, 0));
		world_drain(w, 0, 30 * OUTBOX_SECONDS);
		assert_int_equal(world_worker(w, 0)->lanes.count, 0);
		world_kill(w, 0);
		assert_int_equal(world_stats(w, "events").sending, 0);
		/* no waiting for a lease: the next one starts at once */
		world_relay_plain(w, 1);
		world_settle(w);
		assert_int_equal(memory_broker_count(w->brokers[0]), 40);
		world_assert_order(w, 0);
		world_free(w);
	}
}

static void advance_clock(void *context, const struct outbox_batch *batch)
{
	(void)batch;
	frozen_clock_step(context, 5 * OUTBOX_SECONDS);
}

/* What cannot be sent before the timeout goes back uncharged, and what was acknowledged is settled. */
static void a_slow_broker_ends_the_drain_in_time(void **state)
{
	struct world *w = world_new(1);
	struct memory_hooks hooks = { .context = &w->clock, .on_publish = advance_clock };

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish_many(w, 10, 1);
	world_relay_plain(w, 0);
	for (int i = 0; i < 6; i++)
		worker_step(world_worker(w, 0));
	world_drain(w, 0, 12 * OUTBOX_SECONDS);
	world_kill(w, 0);
	assert_in_range(memory_broker_count(w->brokers[0]), 1, 6);
	memory_broker_hooks(w->brokers[0], NULL);
	world_relay_plain(w, 1);
	world_settle(w);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	for (int64_t seq = 1; seq <= 10; seq++)
		world_assert(w, "events", seq, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

/* Leases are kept while a slow batch is in flight. */
static void a_slow_batch_does_not_cost_the_lane(void **state)
{
	struct world *w = world_new(1);
	struct memory_hooks hooks = { .context = &w->clock, .on_publish = advance_clock };

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish_many(w, 10, 1); /* ten rounds of 5 s under a lease of 15 s */
	world_relay_plain(w, 0);
	world_relay_plain(w, 1);
	world_run(w, 2 * OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 10);
	assert_int_equal(world_counts(w, 0).fenced + world_counts(w, 1).fenced, 0);
	assert_int_equal(world_counts(w, 0).takeovers + world_counts(w, 1).takeovers, 0);
	world_free(w);
}

static void a_changed_routing_stops_the_older_relay(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	const char *types[] = { "order.*" };

	(void)state;
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_SECONDS);
	target.route.types = types;
	target.route.n_types = 1;
	world_relay(w, 1, &config);
	/* it settles and releases; nobody waits for its lease to end */
	world_run(w, LEASE / 3 + LEASE / 3 + OUTBOX_SECONDS);
	assert_lanes(w, "a0 b1");
	assert_non_null(strstr(w->log, "routing was changed"));
	world_publish(w, "order.placed", NULL, NULL);
	world_publish(w, "user.created", NULL, NULL);
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1");
	world_free(w);
}

/* Two processes under one name are still two. */
static void names_are_made_unique(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	config.instance = "twin";
	for (int i = 0; i < 2; i++) {
		config.seed = (uint64_t)i + 1;
		assert_int_equal(outbox_relay_new(&w->relays[i], &config, NULL), OUTBOX_OK);
	}
	assert_string_not_equal(world_worker(w, 0)->link.owner, world_worker(w, 1)->link.owner);
	world_publish_many(w, 100, 7);
	world_run(w, 2 * OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 100);
	assert_int_equal(world_counts(w, 0).fenced + world_counts(w, 1).fenced, 0);
	world_free(w);
}

/* Whichever worker of a relay holds the first lane cleans up. */
static void every_relay_has_a_keeper(void **state)
{
	struct world *w = world_new(2);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	config.workers = 2;
	config.purge_interval = 10 * OUTBOX_SECONDS;
	config.retain_delivered = OUTBOX_MINUTES;
	world_relay(w, 0, &config);
	/* the second worker is first and takes the first lane */
	for (int i = 0; i < 5; i++)
		worker_step(w->relays[0]->threads[1].worker);
	world_publish_many(w, 10, 3);
	world_run(w, 3 * OUTBOX_MINUTES);
	assert_int_equal(w->relays[0]->threads[1].worker->lanes.list[0]->number, 0);
	assert_int_equal(world_stats(w, "events").delivered_ever, 10);
	outbox_arena_reset(w->arena);
	{
		struct outbox_stats stats;

		assert_int_equal(store_stats(w->store, w->arena, &stats, NULL), OUTBOX_OK);
		assert_int_equal(stats.messages, 0);
	}
	world_free(w);
}

static void idle_relays_poll_slower_and_slower(void **state)
{
	struct world *w = world_new(1);
	int steps = 0;

	(void)state;
	world_relay_plain(w, 0);
	world_run(w, 10 * OUTBOX_SECONDS);
	for (outbox_time end = w->clock.base.mono(&w->clock.base) + 10 * OUTBOX_SECONDS, at = 0;
	     at < end; steps++) {
		at = worker_step(world_worker(w, 0));
		if (at > w->clock.base.mono(&w->clock.base))
			frozen_clock_step(&w->clock, at - w->clock.base.mono(&w->clock.base));
	}
	/* 4 polls a second, a lease each 5 s, an upkeep each second */
	assert_in_range(steps, 30, 110);
	world_free(w);
}

/* One target, two places: who comes second takes nothing, says so, and goes on when the first is gone. */
static void a_target_is_sent_to_one_place(void **state)
{
	struct world *w = world_new(2);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_SECONDS);
	target.to = "null:";
	world_relay(w, 1, &config);
	world_run(w, LEASE);
	assert_lanes(w, "a2 b0");
	world_publish_many(w, 60, 13);
	world_run(w, LEASE);
	assert_int_equal(memory_broker_count(w->brokers[0]), 60);
	assert_int_equal(world_counts(w, 1).delivered, 0);
	assert_non_null(strstr(w->log, "would send to null:, but relay-a:0001/0, which was here "
				       "first, sends to memory:"));
	assert_non_null(strstr(world_stats(w, "events").unserved, "would send to null:"));
	world_drain(w, 0, 30 * OUTBOX_SECONDS);
	world_kill(w, 0);
	world_run(w, LEASE);
	assert_lanes(w, "b2");
	assert_null(world_stats(w, "events").unserved);
	assert_non_null(strstr(w->log, "served again after"));
	world_publish_many(w, 10, 13);
	world_run(w, LEASE);
	assert_int_equal(world_counts(w, 1).delivered, 10);
	assert_int_equal(memory_broker_count(w->brokers[0]), 60);
	world_free(w);
}

/* Stopped for an hour, with lanes that others have meanwhile: it comes back as the second one. */
static void who_comes_back_is_the_newcomer(void **state)
{
	struct world *w = world_new(2);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_SECONDS);
	w->stopped[0] = true;
	target.to = "null:";
	world_relay(w, 1, &config);
	world_run(w, 3 * LEASE);
	w->stopped[0] = false;
	world_run(w, LEASE);
	assert_lanes(w, "a0 b2");
	world_publish_many(w, 10, 13);
	world_run(w, LEASE);
	assert_int_equal(world_counts(w, 1).delivered, 10);
	world_drain(w, 0, 30 * OUTBOX_SECONDS);
	assert_null(world_stats(w, "events").unserved); /* it signs off */
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relays_share_the_lanes),
		cmocka_unit_test(a_target_is_sent_to_one_place),
		cmocka_unit_test(who_comes_back_is_the_newcomer),
		cmocka_unit_test(a_relay_that_leaves_frees_its_lanes_at_once),
		cmocka_unit_test(a_dead_relays_lanes_are_shared_after_the_lease),
		cmocka_unit_test(a_drained_shutdown_causes_no_duplicate),
		cmocka_unit_test(a_slow_broker_ends_the_drain_in_time),
		cmocka_unit_test(a_slow_batch_does_not_cost_the_lane),
		cmocka_unit_test(a_changed_routing_stops_the_older_relay),
		cmocka_unit_test(names_are_made_unique),
		cmocka_unit_test(every_relay_has_a_keeper),
		cmocka_unit_test(idle_relays_poll_slower_and_slower),
	};

	return WORLD_MAIN(argc, argv, "share", tests);
}
