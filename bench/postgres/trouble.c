/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Some messages are refused once and tried again a second later: what do the others pay for it? Every pass is a target
 * of its own that starts at the oldest message. A pass ends when all others are delivered.
 */

#include "bench.h"

#include <outbox/outbox.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 500

/* A broker that refuses every nth message once; 0: none. */
static int refuse_nth;
static _Atomic long good; /* how many of the others it has taken */

static void broker_disconnect(struct outbox_transport *transport)
{
	(void)transport;
}

static void broker_close(struct outbox_transport *transport)
{
	free(transport);
}

static int broker_connect(struct outbox_transport *transport, outbox_time deadline,
			  struct outbox_error *err)
{
	(void)transport;
	(void)deadline;
	(void)err;
	return OUTBOX_OK;
}

static int broker_publish(struct outbox_transport *transport, struct outbox_batch *batch,
			  outbox_time deadline, struct outbox_error *err)
{
	(void)transport;
	(void)deadline;
	(void)err;
	for (size_t i = 0; i < batch->count; i++) {
		bool bad = refuse_nth && batch->items[i]->seq % refuse_nth == 0;

		if (bad && !batch->items[i]->attempts) {
			outbox_batch_verdict(batch, i, OUTBOX_RETRY, 0, "not now");
			continue;
		}
		outbox_batch_verdict(batch, i, OUTBOX_ACKED, 0, NULL);
		good += !bad;
	}
	return OUTBOX_OK;
}

static int broker_open(const struct outbox_transport_config *config,
		       struct outbox_transport **ret_transport, struct outbox_error *err);

static const char *const schemes[] = { "trouble", NULL };
static const struct outbox_transport_ops broker_ops = {
	.struct_size = sizeof(struct outbox_transport_ops),
	.name = "trouble",
	.schemes = schemes,
	.help = "trouble:, refuses some messages once",
	.open = broker_open,
	.connect = broker_connect,
	.publish = broker_publish,
	.disconnect = broker_disconnect,
	.close = broker_close,
};

static int broker_open(const struct outbox_transport_config *config,
		       struct outbox_transport **ret_transport, struct outbox_error *err)
{
	struct outbox_transport *transport = calloc(1, sizeof(*transport));

	(void)config;
	if (!transport)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	transport->ops = &broker_ops;
	*ret_transport = transport;
	return OUTBOX_OK;
}

static struct pass pass(struct place *place, int messages, int nth)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_registry *registry = NULL;
	struct outbox_relay *relay = NULL;
	long wanted = nth ? messages - messages / nth : messages;
	struct meter meter;
	struct pass result;

	refuse_nth = nth;
	good = 0;
	target.name = place_target();
	target.to = "trouble:";
	target.start = OUTBOX_START_OLDEST;
	config.store = place->url;
	config.targets = &target;
	config.n_targets = 1;
	config.batch_messages = BATCH;
	config.purge_interval = OUTBOX_NEVER;
	if (outbox_registry_new(&registry, &err) != OUTBOX_OK ||
	    outbox_registry_add_transport(registry, &broker_ops, NULL, &err) != OUTBOX_OK)
		die("registry", err.message);
	config.registry = registry;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	meter_start(&meter, place);
	if (outbox_relay_start(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	while (good < wanted)
		rest(2);
	result = meter_end(&meter, place, (int)wanted);
	if (outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, &err) != OUTBOX_OK)
		die("relay", err.message);
	outbox_relay_free(relay);
	outbox_registry_free(registry);
	pg_runf(place->db, "DELETE FROM outbox_detour WHERE target = '%s'", target.name);
	return result;
}

static void measure(struct place *place, int messages, int nth, double wanted)
{
	struct series clean = { 0 }, troubled = { 0 }, clean_cpu = { 0 }, troubled_cpu = { 0 };
	char what[80];

	for (int i = 0; i < 3; i++) {
		struct pass with = pass(place, messages, nth), without = pass(place, messages, 0);

		series_add(&troubled, with.rate);
		series_add(&troubled_cpu, with.cpu);
		series_add(&clean, without.rate);
		series_add(&clean_cpu, without.cpu);
	}
	snprintf(what, sizeof(what), "one of %d refused once, %d waiting", nth, messages);
	report_ratio("trouble", what, &troubled, "none refused", &clean, wanted);
	report(&(struct line){ .bench = "trouble",
			       .what = "server CPU a message",
			       .value = series_median(&troubled_cpu),
			       .unit = "us",
			       .beside = series_median(&clean_cpu),
			       .beside_what = "none refused" });
}

void bench_trouble(const struct bench *bench)
{
	struct place place;
	int filled = 0;

	place_make(&place, bench, "trouble", 4);
	for (const int *messages = bench->sizes.trouble; *messages; messages++) {
		place_fill(&place, *messages - filled);
		filled = *messages;
		measure(&place, *messages, 10, 0.6);
		measure(&place, *messages, 100, 0.9);
	}
	place_end(&place);
}
