/* SPDX-License-Identifier: Apache-2.0 */
/* Due times, expiry, pausing, routing, budgets, retention. */
#include "store/store.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

static int64_t publish_at(struct world *w, const char *key, outbox_time due, outbox_time expires)
{
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	outbox_time now = w->clock.base.wall(&w->clock.base);

	m.type = "reminder";
	m.key = key;
	m.data = "{}";
	m.size = 2;
	m.due_at = due ? now + due : 0;
	m.expires_at = expires ? now + expires : 0;
	return world_publish_message(w, &m);
}

static void a_deferred_message_waits_and_holds_nobody(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	publish_at(w, "k", OUTBOX_MINUTES, 0);
	publish_at(w, "k", 0, 0);
	world_relay_plain(w, 0);
	world_run(w, 59 * OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "2");
	world_assert(w, "events", 1, OUTBOX_PENDING, OUTBOX_DEFERRED, 0);
	world_run(w, 2 * OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "2 1");
	world_assert(w, "events", 1, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void an_operator_defers_a_pending_message(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_publish_many(w, 3, 1);
	world_relay_plain(w, 0); /* registers the target; not stepped yet */
	assert_int_equal(world_act(w, OUTBOX_DEFER, "events", 2,
				   w->clock.base.wall(&w->clock.base) + OUTBOX_MINUTES),
			 1);
	world_run(w, 30 * OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1 3");
	world_run(w, 31 * OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1 3 2");
	world_free(w);
}

static void an_expired_message_fails_unsent(void **state)
{
	struct world *w = world_new(1);
	struct memory_rule rule = { .seq = 2, .fate = MEMORY_RETRY };

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	publish_at(w, NULL, 0, OUTBOX_SECONDS);
	publish_at(w, NULL, 0, OUTBOX_MINUTES);
	publish_at(w, NULL, 0, OUTBOX_HOURS);
	frozen_clock_step(&w->clock, 10 * OUTBOX_SECONDS);
	world_relay_plain(w, 0);
	world_run(w, 30 * OUTBOX_MINUTES);
	assert_string_equal(world_arrived(w, 0), "3");
	world_assert(w, "events", 1, OUTBOX_FAILED, 0, 0);
	assert_non_null(strstr(world_delivery(w, "events", 1).error, "expired at"));
	assert_int_equal(world_delivery(w, "events", 2).state, OUTBOX_FAILED);
	assert_non_null(strstr(world_delivery(w, "events", 2).error, "expired at"));
	world_free(w);
}

static void a_paused_target_claims_nothing(void **state)
{
	struct world *w = world_new(1);

	(void)state;
	world_relay_plain(w, 0);
	world_run(w, OUTBOX_SECONDS);
	assert_int_equal(store_target_pause(w->store, "events", true, "test", "maintenance", NULL),
			 OUTBOX_OK);
	world_publish_many(w, 5, 2);
	world_run(w, OUTBOX_MINUTES);
	assert_int_equal(memory_broker_count(w->brokers[0]), 0);
	world_assert(w, "events", 1, OUTBOX_PENDING, OUTBOX_PAUSED, 0);
	assert_int_equal(store_target_pause(w->store, "events", false, "test", NULL, NULL),
			 OUTBOX_OK);
	world_run(w, OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 5);
	world_free(w);
}

static void routing_chooses_by_type_kind_and_published(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct outbox_message m = OUTBOX_MESSAGE_INIT;
	const char *types[] = { "order.*", "user.?" };

	(void)state;
	target.route = (struct outbox_route){
		.types = types, .n_types = 2, .kind = OUTBOX_KIND_EVENT, .published_only = true
	};
	world_relay(w, 0, &config);
	m.data = "{}";
	m.size = 2;
	m.type = "order.placed";
	world_publish_message(w, &m); /* 1: not published */
	m.published = 1;
	world_publish_message(w, &m); /* 2: yes */
	m.kind = OUTBOX_KIND_COMMAND;
	world_publish_message(w, &m); /* 3: a command */
	m.kind = OUTBOX_KIND_EVENT;
	m.type = "user.x";
	world_publish_message(w, &m); /* 4: yes */
	m.type = "user.xy";
	world_publish_message(w, &m); /* 5: no such type */
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "2 4");
	assert_int_equal(world_stats(w, "events").pending, 0);
	world_free(w);
}

struct largest {
	size_t bytes, messages;
};

static void measure(void *context, const struct outbox_batch *batch)
{
	struct largest *l = context;
	size_t bytes = 0;

	for (size_t i = 0; i < batch->count; i++)
		bytes += batch->items[i]->message->size;
	l->bytes = bytes > l->bytes ? bytes : l->bytes;
	l->messages = batch->count > l->messages ? batch->count : l->messages;
}

static void batches_stay_within_their_budgets(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct largest largest = { 0 };
	struct memory_hooks hooks = { .context = &largest, .on_publish = measure };
	char *json = malloc(3001);

	(void)state;
	memset(json, '1', 3000);
	json[3000] = '\0';
	config.batch_bytes = 10000;
	memory_broker_hooks(w->brokers[0], &hooks);
	for (int i = 0; i < 20; i++)
		world_publish(w, "big", NULL, json);
	for (int i = 0; i < 25; i++)
		world_publish(w, "small", NULL, "1");
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_SECONDS);
	assert_int_equal(memory_broker_count(w->brokers[0]), 45);
	assert_in_range(largest.bytes, 3000, 10000);
	assert_int_equal(largest.messages, 10);
	free(json);
	world_free(w);
}

static void a_message_larger_than_the_budget_still_goes(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);

	(void)state;
	config.batch_bytes = 4;
	world_publish(w, "big", NULL, "{\"much\":\"more\"}");
	world_publish(w, "big", NULL, "{\"much\":\"more\"}");
	world_relay(w, 0, &config);
	world_run(w, OUTBOX_SECONDS);
	assert_string_equal(world_arrived(w, 0), "1 2");
	world_free(w);
}

static void retention_removes_what_is_finished_only(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct memory_rule rule = { .seq = 2, .fate = MEMORY_REJECT };
	struct outbox_filter all = { .struct_size = sizeof(all) };
	struct outbox_page page;

	(void)state;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	config.purge_interval = OUTBOX_MINUTES;
	config.retain_delivered = OUTBOX_HOURS;
	world_publish_many(w, 3, 0);
	publish_at(w, NULL, 30 * OUTBOX_DAYS, 0);
	world_relay(w, 0, &config);
	world_run(w, 30 * OUTBOX_MINUTES);
	assert_int_equal(world_delivery(w, "events", 1).state, OUTBOX_DELIVERED);
	world_run(w, 2 * OUTBOX_HOURS);
	outbox_arena_reset(w->arena);
	assert_int_equal(store_list(w->store, &all, w->arena, &page, NULL), OUTBOX_OK);
	assert_int_equal(page.count, 2);
	assert_int_equal(page.rows[0].state, OUTBOX_FAILED);
	assert_int_equal(page.rows[1].why, OUTBOX_DEFERRED);
	world_free(w);
}

/* Each batch takes a second and there is always another one: nobody is ever idle. */
static void second_by_second(void *context, const struct outbox_batch *batch)
{
	struct world *w = context;

	(void)batch;
	frozen_clock_step(&w->clock, OUTBOX_SECONDS);
	world_publish(w, "order.placed", NULL, NULL);
}

static void a_busy_relay_cleans_up_too(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct memory_hooks hooks = { .context = w, .on_publish = second_by_second };
	struct outbox_filter all = { .struct_size = sizeof(all) };
	struct outbox_page page;

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	config.batch_messages = 1;
	config.purge_interval = 10 * OUTBOX_SECONDS;
	config.retain_delivered = OUTBOX_MINUTES;
	world_publish_many(w, 2, 0);
	world_relay(w, 0, &config);
	for (int i = 0; i < 1500; i++)
		worker_step(world_worker(w, 0));
	outbox_arena_reset(w->arena);
	assert_int_equal(store_list(w->store, &all, w->arena, &page, NULL), OUTBOX_OK);
	assert_in_range(page.count, 10, 90);
	assert_in_range(memory_broker_count(w->brokers[0]), 200, 1500);
	world_free(w);
}

static struct outbox_purge seen[4];
static int n_seen;

static int note_purge(struct outbox_store *store, const struct outbox_purge *purge,
		      struct outbox_purged *ret_purged, struct outbox_error *err)
{
	(void)store;
	(void)err;
	if (n_seen < 4)
		seen[n_seen++] = *purge;
	*ret_purged = (struct outbox_purged){ .more = n_seen < 3 };
	return OUTBOX_OK;
}

/* A store goes on where it ended only when it is asked for the same purge again. */
static void a_purge_of_several_calls_keeps_its_times(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct outbox_store_ops ops = *w->store->ops;

	(void)state;
	n_seen = 0;
	config.purge_interval = OUTBOX_MINUTES;
	world_relay(w, 0, &config);
	worker_step(world_worker(w, 0)); /* opens the store */
	ops.operate.purge = note_purge;
	world_worker(w, 0)->link.store->ops = &ops;
	world_run(w, 90 * OUTBOX_SECONDS);
	assert_int_equal(n_seen, 4);
	assert_int_equal(seen[0].delivered_before, seen[1].delivered_before);
	assert_int_equal(seen[0].delivered_before, seen[2].delivered_before);
	assert_true(seen[3].delivered_before > seen[0].delivered_before);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_deferred_message_waits_and_holds_nobody),
		cmocka_unit_test(an_operator_defers_a_pending_message),
		cmocka_unit_test(an_expired_message_fails_unsent),
		cmocka_unit_test(a_paused_target_claims_nothing),
		cmocka_unit_test(routing_chooses_by_type_kind_and_published),
		cmocka_unit_test(batches_stay_within_their_budgets),
		cmocka_unit_test(a_message_larger_than_the_budget_still_goes),
		cmocka_unit_test(retention_removes_what_is_finished_only),
		cmocka_unit_test(a_busy_relay_cleans_up_too),
		cmocka_unit_test(a_purge_of_several_calls_keeps_its_times),
	};

	return WORLD_MAIN(argc, argv, "schedule", tests);
}
