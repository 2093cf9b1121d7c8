/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Targets of one relay are apart: one that is down, or that hangs in a call, holds nothing that another
 * one needs. Shown twice. Stepped by hand: the good target's messages arrive at the very same moments,
 * call by call, whether the other one is idle or down. With threads: the other one does not return from
 * its call before the good one has delivered everything, so a wait of one for the other would never end.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MESSAGES 200
#define BATCH 10
#define PATIENCE 60000 /* milliseconds or more */

/* What the good target's broker saw: the time of each of its calls, and how many messages it had. */
struct diary {
	struct world *world;
	size_t n;
	struct {
		outbox_time at;
		size_t count;
	} calls[MESSAGES];
};

static void write_down(void *context, const struct outbox_batch *batch)
{
	struct diary *d = context;

	assert_true(d->n < MESSAGES);
	d->calls[d->n].at = d->world->clock.base.mono(&d->world->clock.base);
	d->calls[d->n++].count = batch->count;
	/* a broker needs a while; the other target's worker has its turns meanwhile */
	frozen_clock_step(&d->world->clock, 3 * OUTBOX_MILLISECONDS);
}

/* ---- a second broker in the same relay, which may hang ------------------------------------- */

static struct {
	struct world *world;
	bool in_connect, in_publish; /* hang there until the good target is done */
	_Atomic int entered;
	_Atomic bool gave_up; /* the good one was not done: it waits for us */
} hanging;

/* Bounded, so that a relay that waits for ever fails its test instead of hanging it. */
static bool have_arrived(int broker, size_t n)
{
	struct timespec t = { .tv_nsec = 1000000 };

	for (int i = 0; i < PATIENCE && memory_broker_count(hanging.world->brokers[broker]) < n; i++)
		nanosleep(&t, NULL);
	return memory_broker_count(hanging.world->brokers[broker]) >= n;
}

static void wait_for_the_good_one(void)
{
	hanging.entered++;
	if (!have_arrived(0, MESSAGES))
		hanging.gave_up = true;
}

static int other_connect(struct outbox_transport *transport, outbox_time deadline,
			 struct outbox_error *err)
{
	if (hanging.in_connect)
		wait_for_the_good_one();
	return memory_transport_ops.connect(transport, deadline, err);
}

static int other_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			 outbox_time deadline, struct outbox_error *err)
{
	if (hanging.in_publish)
		wait_for_the_good_one();
	return memory_transport_ops.publish(transport, batch, deadline, err);
}

static struct outbox_transport_ops other_ops;

static int other_open(const struct outbox_transport_config *config,
		      struct outbox_transport **ret_transport, struct outbox_error *err)
{
	int r = memory_transport_ops.open(config, ret_transport, err);

	if (!r)
		(*ret_transport)->ops = &other_ops;
	return r;
}

/* "events" to broker 0, "other" to broker 1, in one relay. */
static struct outbox_relay_config two_targets(struct world *w, struct outbox_target_config *targets)
{
	static const char *const schemes[] = { "other", NULL };
	struct outbox_relay_config config = world_config(w, &targets[0]);

	other_ops = memory_transport_ops;
	other_ops.name = "other";
	other_ops.schemes = schemes;
	other_ops.open = other_open;
	other_ops.connect = other_connect;
	other_ops.publish = other_publish;
	memset(&hanging, 0, sizeof(hanging));
	hanging.world = w;
	assert_int_equal(outbox_registry_add_transport(w->registries[0], &other_ops, w->brokers[1],
						       NULL),
			 OUTBOX_OK);
	targets[1] = targets[0];
	targets[1].name = "other";
	targets[1].to = "other:";
	config.n_targets = 2;
	config.batch_messages = BATCH;
	return config;
}

/* ---- stepped by hand ----------------------------------------------------------------------- */

static void keep_diary(struct diary *d, bool down)
{
	struct world *w = world_new(1);
	struct memory_hooks hooks = { .context = d, .on_publish = write_down };
	struct outbox_target_config targets[2];
	struct outbox_relay_config config = two_targets(w, targets);
	const char *none[] = { "no.such.type" };

	d->world = w;
	memory_broker_hooks(w->brokers[0], &hooks);
	if (down) {
		memory_broker_down(w->brokers[1], OUTBOX_ECONN);
	} else { /* up, and nothing to do */
		targets[1].route.types = none;
		targets[1].route.n_types = 1;
	}
	world_relay(w, 0, &config);
	for (int i = 0; i < MESSAGES / 50; i++) {
		world_publish_many(w, 50, 50);
		world_run(w, 10 * OUTBOX_SECONDS);
	}
	assert_int_equal(memory_broker_count(w->brokers[0]), MESSAGES);
	assert_int_equal(memory_broker_count(w->brokers[1]), 0);
	assert_int_equal(world_stats(w, "other").pending, down ? MESSAGES : 0);
	assert_true((world_stats(w, "other").outage != NULL) == down);
	world_free(w);
}

static void a_down_target_changes_no_moment_of_another(void **state)
{
	static struct diary idle, down;

	(void)state;
	memset(&idle, 0, sizeof(idle));
	memset(&down, 0, sizeof(down));
	keep_diary(&idle, false);
	keep_diary(&down, true);
	assert_int_equal(idle.n, down.n);
	for (size_t i = 0; i < idle.n; i++) {
		assert_int_equal(idle.calls[i].at, down.calls[i].at);
		assert_int_equal(idle.calls[i].count, down.calls[i].count);
	}
}

/* ---- with threads -------------------------------------------------------------------------- */

static void deliver_beside_a_hanging_one(bool in_connect, bool in_publish)
{
	struct world *w = world_new(2);
	struct outbox_target_config targets[2];
	struct outbox_relay_config config = two_targets(w, targets);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct timespec t = { .tv_nsec = 1000000 };
	struct outbox_relay *relay;
	bool arrived;

	hanging.in_connect = in_connect;
	hanging.in_publish = in_publish;
	config.clock = NULL; /* the system's */
	config.log = NULL;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	world_publish_many(w, BATCH, 3);
	assert_int_equal(outbox_relay_start(relay, &err), OUTBOX_OK);
	for (int i = 0; i < PATIENCE && !hanging.entered; i++)
		nanosleep(&t, NULL);
	assert_int_equal(hanging.entered, 1);
	/* It is in its call now, with a claim of its own where it publishes. The good one must connect anew. */
	memory_broker_down(w->brokers[0], OUTBOX_ECONN);
	memory_broker_up(w->brokers[0]);
	world_publish_many(w, MESSAGES - BATCH, 20);
	arrived = have_arrived(0, MESSAGES);
	assert_true(arrived && !hanging.gave_up);
	/* and once it is free again it has lost nothing */
	assert_true(have_arrived(1, MESSAGES));
	assert_int_equal(outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, &err), OUTBOX_OK);
	outbox_relay_free(relay);
	world_assert_order(w, 0);
	world_assert_order(w, 1);
	world_free(w);
}

static void one_that_hangs_in_connect(void **state)
{
	(void)state;
	deliver_beside_a_hanging_one(true, false);
}

static void one_that_hangs_in_publish(void **state)
{
	(void)state;
	deliver_beside_a_hanging_one(false, true);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_down_target_changes_no_moment_of_another),
		cmocka_unit_test(one_that_hangs_in_connect),
		cmocka_unit_test(one_that_hangs_in_publish),
	};

	return WORLD_MAIN(argc, argv, "apart", tests);
}
