/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the answer to COMMIT to the acknowledgement of the broker, at two rates, and what that costs PostgreSQL, beside a
 * SKIP LOCKED poller that is as late as ours. The relay runs in this process as a daemon's does; timed: tells when it
 * has the verdicts. PostgreSQL has the lanes that `outbox init` gives.
 */

#include "passes.h"
#include "poller.h"
#include "timed.h"

#include <stdio.h>

#define LANES 4
#define PAUSE_MIN 0.5 /* of the poller, in milliseconds */

static const struct load {
	const char *name;
	int rate;
} loads[] = { { "100/s", 100 }, { "1,000/s", 1000 } };

#define LOADS (sizeof(loads) / sizeof(loads[0]))

static const struct way {
	const char *name;
	bool bell;
	double p50, p99; /* wanted, in milliseconds; 0: nothing */
} ways[] = { { "polling", false, 6, 0 }, { "doorbell", true, 3, 12 } };

#define WAYS (sizeof(ways) / sizeof(ways[0]))

/* The server's are of all its processes, the publishers' among them. */
struct figures {
	struct latency latency;
	double cpu;     /* % of a core */
	double commits; /* transactions a second */
};

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
	timed_start(true, 0);
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK ||
	    outbox_relay_start(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	rest(500); /* it has its lanes and found nothing */
	return relay;
}

static void add_server(struct figures *figures, const struct meter *meter,
		       const struct place *place, int n)
{
	struct pass pass = meter_end(meter, place, n);

	figures->cpu = pass.cpu * pass.rate / 1e4;
	figures->commits = pass.commits * pass.rate;
}

static double measure_alone(const struct place *place, const struct latency_store *store, int n,
			    int rate)
{
	struct figures figures;
	struct meter meter;

	meter_start(&meter, place);
	latency_publish(store, n, rate);
	add_server(&figures, &meter, place, n);
	return figures.cpu;
}

static void report_alone(const char *bench, const struct place *place, const struct load *load, int n)
{
	struct latency_store ours = latency_postgres(place->url), peer = latency_peer(place->url);
	char what[60];

	pg_run(place->db, "SELECT outbox_doorbell(false)");
	peer_make(place->db, 0);
	snprintf(what, sizeof(what), "%s, publishing alone, CPU of the database", load->name);
	report(&(struct line){ .bench = bench,
			       .what = what,
			       .value = measure_alone(place, &ours, n, load->rate),
			       .unit = "% of a core",
			       .beside = measure_alone(place, &peer, n, load->rate),
			       .beside_what = "into the table of SKIP LOCKED" });
}

static struct figures measure_ours(const struct place *place, const struct broker *broker,
				   bool bell, int n, int rate)
{
	struct latency_store store = latency_postgres(place->url);
	struct outbox_relay *relay;
	struct figures figures;
	struct meter meter;

	pg_runf(place->db, "SELECT outbox_doorbell(%s)", bell ? "true" : "false");
	relay = start_relay(place->url, broker);
	meter_start(&meter, place);
	figures.latency = latency_measure(&store, n, rate);
	add_server(&figures, &meter, place, n);
	outbox_relay_free(relay);
	return figures;
}

static struct figures run_poller(const struct place *place, const struct broker *broker,
				 double pause, int n, int rate)
{
	struct latency_store store = latency_peer(place->url);
	struct poller *poller = poller_start(place, broker, pause);
	struct figures figures;
	struct meter meter;

	rest(500);
	meter_start(&meter, place);
	figures.latency = latency_measure(&store, n, rate);
	add_server(&figures, &meter, place, n);
	poller_stop(poller);
	return figures;
}

/* A message waits for half a pause in the middle: what is missing to p50 with a short pause is made up for twice. */
static struct figures measure_peer(const struct place *place, const struct broker *broker,
				   double p50, int n, int rate)
{
	double least = run_poller(place, broker, PAUSE_MIN, n / 5, rate).latency.p50;
	double pause = PAUSE_MIN + (p50 > least ? 2 * (p50 - least) : 0);

	return run_poller(place, broker, pause, n, rate);
}

