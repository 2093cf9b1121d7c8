/* SPDX-License-Identifier: Apache-2.0 */
/* What a relay counts and times, per target. */
#include "store/store.h"
#include "world.h"

#include <stdio.h>
#include <string.h>

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static struct target_metrics metrics(struct world *w, int relay, size_t target)
{
	struct target_metrics m;

	relay_target_metrics(w->relays[relay], target, &m);
	return m;
}

static void rule(struct world *w, const struct memory_rule *rule)
{
	assert_int_equal(memory_broker_rule(w->brokers[0], rule, NULL), OUTBOX_OK);
}

/* The two targets "events" and "bulk", the second for bulk.* only. */
static void relay_two(struct world *w)
{
	static const char *const bulk[] = { "bulk.*" };
	struct outbox_target_config targets[2];
	struct outbox_relay_config config = world_config(w, &targets[1]);

	config = world_config(w, &targets[0]);
	targets[1].name = "bulk";
	targets[1].route = (struct outbox_route){ .types = bulk, .n_types = 1 };
	config.n_targets = 2;
	world_relay(w, 0, &config);
}

static void targets_are_counted_apart(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	for (int i = 0; i < 25; i++)
		world_publish(w, i < 5 ? "bulk.one" : "order.placed", NULL, NULL);
	relay_two(w);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(relay_target_count(w->relays[0]), 2);
	assert_string_equal(metrics(w, 0, 0).target, "events");
	assert_string_equal(metrics(w, 0, 0).transport, "memory");
	assert_int_equal(metrics(w, 0, 0).delivered, 25);
	assert_int_equal(metrics(w, 0, 0).attempts, 25);
	assert_int_equal(metrics(w, 0, 0).batches, 3);
	assert_int_equal(metrics(w, 0, 0).batch_size.count, 3);
	assert_int_equal(metrics(w, 0, 0).batch_size.sum, 25);
	assert_int_equal(metrics(w, 0, 0).publish.count, 3);
	assert_int_equal(metrics(w, 0, 0).settle.count, 3);
	assert_int_equal(metrics(w, 0, 0).lanes, 1);
	assert_string_equal(metrics(w, 0, 1).target, "bulk");
	assert_int_equal(metrics(w, 0, 1).delivered, 5);
	assert_int_equal(metrics(w, 0, 1).latency.count, 5);
	assert_int_equal(world_counts(w, 0).delivered, 30);
	assert_int_equal(world_counts(w, 0).batches, 4);
	world_drain(w, 0, OUTBOX_SECONDS);
	assert_int_equal(metrics(w, 0, 0).lanes, 0);
	world_free(w);
}

static void slow_publish(void *context, const struct outbox_batch *batch)
{
	struct world *w = context;

	(void)batch;
	frozen_clock_step(&w->clock, 2 * OUTBOX_SECONDS);
}

/* Published, forty seconds later sent, which takes two: 42 s, whatever the wall clock does meanwhile. */
static void latency_ends_with_the_acknowledgement(void **state)
{
	struct memory_hooks hooks = { .on_publish = slow_publish };
	struct world *w = world_new(1);
	struct target_metrics m;

	(void)state;
	hooks.context = w;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_relay_plain(w, 0);
	world_publish_many(w, 3, 0);
	frozen_clock_step(&w->clock, 40 * OUTBOX_SECONDS);
	world_settle(w);
	m = metrics(w, 0, 0);
	assert_int_equal(m.latency.count, 3);
	assert_int_equal(m.latency.sum, 3 * 42 * OUTBOX_SECONDS);
	assert_int_equal(
		m.latency.buckets[histogram_bucket(&histogram_latencies, 42 * OUTBOX_SECONDS)], 3);
	assert_int_equal(m.publish.sum, 2 * OUTBOX_SECONDS);
	assert_int_equal(m.last_delivery, w->clock.base.wall(&w->clock.base));
	world_free(w);
}

