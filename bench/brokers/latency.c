/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the answer to COMMIT to the acknowledgement of the broker, at two rates. The relay runs in this process as a
 * daemon's does; timed: tells when it has the verdicts. PostgreSQL has the lanes that `outbox init` gives.
 */

#include "passes.h"
#include "timed.h"

#include <stdio.h>

static struct outbox_relay *start_relay(const char *url, const struct broker *broker)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;

	target.name = place_target();
	target.to = broker->to;
	target.start = OUTBOX_START_NOW;
	config.store = url;
	config.targets = &target;
	config.n_targets = 1;
	config.registry = timed_registry();
	timed_start(true);
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK ||
	    outbox_relay_start(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	rest(500); /* it has its lanes and found nothing */
	return relay;
}

static void measure(const char *bench, const char *how, const char *url,
		    const struct latency_store *store, const struct broker *broker, int seconds)
{
	static const struct {
		const char *name;
		double rate;
	} loads[] = { { "100/s", 100 }, { "1,000/s", 1000 } };

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		struct outbox_relay *relay = start_relay(url, broker);
		struct latency latency =
			latency_measure(store, (int)loads[i].rate * seconds, loads[i].rate);
		char what[2][60];

		outbox_relay_free(relay);
		for (int k = 0; k < 2; k++)
			snprintf(what[k], sizeof(what[k]), "%s%s, p%d", loads[i].name, how,
				 k ? 99 : 50);
		report(&(struct line){ .bench = bench,
				       .what = what[0],
				       .value = latency.p50,
				       .unit = "ms",
				       .beside = latency.rate,
				       .beside_what = "messages/s came" });
		report(&(struct line){
			.bench = bench, .what = what[1], .value = latency.p99, .unit = "ms" });
	}
}

void measure_latency(const struct bench *bench, const struct broker *broker, const char *path)
{
	struct latency_store store;
	struct place place;
	char name[60], url[700];

	broker_make(broker);
	place_make(&place, bench, "latency", 4);
	store = latency_postgres(place.url);
	snprintf(name, sizeof(name), "PostgreSQL to %s", broker->ops->name);
	pg_run(place.db, "SELECT outbox_doorbell(false)");
	measure(name, ", polling", place.url, &store, broker, bench->sizes.latency_seconds);
	pg_run(place.db, "SELECT outbox_doorbell(true)");
	measure(name, ", doorbell", place.url, &store, broker, bench->sizes.latency_seconds);
	place_end(&place);
	store = latency_sqlite(path);
	snprintf(name, sizeof(name), "SQLite to %s", broker->ops->name);
	snprintf(url, sizeof(url), "sqlite:%s", path);
	measure(name, "", url, &store, broker, bench->sizes.latency_seconds);
}
