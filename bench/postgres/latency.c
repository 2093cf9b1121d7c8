/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From commit to acknowledgement (../latency.h): a handler in this process notes when it was called.
 */

#include "../latency.h"
#include "bench.h"

#include <outbox/outbox.h>

#include <stdio.h>

static int handle(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	(void)context;
	(void)err;
	latency_note(item->message->key);
	return 0;
}

static struct outbox_relay *start_relay(const struct place *place,
					const struct outbox_registry *registry)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;

	target.name = place_target();
	target.to = "handler:";
	target.start = OUTBOX_START_NOW;
	config.store = place->url;
	config.targets = &target;
	config.n_targets = 1;
	config.registry = registry;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK ||
	    outbox_relay_start(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	rest(500); /* it has its lanes and found nothing */
	return relay;
}

struct load {
	const char *name;
	double rate;
	bool bell;
	double wanted; /* p50 in milliseconds; 0: nothing */
};

static void measure(const struct place *place, const struct outbox_registry *registry,
		    const struct load *load, int n)
{
	struct latency_store store = latency_postgres(place->url);
	struct outbox_relay *relay;
	struct latency latency;
	char what[2][100];

	pg_runf(place->db, "SELECT outbox_doorbell(%s)", load->bell ? "true" : "false");
	relay = start_relay(place, registry);
	latency = latency_measure(&store, n, load->rate);
	outbox_relay_free(relay);
	for (int i = 0; i < 2; i++)
		snprintf(what[i], sizeof(what[i]), "%s, %s: p%d", load->name,
			 load->bell ? "doorbell" : "polling", i ? 99 : 50);
	report(&(struct line){ .bench = "latency",
			       .what = what[0],
			       .value = latency.p50,
			       .unit = "ms",
			       .beside = latency.rate,
			       .beside_what = "messages/s came",
			       .want = load->wanted > 0 ? AT_MOST : WANT_NOTHING,
			       .wanted = load->wanted });
	report(&(struct line){
		.bench = "latency", .what = what[1], .value = latency.p99, .unit = "ms" });
}

void bench_latency(const struct bench *bench)
{
	static const struct load busy[] = { { "100/s", 100, false, 25 },
					    { "100/s", 100, true, 0 },
					    { "1,000/s", 1000, false, 25 },
					    { "1,000/s", 1000, true, 0 } };
	double pause = bench->sizes.idle_pause / 1000.0;
	const struct load idle[] = { { "idle", 1 / pause, false, 0 },
				     { "idle", 1 / pause, true, 3 } };
	struct outbox_registry *registry = NULL;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct place place;

	place_make(&place, bench, "latency", 4);
	if (outbox_registry_new(&registry, &err) != OUTBOX_OK ||
	    outbox_registry_handle(registry, "*", handle, NULL, &err) != OUTBOX_OK)
		die("handler", err.message);
	for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++)
		measure(&place, registry, &busy[i], (int)busy[i].rate * bench->sizes.latency_seconds);
	for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++)
		measure(&place, registry, &idle[i], bench->sizes.idle_messages);
	outbox_registry_free(registry);
	place_end(&place);
}
