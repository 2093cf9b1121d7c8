/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Some messages are refused once and tried again a second later: what do the others pay for it on their way to a real
 * broker? The refused ones have keys of their own. A pass ends when all others are acknowledged.
 */

#include "passes.h"
#include "timed.h"

#include <stdio.h>

#define LANES 4
#define MANY 100000 /* more than these are drained once each way */

/* none, every tenth, every hundredth */
static const struct way {
	int nth;
	double wanted; /* of the rate when none is refused */
} ways[] = { { 0, 0 }, { 10, 0.6 }, { 100, 0.9 } };

#define WAYS (sizeof(ways) / sizeof(ways[0]))

struct result {
	struct series rate, ratio, cpu;
};

static struct outbox_relay *make_relay(const char *name, const struct place *place,
				       const struct broker *broker)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;

	target.name = name;
	target.to = broker->to;
	target.start = OUTBOX_START_OLDEST;
	config.store = place->url;
	config.targets = &target;
	config.n_targets = 1;
	config.batch_messages = BATCH;
	config.purge_interval = OUTBOX_NEVER;
	config.registry = timed_registry();
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	return relay;
}

static struct pass pass(struct place *place, const struct broker *broker, int messages, int nth)
{
	long wanted = nth ? messages - messages / nth : messages;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	const char *name = place_target();
	struct outbox_relay *relay;
	struct meter meter;
	struct pass result;
	struct mark first;
	double end;

	broker_make(broker);
	relay = make_relay(name, place, broker);
	timed_start(false, nth);
	meter_start(&meter, place);
	if (outbox_relay_start(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	while (timed_good() < wanted)
		rest(1);
	end = now_seconds();
	result = meter_end(&meter, place, (int)wanted);
	first = timed_first();
	result.rate = (double)(wanted - (long)first.messages) / (end - first.time);
	if (outbox_relay_stop(relay, 30 * OUTBOX_SECONDS, &err) != OUTBOX_OK)
		die("relay", err.message);
	outbox_relay_free(relay);
	pg_runf(place->db, "DELETE FROM outbox_detour WHERE target = '%s'", name);
	return result;
}

static void report_way(const struct broker *broker, int messages, const struct result *results,
		       size_t w)
{
	char bench[60], what[60], cpu[60];

	snprintf(bench, sizeof(bench), "trouble to %s", broker->ops->name);
	snprintf(what, sizeof(what), "one of %d refused once, %d waiting", ways[w].nth, messages);
	snprintf(cpu, sizeof(cpu), "server CPU a message, one of %d", ways[w].nth);
	report(&(struct line){ .bench = bench,
			       .what = what,
			       .ours = series_median(&results[w].rate),
			       .beside = series_median(&results[0].rate),
			       .beside_what = "none refused",
			       .value = series_median(&results[w].ratio),
			       .unit = "x",
			       .want = AT_LEAST,
			       .wanted = ways[w].wanted });
	report(&(struct line){ .bench = bench,
			       .what = cpu,
			       .value = series_median(&results[w].cpu),
			       .unit = "us",
			       .beside = series_median(&results[0].cpu),
			       .beside_what = "none refused" });
}

static void measure(struct place *place, const struct broker *broker, int messages)
{
	struct result results[WAYS] = { 0 };

	for (int i = 0; i < (messages > MANY ? 1 : 3); i++) {
		struct pass passes[WAYS];

		for (size_t k = 0; k < WAYS; k++) {
			size_t w = i % 2 ? WAYS - 1 - k : k;

			passes[w] = pass(place, broker, messages, ways[w].nth);
		}
		for (size_t w = 0; w < WAYS; w++) {
			series_add(&results[w].rate, passes[w].rate);
			series_add(&results[w].ratio, passes[w].rate / passes[0].rate);
			series_add(&results[w].cpu, passes[w].cpu);
		}
	}
	for (size_t w = 1; w < WAYS; w++)
		report_way(broker, messages, results, w);
}

void measure_trouble(const struct bench *bench, const struct broker *broker)
{
	struct place place;
	int filled = 0;

	place_make(&place, bench, "trouble", LANES);
	for (const int *messages = bench->sizes.trouble; *messages; messages++) {
		place_fill(&place, *messages - filled);
		filled = *messages;
		measure(&place, broker, *messages);
	}
	place_end(&place);
}
