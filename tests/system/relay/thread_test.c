/* SPDX-License-Identifier: Apache-2.0 */
/* The relay with its real threads and the real clock: start, stop, once, until idle, handlers. */
#include "store/store.h"
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void until_idle_delivers_everything(void **state)
{
	struct world *w = world_new(4);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct memory_rule rule = { .seq = 5, .fate = MEMORY_RETRY, .times = 1 };
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	config.workers = 4;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 200, 20);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	assert_int_equal(memory_broker_count(w->brokers[0]), 200);
	world_assert_order(w, 0);
	outbox_relay_free(relay);
	world_free(w);
}

/* The store is away when it is looked whether anything is left, three times. */
static int away_for_a_while(void *context, const char *op, enum memory_phase phase,
			    struct outbox_error *err)
{
	int *left = context;

	if (phase != MEMORY_BEFORE || strcmp(op, "stats") || !*left)
		return OUTBOX_OK;
	--*left;
	return outbox_fail(err, OUTBOX_ECONN, "away for a while");
}

static void until_idle_keeps_no_trouble_that_passed(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int left = 3;

	(void)state;
	world_publish_many(w, 3, 1);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	memory_db_set_fault(w->db, away_for_a_while, &left);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	assert_int_equal(left, 0);
	assert_int_equal(err.status, OUTBOX_OK);
	outbox_relay_free(relay);
	memory_db_set_fault(w->db, NULL, NULL);
	assert_int_equal(memory_broker_count(w->brokers[0]), 3);
	world_free(w);
}

static void until_idle_ends_when_nothing_will_move(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct memory_rule rule = { .seq = 1, .fate = MEMORY_REJECT };
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	target.hold = true;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 3, 1);
	world_publish(w, "order.placed", "other", NULL);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	outbox_relay_free(relay);
	assert_string_equal(world_arrived(w, 0), "4");
	assert_int_equal(store_target_pause(w->store, "events", true, "t", "r", NULL), 0);
	world_publish(w, "order.placed", "third", NULL);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	outbox_relay_free(relay);
	assert_string_equal(world_arrived(w, 0), "4");
	world_free(w);
}

static void once_returns_when_nothing_is_due(void **state)
{
	struct world *w = world_new(2);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct memory_rule rule = { .seq = 5, .fate = MEMORY_RETRY };
	struct outbox_policy slow = *outbox_policy_find("protean");
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	target.policy = &slow;
	assert_int_equal(memory_broker_rule(w->brokers[0], &rule, NULL), OUTBOX_OK);
	world_publish_many(w, 30, 30);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_OK);
	assert_int_equal(memory_broker_count(w->brokers[0]), 29);
	world_assert(w, "events", 5, OUTBOX_PENDING, OUTBOX_WAITING, 1);
	outbox_relay_free(relay);
	world_free(w);
}

static void once_says_that_the_broker_is_away(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	memory_broker_down(w->brokers[0], OUTBOX_ECONN);
	world_publish_many(w, 3, 0);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_ECONN);
	assert_non_null(strstr(err.message, "target \"events\""));
	outbox_relay_free(relay);
	world_assert(w, "events", 1, OUTBOX_PENDING, OUTBOX_NEW, 0);
	world_free(w);
}

static void stopping_under_load_loses_and_doubles_nothing(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		struct world *w = world_new(4);
		struct outbox_target_config target;
		struct outbox_relay_config config = world_threaded(w, &target);
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_relay *relay;

		config.workers = 2;
		world_publish_many(w, 300, 40);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
			if (i < 2) {
				assert_int_equal(outbox_relay_start(relay, &err), OUTBOX_OK);
				while (memory_broker_count(w->brokers[0]) < (size_t)(i + 1) * 60)
					continue;
				assert_int_equal(outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, &err),
						 OUTBOX_OK);
			} else {
				assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err),
						 OUTBOX_OK);
			}
			outbox_relay_free(relay);
		}
		assert_int_equal(memory_broker_count(w->brokers[0]), 300);
		world_assert_order(w, 0);
		world_free(w);
	}
}

static void take_a_while(void *context, const struct outbox_batch *batch)
{
	(void)context;
	(void)batch;
	usleep(20000);
}

static void *run_once(void *relay)
{
	return outbox_relay_run_once(relay, NULL) ? relay : NULL;
}

static void stop_and_once_may_meet(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct memory_hooks hooks = { .on_publish = take_a_while };
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;
	pthread_t thread;
	void *failed;

	(void)state;
	memory_broker_hooks(w->brokers[0], &hooks);
	world_publish_many(w, 50, 1);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(pthread_create(&thread, NULL, run_once, relay), 0);
	while (!memory_broker_count(w->brokers[0]))
		usleep(1000);
	assert_int_equal(outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, &err), OUTBOX_OK);
	pthread_join(thread, &failed);
	assert_null(failed);
	outbox_relay_free(relay);
	assert_in_range(memory_broker_count(w->brokers[0]), 1, 49);
	world_free(w);
}

/* Nothing after the first settlement ever works again: it ends, and says why. */
static int nothing_works(void *context, const char *op, enum memory_phase phase,
			 struct outbox_error *err)
{
	int *calls = context;

	if (strcmp(op, "settle_and_claim") != 0 || phase != MEMORY_BEFORE || (*calls)++ < 2)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EFULL, "the disk is full");
}