/* It counts from when a message could be sent; the other histogram from its event, whatever people decided. */
static void latency_begins_when_a_message_can_be_sent(void **state)
{
	struct world *w = world_new(1);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	int64_t refused;

	(void)state;
	m.type = "order.placed";
	m.data = "{}";
	m.size = 2;
	world_relay_plain(w, 0);
	m.due_at = w->clock.base.wall(&w->clock.base) + OUTBOX_HOURS;
	world_publish_message(w, &m);
	world_run(w, OUTBOX_HOURS + OUTBOX_SECONDS);
	assert_int_equal(metrics(w, 0, 0).latency.count, 1);
	assert_true(metrics(w, 0, 0).latency.sum <= OUTBOX_SECONDS);
	assert_true(metrics(w, 0, 0).event_latency.sum >= OUTBOX_HOURS);

	rule(w, &(struct memory_rule){ .seq = 2, .fate = MEMORY_REJECT, .times = 1 });
	refused = world_publish(w, "order.placed", NULL, NULL);
	world_run(w, OUTBOX_HOURS);
	assert_int_equal(world_act(w, OUTBOX_REQUEUE, "events", refused, 0), 1);
	world_run(w, OUTBOX_SECONDS);
	assert_int_equal(metrics(w, 0, 0).latency.count, 2);
	assert_true(metrics(w, 0, 0).latency.sum <= 2 * OUTBOX_SECONDS);

	assert_int_equal(store_target_pause(w->store, "events", true, "t", "r", NULL), 0);
	world_publish_many(w, 1, 0);
	world_run(w, OUTBOX_HOURS);
	assert_int_equal(store_target_pause(w->store, "events", false, "t", NULL, NULL), 0);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 0, 0).latency.count, 3);
	assert_true(metrics(w, 0, 0).latency.sum <= OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 0, 0).event_latency.count, 3);
	assert_true(metrics(w, 0, 0).event_latency.sum >= 3 * OUTBOX_HOURS);

	/* due while no relay was there to read it */
	world_drain(w, 0, OUTBOX_MINUTES);
	world_kill(w, 0);
	m.due_at = w->clock.base.wall(&w->clock.base) + OUTBOX_HOURS;
	world_publish_message(w, &m);
	world_run(w, 2 * OUTBOX_HOURS);
	world_relay_plain(w, 1);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 1, 0).latency.count, 1);
	assert_in_range(metrics(w, 1, 0).latency.sum, OUTBOX_HOURS - OUTBOX_SECONDS,
			OUTBOX_HOURS + OUTBOX_MINUTES);
	world_free(w);
}

/* What an application heard of a day ago and has published now: quick to deliver, and late all the same. */
static void an_event_is_as_late_as_its_own_time_says(void **state)
{
	struct world *w = world_new(1);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;

	(void)state;
	m.type = "order.placed";
	m.data = "{}";
	m.size = 2;
	m.event_time = w->clock.base.wall(&w->clock.base) - OUTBOX_DAYS;
	world_relay_plain(w, 0);
	world_publish_message(w, &m);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 0, 0).latency.count, 1);
	assert_true(metrics(w, 0, 0).latency.sum <= OUTBOX_SECONDS);
	assert_in_range(metrics(w, 0, 0).event_latency.sum, OUTBOX_DAYS,
			OUTBOX_DAYS + OUTBOX_SECONDS);
	world_free(w);
}

static void what_is_refused_is_no_latency(void **state)
{
	struct world *w = world_new(1);
	struct target_metrics m;

	(void)state;
	rule(w, &(struct memory_rule){ .seq = 2, .fate = MEMORY_REJECT });
	rule(w, &(struct memory_rule){ .seq = 3, .fate = MEMORY_RETRY, .times = 2 });
	world_publish_many(w, 4, 0);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	m = metrics(w, 0, 0);
	assert_int_equal(m.delivered, 3);
	assert_int_equal(m.failed, 1);
	assert_int_equal(m.retried, 2);
	assert_int_equal(m.attempts, 6);
	assert_int_equal(m.latency.count, 3);
	world_free(w);
}

static void the_breaker_is_seen(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	memory_broker_down(w->brokers[0], OUTBOX_ECONN);
	world_publish_many(w, 1, 0);
	world_relay_plain(w, 0);
	assert_int_equal(metrics(w, 0, 0).breaker, BREAKER_CLOSED);
	world_settle(w);
	assert_int_equal(metrics(w, 0, 0).breaker, BREAKER_OPEN);
	assert_int_equal(metrics(w, 0, 0).outages, 1);
	assert_int_equal(metrics(w, 0, 0).last_delivery, 0);
	memory_broker_up(w->brokers[0]);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 0, 0).breaker, BREAKER_CLOSED);
	world_free(w);
}

static void duplicates_have_a_reason(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	rule(w, &(struct memory_rule){ .seq = 1, .fate = MEMORY_UNKNOWN_KEPT, .times = 1 });
	rule(w, &(struct memory_rule){ .fate = MEMORY_ACK_ONCE });
	world_publish_many(w, 2, 0);
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 0, 0).duplicates_unknown, 1);
	assert_int_equal(metrics(w, 0, 0).duplicates_recognised, 1);
	assert_int_equal(world_counts(w, 0).unknown, 1);
	assert_int_equal(world_counts(w, 0).duplicates, 1);
	world_free(w);
}