static void report_latency(const char *bench, const char *what, const struct latency *latency,
			   double p50, double p99)
{
	char text[2][100];

	for (int k = 0; k < 2; k++)
		snprintf(text[k], sizeof(text[k]), "%s, p%d", what, k ? 99 : 50);
	report(&(struct line){ .bench = bench,
			       .what = text[0],
			       .value = latency->p50,
			       .unit = "ms",
			       .beside = latency->rate,
			       .beside_what = "messages/s came",
			       .want = p50 > 0 ? AT_MOST : WANT_NOTHING,
			       .wanted = p50 });
	report(&(struct line){ .bench = bench,
			       .what = text[1],
			       .value = latency->p99,
			       .unit = "ms",
			       .want = p99 > 0 ? AT_MOST : WANT_NOTHING,
			       .wanted = p99 });
}

static void report_server(const char *bench, const char *what, const struct figures *ours,
			  const struct figures *peer)
{
	char text[2][100], beside[80];

	snprintf(beside, sizeof(beside), "SKIP LOCKED, p50 %.1f, p99 %.1f ms", peer->latency.p50,
		 peer->latency.p99);
	snprintf(text[0], sizeof(text[0]), "%s, CPU of the database", what);
	snprintf(text[1], sizeof(text[1]), "%s, transactions", what);
	report(&(struct line){ .bench = bench,
			       .what = text[0],
			       .value = ours->cpu,
			       .unit = "% of a core",
			       .beside = peer->cpu,
			       .beside_what = beside,
			       .want = AT_MOST,
			       .wanted = peer->cpu });
	report(&(struct line){ .bench = bench,
			       .what = text[1],
			       .value = ours->commits,
			       .unit = "a second",
			       .beside = peer->commits,
			       .beside_what = "SKIP LOCKED" });
}

static void measure_load(const char *bench, const struct place *place, const struct place *one,
			 const struct broker *broker, const struct load *load)
{
	bool judged = broker->ops == &plain_rabbitmq || broker->ops == &plain_nats;
	int n = load->rate * place->bench->sizes.latency_seconds;
	char what[60];

	report_alone(bench, place, load, n);
	for (size_t w = 0; w < WAYS; w++) {
		const struct way *way = &ways[w];
		struct figures ours = measure_ours(place, broker, way->bell, n, load->rate), peer;

		peer = measure_peer(place, broker, ours.latency.p50, n, load->rate);
		snprintf(what, sizeof(what), "%s, %s", load->name, way->name);
		report_latency(bench, what, &ours.latency, judged ? way->p50 : 0,
			       judged ? way->p99 : 0);
		report_server(bench, what, &ours, &peer);
		if (load->rate > 100)
			continue;
		ours = measure_ours(one, broker, way->bell, n, load->rate);
		snprintf(what, sizeof(what), "%s, %s, one lane", load->name, way->name);
		report_latency(bench, what, &ours.latency, 0, 0);
	}
}

static void measure_sqlite(const struct broker *broker, const char *path, int seconds)
{
	struct latency_store store = latency_sqlite(path);
	char bench[60], url[700];

	snprintf(bench, sizeof(bench), "SQLite to %s", broker->ops->name);
	snprintf(url, sizeof(url), "sqlite:%s", path);
	for (size_t i = 0; i < LOADS; i++) {
		struct outbox_relay *relay = start_relay(url, broker);
		struct latency latency =
			latency_measure(&store, loads[i].rate * seconds, loads[i].rate);

		outbox_relay_free(relay);
		report_latency(bench, loads[i].name, &latency, 0, 0);
	}
}

void measure_latency(const struct bench *bench, const struct broker *broker, const char *path)
{
	struct place place, one;
	char name[60];

	broker_make(broker);
	place_make(&place, bench, "latency", LANES);
	place_make(&one, bench, "latency1", 1);
	snprintf(name, sizeof(name), "PostgreSQL to %s", broker->ops->name);
	for (size_t i = 0; i < LOADS; i++)
		measure_load(name, &place, &one, broker, &loads[i]);
	place_end(&one);
	place_end(&place);
	measure_sqlite(broker, path, bench->sizes.latency_seconds);
}
