/* SPDX-License-Identifier: Apache-2.0 */
/* Bands: a bulk of low messages delays nobody; switching them on and off loses nothing. */
#include "store/store.h"
#include "world.h"

#include <string.h>

#define S OUTBOX_SECONDS

static int64_t publish(struct world *w, int priority)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	m.type = "order.placed";
	m.data = "{}";
	m.size = 2;
	m.priority = priority;
	return world_publish_message(w, &m);
}

static struct outbox_relay_config banded(struct world *w, struct outbox_target_config *target)
{
	struct outbox_relay_config config = world_config(w, target);

	target->bands = true;
	return config;
}

static size_t arrivals(struct world *w, int64_t seq)
{
	size_t n = 0;

	for (size_t i = 0; i < memory_broker_count(w->brokers[0]); i++)
		n += memory_broker_at(w->brokers[0], i)->seq == seq;
	return n;
}

struct bulk {
	struct world *w;
	size_t at; /* so much of it was sent when others are published */
	int64_t normal, high;
};

/* A target that takes a second for each batch, and publishers who come while it is busy. */
static void take_a_second(void *context, const struct outbox_batch *batch)
{
	struct bulk *bulk = context;

	(void)batch;
	frozen_clock_step(&bulk->w->clock, S);
	if (bulk->normal || memory_broker_count(bulk->w->brokers[0]) < 500)
		return;
	bulk->at = memory_broker_count(bulk->w->brokers[0]);
	bulk->normal = publish(bulk->w, 0);
	bulk->high = publish(bulk->w, 1);
}

static size_t place_of(struct world *w, int64_t seq)
{
	size_t i = 0;

	while (memory_broker_at(w->brokers[0], i)->seq != seq)
		i++;
	return i;
}

static void a_bulk_of_low_messages_delays_nobody(void **state)
{
	struct world *w = world_new(1);
	struct bulk bulk = { .w = w };
	struct memory_hooks slow = { .context = &bulk, .on_publish = take_a_second };
	struct outbox_target_config target;
	struct outbox_relay_config config = banded(w, &target);
	int n = world_kind == WORLD_MEMORY ? 100000 : 2000;

	(void)state;
	for (int i = 0; i < n; i++)
		publish(w, -1);
	memory_broker_hooks(w->brokers[0], &slow);
	world_relay(w, 0, &config);
	world_run(w, 10 * S);
	assert_int_equal(memory_broker_count(w->brokers[0]), n + 2);
	/* behind a few batches of ten, not behind the bulk */
	assert_in_range(place_of(w, bulk.normal), bulk.at, bulk.at + 40);
	assert_in_range(place_of(w, bulk.high), bulk.at, bulk.at + 40);
	world_free(w);
}

/* An outage of one band is none of another: each has a breaker of its own. */
static void each_band_has_a_breaker(void **state)
{
	struct memory_rule rule = { .type = "bad", .fate = MEMORY_DROP };
	struct world *w = world_new(1);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	struct outbox_target_config target;
	struct outbox_relay_config config = banded(w, &target);

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	m.type = "bad";
	m.priority = -1;
	world_publish_message(w, &m);
	world_relay(w, 0, &config);
	world_run(w, S);
	assert_non_null(world_stats(w, "events-low").outage);
	assert_null(world_stats(w, "events").outage);
	publish(w, 0);
	world_run(w, S);
	assert_int_equal(memory_broker_count(w->brokers[0]), 1);
	world_free(w);
}

static void bands_share_a_rate_and_the_higher_go_first(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = banded(w, &target);
	int64_t high[16];

	(void)state;
	target.rate_count = 10;
	target.rate_period = S;
	for (int i = 0; i < 200; i++)
		publish(w, -1);
	world_relay(w, 0, &config);
	for (size_t i = 0; i < 3; i++) {
		static const enum throttle_rank ranks[] = { RANK_NORMAL, RANK_HIGH, RANK_LOW };

		assert_int_equal(w->relays[0]->plan.targets[i].rank, ranks[i]);
		assert_ptr_equal(w->relays[0]->plan.targets[i].throttle,
				 w->relays[0]->plan.targets[0].throttle);
	}
	world_run(w, 5 * S);
	assert_in_range(memory_broker_count(w->brokers[0]), 50, 60);
	for (int i = 0; i < 16; i++)
		high[i] = publish(w, 1);
	/* they are most of what may be sent now */
	world_run(w, 2 * S);
	for (int i = 0; i < 16; i++)
		assert_int_equal(arrivals(w, high[i]), 1);
	assert_in_range(memory_broker_count(w->brokers[0]), 66, 82);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 216);
	world_free(w);
}

static void switching_loses_nothing(void **state)
{
	struct world *w = world_new(4);
	struct outbox_target_config plain, banded_target;
	struct outbox_relay_config off = world_config(w, &plain), on = banded(w, &banded_target);
	int64_t last = 0;

	(void)state;
	plain.rate_count = banded_target.rate_count = 7;
	plain.rate_period = banded_target.rate_period = S;
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 30; i++)
			last = publish(w, i % 3 - 1);
		/* the one before is at work, or was killed with messages in flight */
		world_relay(w, round % 2, round % 2 ? &on : &off);
		world_run(w, 2 * S);
		if (round && round % 3 != 2)
			world_drain(w, !(round % 2), S);
		if (round)
			world_kill(w, !(round % 2));
	}
	world_run(w, 2 * OUTBOX_MINUTES);
	world_kill(w, 1);
	/* without bands, and what is left of them */
	world_relay(w, 2, &off);
	assert_non_null(strstr(w->log, "outbox target drop events-low"));
	last = publish(w, 1);
	world_run(w, 2 * OUTBOX_MINUTES);
	for (int64_t seq = 1; seq <= last; seq++)
		assert_int_equal(arrivals(w, seq), 1);
	assert_int_equal(world_stats(w, "events").pending, 0);
	assert_int_equal(world_stats(w, "events-low").pending, 0);
	assert_int_equal(world_stats(w, "events-high").pending, 0);
	world_free(w);
}

static void impossible_bands_are_refused(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config targets[2];
	struct outbox_relay_config config = banded(w, &targets[0]);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;
	int64_t version;

	(void)state;
	targets[0].route.bands = OUTBOX_BAND_HIGH;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "matches priority"));
	targets[0].route.bands = 0;
	targets[1] = targets[0];
	targets[1].bands = false;
	targets[1].name = "events-low";
	config.targets = targets;
	config.n_targets = 2;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "\"events-low\" is named twice"));
	config.n_targets = 1;
	targets[0].name = "a-name-that-has-as-many-characters-as-a-name-can-have-0123456789";
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
	/* a target of its own has the name of a band; the status says so without the words, too */
	assert_int_equal(store_target_put(w->store,
					  &(struct outbox_target_def){ .name = "events-low",
								       .start = OUTBOX_START_OLDEST },
					  &version, &err),
			 OUTBOX_OK);
	targets[0].name = "events";
	assert_int_equal(outbox_relay_new(&relay, &config, NULL), OUTBOX_ECONFIG);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bulk_of_low_messages_delays_nobody),
		cmocka_unit_test(each_band_has_a_breaker),
		cmocka_unit_test(bands_share_a_rate_and_the_higher_go_first),
		cmocka_unit_test(switching_loses_nothing),
		cmocka_unit_test(impossible_bands_are_refused),
	};

	return WORLD_MAIN(argc, argv, "bands", tests);
}
