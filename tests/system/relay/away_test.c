/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broker is away for half an hour while messages go on being published, in each of the ways that brokers
 * are away. The retry policy is the default one, whose attempts would be used up long before: afterwards
 * nothing has failed, nothing was charged, and everything arrives in the order of its key.
 */
#include "store/store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define AWAY (30 * OUTBOX_MINUTES)
#define PUBLISH_EACH (10 * OUTBOX_SECONDS)
#define PUBLISH_TIMEOUT (10 * OUTBOX_SECONDS) /* the relay's default */
#define LANES 2
#define RELAYS 2
#define BEFORE 40
#define ON_ITS_WAY 30 /* when the broker goes: whole batches meet the outage */
#define DURING ((int)(AWAY / PUBLISH_EACH))
#define AFTER 20
#define ALL (BEFORE + ON_ITS_WAY + DURING + AFTER)
#define KEYS 7

/* How a broker is away. */
struct absence {
	int refuses;           /* connect() fails with this; 0: it connects, and publish() fails */
	enum memory_fate fate; /* of the first message of a publish() */
	int status;            /* of publish() */
	outbox_time takes;     /* until publish() fails */
};

struct scene {
	struct world *world;
	const struct absence *absence;
	int published;
};

static void take_its_time(void *context, const struct outbox_batch *batch)
{
	struct scene *s = context;

	(void)batch;
	frozen_clock_step(&s->world->clock, s->absence->takes);
}

static void goes_away(struct scene *s)
{
	struct memory_rule rule = { .fate = s->absence->fate, .status = s->absence->status };
	struct memory_hooks hooks = { .context = s, .on_publish = take_its_time };
	struct memory_broker *broker = s->world->brokers[0];

	if (s->absence->refuses) {
		memory_broker_down(broker, s->absence->refuses);
		return;
	}
	memory_broker_hooks(broker, &hooks);
	assert_int_equal(memory_broker_rule(broker, &rule, NULL), OUTBOX_OK);
}

static void comes_back(struct scene *s)
{
	memory_broker_hooks(s->world->brokers[0], NULL);
	memory_broker_forget_rules(s->world->brokers[0]);
	memory_broker_up(s->world->brokers[0]);
}

static void publish(struct scene *s, int n)
{
	char key[16];

	for (int i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "k%d", s->published++ % KEYS);
		world_publish(s->world, "order.placed", key, NULL);
	}
}

/* Every message: delivered, and by its first attempt as far as the policy is concerned. */
static void assert_all_delivered(struct scene *s)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter),
					.target = "events",
					.limit = 1000 };
	struct world *w = s->world;
	struct outbox_page page;
	size_t rows = 0;

	outbox_arena_reset(w->arena);
	do {
		assert_int_equal(store_list(w->store, &filter, w->arena, &page, NULL), 0);
		for (size_t i = 0; i < page.count; i++, rows++)
			if (page.rows[i].state != OUTBOX_DELIVERED || page.rows[i].attempts)
				fail_msg("message %lld is %s after %d attempts",
					 (long long)page.rows[i].seq,
					 outbox_state_name(page.rows[i].state),
					 page.rows[i].attempts);
		filter.cursor = page.cursor;
	} while (filter.cursor);
	assert_int_equal(rows, ALL);
}

/* Half an hour passes, and nobody notices but those who wait. */
static void pass_the_absence(struct scene *s)
{
	struct world *w = s->world;
	outbox_time end = w->clock.base.mono(&w->clock.base) + AWAY;
	struct outbox_target_stats stats;

	publish(s, ON_ITS_WAY);
	goes_away(s);
	for (int i = 0; i < DURING; i++) {
		outbox_time left = end - w->clock.base.mono(&w->clock.base);

		publish(s, 1);
		/* who waits for an answer may have passed the time already */
		if (left > 0)
			world_run(w, left < PUBLISH_EACH ? left : PUBLISH_EACH);
	}
	assert_true(w->clock.base.mono(&w->clock.base) >= end);
	stats = world_stats(w, "events");
	assert_int_equal(stats.delivered_ever, BEFORE);
	assert_int_equal(stats.failed, 0);
	assert_non_null(stats.outage);
}

static void half_an_hour(const struct absence *absence, bool copies)
{
	struct world *w = world_new(LANES);
	struct scene s = { .world = w, .absence = absence };
	uint64_t outages = 0;

	for (int i = 0; i < RELAYS; i++)
		world_relay_plain(w, i);
	publish(&s, BEFORE);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), BEFORE);
	pass_the_absence(&s);
	comes_back(&s);
	publish(&s, AFTER);
	/* the breaker waits for 30 s at the most, and a message that was alone on the wire for twice that */
	world_run(w, 5 * OUTBOX_MINUTES);
	assert_all_delivered(&s);
	for (int i = 0; i < RELAYS; i++) {
		outages += world_counts(w, i).outages;
		assert_int_equal(world_counts(w, i).failed, 0);
	}
	assert_true(outages > 0);
	world_assert_order(w, 0);
	if (copies)
		assert_true(memory_broker_count(w->brokers[0]) > ALL);
	else
		assert_int_equal(memory_broker_count(w->brokers[0]), ALL);
	world_free(w);
}

static void it_refuses_connections(void **state)
{
	static const struct absence absence = { .refuses = OUTBOX_ECONN };

	(void)state;
	half_an_hour(&absence, false);
}

static void it_does_not_let_us_in(void **state)
{
	static const struct absence absence = { .refuses = OUTBOX_EAUTH };

	(void)state;
	half_an_hour(&absence, false);
}

static void it_is_full(void **state)
{
	static const struct absence absence = { .fate = MEMORY_DROP, .status = OUTBOX_EFULL };

	(void)state;
	half_an_hour(&absence, false);
}

static void it_cuts_each_connection(void **state)
{
	static const struct absence absence = { .fate = MEMORY_DROP, .status = OUTBOX_ECONN };

	(void)state;
	half_an_hour(&absence, false);
}

static void it_never_answers(void **state)
{
	static const struct absence absence = { .fate = MEMORY_DROP,
						.status = OUTBOX_ETIMEDOUT,
						.takes = PUBLISH_TIMEOUT };

	(void)state;
	half_an_hour(&absence, false);
}

/* It takes what it is sent, and cannot say so: copies, but still nothing lost and nothing charged. */
static void it_keeps_and_never_answers(void **state)
{
	static const struct absence absence = { .fate = MEMORY_DROP_KEPT,
						.status = OUTBOX_ETIMEDOUT,
						.takes = PUBLISH_TIMEOUT - OUTBOX_SECONDS };

	(void)state;
	half_an_hour(&absence, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_refuses_connections),
		cmocka_unit_test(it_does_not_let_us_in),
		cmocka_unit_test(it_is_full),
		cmocka_unit_test(it_cuts_each_connection),
		cmocka_unit_test(it_never_answers),
		cmocka_unit_test(it_keeps_and_never_answers),
	};

	return WORLD_MAIN(argc, argv, "away", tests);
}
