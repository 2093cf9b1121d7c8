/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From commit to acknowledgement: publishers in threads note when their COMMIT was answered, a handler in
 * this process notes when it was called. One clock for both.
 */

#include "bench.h"

#include <outbox/outbox.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES_MAX 100000
#define PUBLISHERS_MAX 4

static double committed[MESSAGES_MAX];
static double acknowledged[MESSAGES_MAX];
static atomic_int seen;

struct publisher {
	pthread_t thread;
	const char *url;
	int first, step, end; /* messages first, first + step, ... */
	double start, rate;   /* of all publishers together */
};

static int handle(void *context, const struct outbox_item *item, struct outbox_error *err)
{
	long i = strtol(item->message->key, NULL, 10);

	(void)context;
	(void)err;
	if (i >= 0 && i < MESSAGES_MAX)
		acknowledged[i] = now_seconds();
	atomic_fetch_add(&seen, 1);
	return 0;
}

static void *publish(void *argument)
{
	struct publisher *p = argument;
	PGconn *db = pg_open(p->url);
	PGresult *result = PQprepare(db, "publish",
				     "INSERT INTO outbox_message (type, key, payload)"
				     " VALUES ('bench.message', $1, $2)",
				     0, NULL);

	pg_check(db, result, PGRES_COMMAND_OK, "publish");
	PQclear(result);
	for (int i = p->first; i < p->end; i += p->step) {
		double wait = p->start + i / p->rate - now_seconds();
		char key[16];
		const char *values[] = { key, payload() };

		if (wait > 0)
			rest((long)(wait * 1000));
		snprintf(key, sizeof(key), "%d", i);
		result = PQexecPrepared(db, "publish", 2, values, NULL, NULL, 0);
		committed[i] = now_seconds();
		pg_check(db, result, PGRES_COMMAND_OK, "publish");
		PQclear(result);
	}
	PQfinish(db);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Publish n messages at this rate to a relay that runs; sorted latencies in milliseconds. */
static double *latencies(const struct place *place, int n, double rate, double *ret_rate)
{
	static double sorted[MESSAGES_MAX];
	struct publisher publishers[PUBLISHERS_MAX];
	int threads = rate > 200 ? PUBLISHERS_MAX : 1;
	double start = now_seconds() + 0.01;

	atomic_store(&seen, 0);
	for (int t = 0; t < threads; t++) {
		publishers[t] = (struct publisher){ .url = place->url,
						    .first = t,
						    .step = threads,
						    .end = n,
						    .start = start,
						    .rate = rate };
		if (pthread_create(&publishers[t].thread, NULL, publish, &publishers[t]))
			die("latency", "cannot start a thread");
	}
	for (int t = 0; t < threads; t++)
		pthread_join(publishers[t].thread, NULL);
	*ret_rate = n / (now_seconds() - start);
	for (int i = 0; atomic_load(&seen) < n; i++) {
		if (i > 1000)
			die("latency", "not every message was delivered within 10 s");
		rest(10);
	}
	for (int i = 0; i < n; i++) /* the handler may run before COMMIT is answered */
		sorted[i] = acknowledged[i] > committed[i] ? (acknowledged[i] - committed[i]) * 1000
							   : 0;
	qsort(sorted, (size_t)n, sizeof(sorted[0]), compare);
	return sorted;
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
	struct outbox_relay *relay;
	char what[2][100];
	double *sorted, rate;

	pg_runf(place->db, "SELECT outbox_doorbell(%s)", load->bell ? "true" : "false");
	relay = start_relay(place, registry);
	sorted = latencies(place, n, load->rate, &rate);
	outbox_relay_free(relay);
	for (int i = 0; i < 2; i++)
		snprintf(what[i], sizeof(what[i]), "%s, %s: p%d", load->name,
			 load->bell ? "doorbell" : "polling", i ? 99 : 50);
	report(&(struct line){ .bench = "latency",
			       .what = what[0],
			       .value = sorted[n / 2],
			       .unit = "ms",
			       .beside = rate,
			       .beside_what = "messages/s came",
			       .want = load->wanted > 0 ? AT_MOST : WANT_NOTHING,
			       .wanted = load->wanted });
	report(&(struct line){ .bench = "latency",
			       .what = what[1],
			       .value = sorted[(n - 1) * 99 / 100],
			       .unit = "ms" });
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
