/* SPDX-License-Identifier: Apache-2.0 */
/* The relay as an application calls it: again and again, after fork(), with nothing, with what it may name. */
#include "store/store.h"
#include "world.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void once_works_again_and_again(void **state)
{
	struct world *w = world_new(2);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	for (size_t i = 1; i <= 3; i++) {
		world_publish_many(w, 10, 5);
		assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_OK);
		assert_int_equal(memory_broker_count(w->brokers[0]), 10 * i);
	}
	memory_broker_down(w->brokers[0], OUTBOX_ECONN);
	world_publish_many(w, 10, 5);
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_ECONN);
	memory_broker_up(w->brokers[0]);
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_OK); /* it knocks at once */
	assert_int_equal(memory_broker_count(w->brokers[0]), 40);
	world_publish_many(w, 10, 5);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	world_publish_many(w, 10, 5);
	assert_int_equal(outbox_relay_run_until_idle(relay, NULL, &err), OUTBOX_OK);
	assert_int_equal(memory_broker_count(w->brokers[0]), 60);
	world_assert_order(w, 0);
	assert_int_equal(outbox_relay_start(relay, &err), OUTBOX_EINVAL);
	outbox_relay_free(relay);
	world_free(w);
}

/* The threads are the parent's, and so are the connections: a child must neither wait for them nor close them. */
static void a_forked_child_is_told_at_once(void **state)
{
	struct world *w = world_new(1);
	struct outbox_target_config target;
	struct outbox_relay_config config = world_threaded(w, &target);
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_start(relay, &err), OUTBOX_OK);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(30); /* ends it when it hangs */
		status = outbox_relay_stop(relay, 0, &err);
		outbox_relay_free(relay);
		_exit(status == OUTBOX_EINVAL && strstr(err.message, "fork") ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	world_publish_many(w, 10, 5);
	assert_int_equal(outbox_relay_stop(relay, 10 * OUTBOX_SECONDS, &err), OUTBOX_OK);
	assert_int_equal(outbox_relay_run_once(relay, &err), OUTBOX_EINVAL);
	outbox_relay_free(relay);
	world_free(w);
}

static void nothing_is_asked_of_no_relay(void **state)
{
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct world *w = world_new(1);
	size_t batches = 1, messages = 1;

	(void)state;
	world_relay_plain(w, 0);
	outbox_relay_counts(w->relays[0], NULL);
	outbox_relay_in_flight(w->relays[0], NULL, NULL);
	counts.delivered = 7;
	outbox_relay_counts(NULL, &counts);
	assert_int_equal(counts.delivered, 0);
	outbox_relay_in_flight(NULL, &batches, &messages);
	assert_int_equal(batches + messages, 0);
	assert_int_equal(outbox_relay_new(NULL, NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(outbox_relay_start(NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(outbox_relay_stop(NULL, 0, NULL), OUTBOX_EINVAL);
	assert_int_equal(outbox_relay_run_once(NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(outbox_relay_run_until_idle(NULL, NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(outbox_registry_new(NULL, NULL), OUTBOX_EINVAL);
	assert_int_equal(outbox_monitor(NULL, NULL, NULL, NULL, NULL), OUTBOX_EINVAL);
	assert_null(outbox_relay_free(NULL));
	assert_null(outbox_registry_free(NULL));
	assert_null(outbox_policy_find(NULL));
	world_free(w);
}

/* A scheme is offered when it can be used: memory: when the program registered it, handler: with any registry. */
static void what_is_offered_can_be_used(void **state)
{
	struct world *w = world_new(1);
	struct outbox_registry *registry;
	struct outbox_target_config target;
	struct outbox_relay_config config = world_config(w, &target);
	struct outbox_relay *relay;
	struct outbox_error err = OUTBOX_ERROR_INIT;

	(void)state;
	target.to = "nosuch:";
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
	assert_non_null(strstr(err.message, "memory:"));
	assert_int_equal(outbox_registry_new(&registry, &err), OUTBOX_OK);
	config.registry = registry;
	assert_int_equal(outbox_relay_new(&relay, &config, &err), OUTBOX_ECONFIG);
	assert_null(strstr(err.message, "memory:"));
	assert_non_null(strstr(err.message, "handler:"));
	/* nobody has to ask for the words */
	assert_int_equal(outbox_relay_new(&relay, &config, NULL), OUTBOX_ECONFIG);
	outbox_registry_free(registry);
	world_free(w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_works_again_and_again),
		cmocka_unit_test(a_forked_child_is_told_at_once),
		cmocka_unit_test(nothing_is_asked_of_no_relay),
		cmocka_unit_test(what_is_offered_can_be_used),
	};

	return WORLD_MAIN(argc, argv, "embed", tests);
}