static void once_says_why_it_gave_up(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay;
	int calls = 0;

	(void)state;
	world_publish_many(w, 50, 5);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	memory_db_set_fault(w->db, nothing_works, &calls);
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_EFULL);
	assert_non_null(strstr(err.message, "the disk is full"));
	memory_db_set_fault(w->db, NULL, NULL);
	outbox_relay_free(relay);
	world_free(w);
}

struct handled {
	int placed, failed_once;
};

static int on_placed(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	struct handled *h = context;

	if (item->seq == 2 && !h->failed_once++)
		return outbox_fail(err, OUTBOX_EINVAL, "not today");
	h->placed++;
	return OUTBOX_OK;
}

static void handlers_are_called_per_type(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct handled handled = { 0 };
	struct outbox_relay *relay;

	(void)state;
	target.to = "handler:";
	assert_int_equal(outbox_registry_handle(w->registries[0], "order.placed", on_placed,
						&handled, &err),
			 OUTBOX_OK);
	world_publish_many(w, 4, 2);
	world_publish(w, "user.created", "x", NULL);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	outbox_relay_free(relay);
	assert_int_equal(handled.placed, 4);
	world_assert(w, "events", 2, OUTBOX_DELIVERED, 0, 1);
	world_assert(w, "events", 5, OUTBOX_FAILED, 0, 1);
	assert_non_null(strstr(world_delivery(w, "events", 5).error, "unknown event type"));
	world_free(w);
}

/* Each has its own deliveries: one that fails neither repeats nor holds up the other's. */
static void two_handlers_of_one_type_are_two_targets(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config targets[2];
	struct outbox_relay_config config = world_threaded(w, &targets[0]);
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct handled mailer = { 0 }, books = { .failed_once = 1 };
	struct outbox_relay *relay;

	(void)state;
	targets[1] = targets[0];
	targets[0].to = "handler:mailer";
	targets[1].name = "books";
	targets[1].to = "handler:books";
	config.targets = targets;
	config.n_targets = 2;
	assert_int_equal(outbox_registry_handle_as(w->registries[0], "mailer", "order.placed",
						   on_placed, &mailer, &err),
			 OUTBOX_OK);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "handler:books"));
	assert_int_equal(outbox_registry_handle_as(w->registries[0], "books", "order.placed",
						   on_placed, &books, &err),
			 OUTBOX_OK);
	assert_int_equal(outbox_registry_handle_as(w->registries[0], "books", "order.placed",
						   on_placed, &books, &err),
			 OUTBOX_ECONFLICT);
	assert_int_equal(outbox_registry_handle_as(w->registries[0], "No name", "order.placed",
						   on_placed, &books, &err),
			 OUTBOX_EINVAL);
	world_publish_many(w, 4, 2);
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	outbox_relay_free(relay);
	assert_int_equal(mailer.placed, 4);
	assert_int_equal(books.placed, 4);
	world_assert(w, "events", 2, OUTBOX_DELIVERED, 0, 1);
	world_assert(w, "books", 2, OUTBOX_DELIVERED, 0, 0);
	world_free(w);
}

static void bad_configurations_are_told(void **state)
{
	static const struct {
		const char *name, *to, *expected;
		outbox_time lease, timeout;
		int workers;
	} cases[] = {
		{ "Events", "memory:", "Events", 0, 0, 0 },
		{ "events", NULL, "to: missing", 0, 0, 0 },
		{ "events", "carrier-pigeon:", "carrier-pigeon", 0, 0, 0 },
		{ "events", "memory:", "workers: 65", 0, 0, 65 },
		{ "events", "memory:", "publish_timeout", OUTBOX_SECONDS, 2 * OUTBOX_SECONDS, 0 },
		{ "events", "memory:", "lease", OUTBOX_MILLISECONDS, 0, 0 },
	};
	struct world *w = world_new(1);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outbox_target_config target;
		struct outbox_relay_config config = world_threaded(w, &target);
		struct outbox_error err = OUTBOX_ERROR_INIT;
		struct outbox_relay *relay = NULL;

		target.name = cases[i].name;
		target.to = cases[i].to;
		config.workers = cases[i].workers;
		config.lease = cases[i].lease;
		config.publish_timeout = cases[i].timeout;
		assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
		assert_null(relay);
		if (!strstr(err.message, cases[i].expected))
			fail_msg("\"%s\" does not name %s", err.message, cases[i].expected);
	}
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(until_idle_delivers_everything),
		cmocka_unit_test(until_idle_ends_when_nothing_will_move),
		cmocka_unit_test(once_returns_when_nothing_is_due),
		cmocka_unit_test(once_says_that_the_broker_is_away),
		cmocka_unit_test(stopping_under_load_loses_and_doubles_nothing),
		cmocka_unit_test(handlers_are_called_per_type),
		cmocka_unit_test(two_handlers_of_one_type_are_two_targets),
		cmocka_unit_test(stop_and_once_may_meet),
		cmocka_unit_test(bad_configurations_are_told),
	};
	/* by faults in the store's calls */
	const struct CMUnitTest memory_tests[] = {
		cmocka_unit_test(until_idle_keeps_no_trouble_that_passed),
		cmocka_unit_test(once_says_why_it_gave_up),
	};
	int failed = WORLD_MAIN(argc, argv, "thread", tests);

	if (world_kind == WORLD_MEMORY)
		failed += WORLD_MAIN(argc, argv, "thread-store", memory_tests);
	return failed;
}
