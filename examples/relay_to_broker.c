/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A relay to a broker, embedded in a program: it delivers what is due now and exits. docs/embedding.md quotes it.
 *
 *   cc relay_to_broker.c $(pkg-config --cflags --libs outbox-brokers)
 *   ./a.out sqlite:app.db 'amqp://localhost/?exchange=events'
 */

#include <outbox/brokers.h>
#include <outbox/outbox.h>

#include <stdio.h>

static int relay(const char *store, const char *to, struct outbox_error *err)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_registry *registry = NULL;
	struct outbox_relay *relay = NULL;
	int status;

	target.name = "events";
	target.to = to;
	config.store = store;
	config.targets = &target;
	config.n_targets = 1;

	status = outbox_registry_new(&registry, err);
	if (status == OUTBOX_OK)
		status = outbox_brokers_register(registry, err);
	config.registry = registry;
	if (status == OUTBOX_OK)
		status = outbox_relay_new(&relay, &config, err);
	if (status == OUTBOX_OK)
		status = outbox_relay_run_once(relay, err);
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	return status;
}

int main(int argc, char **argv)
{
	struct outbox_error err = OUTBOX_ERROR_INIT;

	if (argc != 3) {
		fprintf(stderr, "usage: relay_to_broker STORE-URL BROKER-URL\n");
		return 2;
	}
	if (relay(argv[1], argv[2], &err) != OUTBOX_OK) {
		fprintf(stderr, "relay_to_broker: %s\n", err.message);
		return 1;
	}
	return 0;
}
