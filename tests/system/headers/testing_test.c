/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An application's own test with liboutbox-testing: what it publishes in a transaction arrives when that is
 * committed, and only then. The build compiles it as an application would, against what `make install` installs:
 *
 *   cc testing_test.c $(pkg-config --cflags --libs outbox-testing) && ./a.out
 */

#include <outbox/testing.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct outbox_error err = OUTBOX_ERROR_INIT;

/* The first failure ends the test. */
static void expect(int good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	if (good)
		return;
	printf("# %s\n", err.message);
	exit(1);
}

/* ---- the application: an order and its message, in one transaction --------------------------- */

static int place_order(struct outbox_testing_tx *tx, const char *id, outbox_time due_at)
{
	struct outbox_message message = OUTBOX_MESSAGE_INIT;

	message.id = id;
	message.type = "order.placed";
	message.key = "42";
	message.data = "{\"id\":42}";
	message.size = strlen((const char *)message.data);
	message.due_at = due_at;
	return outbox_testing_publish(tx, &message, &err);
}

/* ---- its test ------------------------------------------------------------------------------ */

static struct outbox_relay *make_relay(struct outbox_testing *testing,
				       struct outbox_registry *registry)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay *relay = NULL;

	target.name = "events";
	target.to = OUTBOX_TESTING_TO;
	config.store = OUTBOX_TESTING_STORE;
	config.targets = &target;
	config.n_targets = 1;
	config.registry = registry;
	config.clock = outbox_testing_clock(testing);
	expect(outbox_relay_new(&relay, &config, &err) == OUTBOX_OK, "a relay on the memory store");
	return relay;
}

static void see_what_arrives(struct outbox_testing *testing, struct outbox_relay *relay)
{
	struct outbox_testing_record record;
	struct outbox_testing_tx *tx = outbox_testing_begin(testing);
	outbox_time now;

	expect(place_order(tx, "order-1", 0) == OUTBOX_OK, "published");
	outbox_testing_rollback(tx);
	expect(outbox_relay_run_once(relay, &err) == OUTBOX_OK && outbox_testing_count(testing) == 0,
	       "rolled back: nothing is delivered");

	tx = outbox_testing_begin(testing);
	now = outbox_testing_clock(testing)->wall(outbox_testing_clock(testing));
	expect(place_order(tx, "order-2", 0) == OUTBOX_OK &&
		       place_order(tx, "order-3", now + OUTBOX_MINUTES) == OUTBOX_OK,
	       "published, one of them for later");
	outbox_testing_commit(tx);
	expect(outbox_relay_run_once(relay, &err) == OUTBOX_OK && outbox_testing_count(testing) == 1 &&
		       outbox_testing_at(testing, 0, &record, &err) == OUTBOX_OK,
	       "committed: what is due is delivered");
	expect(strcmp(record.id, "order-2") == 0 && strcmp(record.type, "order.placed") == 0 &&
		       strcmp(record.key, "42") == 0 && record.size == strlen("{\"id\":42}") &&
		       memcmp(record.body, "{\"id\":42}", record.size) == 0,
	       "as it was published");
	outbox_testing_step(testing, OUTBOX_MINUTES);
	expect(outbox_relay_run_once(relay, &err) == OUTBOX_OK && outbox_testing_count(testing) == 2,
	       "time goes on when the test says so");
	expect(outbox_testing_at(testing, 2, &record, &err) == OUTBOX_EINVAL, "no third one");
}

int main(void)
{
	struct outbox_testing *testing = NULL;
	struct outbox_registry *registry = NULL;
	struct outbox_relay *relay;

	expect(outbox_testing_new(&testing, &err) == OUTBOX_OK &&
		       outbox_registry_new(&registry, &err) == OUTBOX_OK &&
		       outbox_testing_register(testing, registry, &err) == OUTBOX_OK,
	       "an outbox in memory");
	relay = make_relay(testing, registry);
	see_what_arrives(testing, relay);
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	outbox_testing_free(testing);
	puts("1..9");
	return 0;
}