static void a_rate_that_is_used_up_is_seen(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	target.rate_count = 5;
	target.rate_period = OUTBOX_MINUTES;
	world_publish_many(w, 12, 0);
	world_relay(w, 0, &config);
	assert_false(metrics(w, 0, 0).throttled);
	world_settle(w);
	assert_true(metrics(w, 0, 0).throttled);
	world_run(w, OUTBOX_HOURS);
	assert_int_equal(metrics(w, 0, 0).delivered, 12);
	assert_false(metrics(w, 0, 0).throttled);
	world_free(w);
}

struct seen {
	int reports;
	size_t messages, delivered, parents;
	outbox_time began, publish;
	char target[64], parent[60], outage[200];
};

static void see(void *context, const struct batch_report *r)
{
	struct seen *seen = context;

	seen->reports++;
	seen->messages += r->messages;
	seen->delivered += r->delivered;
	seen->parents += r->n_traceparents;
	seen->began = r->began;
	seen->publish = r->publish;
	snprintf(seen->target, sizeof(seen->target), "%s", r->target);
	if (r->n_traceparents)
		snprintf(seen->parent, sizeof(seen->parent), "%s", r->traceparents[0]);
	if (r->outage)
		snprintf(seen->outage, sizeof(seen->outage), "%s", r->outage);
}

static void every_settled_batch_is_told(void **state)
{
	struct memory_hooks hooks = { .on_publish = slow_publish };
	struct outbox_message traced = OUTBOX_MESSAGE_INIT;
	struct seen seen = { 0 };
	struct world *w = world_new(1);
	outbox_time began = w->clock.base.wall(&w->clock.base);

	(void)state;
	traced.type = "order.placed";
	traced.data = "{}";
	traced.size = 2;
	traced.traceparent = PARENT;
	hooks.context = w;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish_many(w, 2, 0);
	world_publish_message(w, &traced);
	world_relay_plain(w, 0);
	relay_observe(w->relays[0], see, &seen);
	world_settle(w);
	assert_int_equal(seen.reports, 1);
	assert_int_equal(seen.messages, 3);
	assert_int_equal(seen.delivered, 3);
	assert_int_equal(seen.parents, 1);
	assert_int_equal(seen.began, began);
	assert_int_equal(seen.publish, 2 * OUTBOX_SECONDS);
	assert_string_equal(seen.target, "events");
	assert_string_equal(seen.parent, PARENT);
	assert_string_equal(seen.outage, "");
	world_free(w);
}

static void a_batch_that_met_an_outage_says_so(void **state)
{
	struct seen seen = { 0 };
	struct world *w = world_new(1);

	(void)state;
	memory_broker_lose(w->brokers[0], 2, false);
	world_publish_many(w, 4, 0);
	world_relay_plain(w, 0);
	relay_observe(w->relays[0], see, &seen);
	world_settle(w);
	assert_int_equal(seen.reports, 1);
	assert_string_not_equal(seen.outage, "");
	assert_in_range(seen.delivered, 0, 3);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(metrics(w, 0, 0).delivered, 4);
	assert_int_equal(metrics(w, 0, 0).latency.count, 4);
	world_free(w);
}

static void values_find_their_bucket(void **state)
{
	const struct histogram_bounds *all[] = { &histogram_durations, &histogram_latencies,
						 &histogram_sizes };
	struct histogram h = { 0 };

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		const struct histogram_bounds *b = all[k];

		assert_true(b->count < HISTOGRAM_BUCKETS);
		for (size_t i = 0; i < b->count; i++) {
			assert_true(i == 0 || b->bounds[i - 1] < b->bounds[i]);
			assert_int_equal(histogram_bucket(b, b->bounds[i]), i);
			assert_int_equal(histogram_bucket(b, b->bounds[i] + 1), i + 1);
		}
	}
	histogram_observe(&h, &histogram_durations, -5);
	assert_int_equal(h.buckets[0], 1);
	assert_int_equal(h.sum, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_counted_apart),
		cmocka_unit_test(latency_ends_with_the_acknowledgement),
		cmocka_unit_test(latency_begins_when_a_message_can_be_sent),
		cmocka_unit_test(an_event_is_as_late_as_its_own_time_says),
		cmocka_unit_test(what_is_refused_is_no_latency),
		cmocka_unit_test(the_breaker_is_seen),
		cmocka_unit_test(duplicates_have_a_reason),
		cmocka_unit_test(a_rate_that_is_used_up_is_seen),
		cmocka_unit_test(every_settled_batch_is_told),
		cmocka_unit_test(a_batch_that_met_an_outage_says_so),
		cmocka_unit_test(values_find_their_bucket),
	};

	return WORLD_MAIN(argc, argv, "relay-metrics", tests);
}
