/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Does the rate depend on how much waits, and what do several relay processes bring? The processes share
 * the lanes of a paused target first; the rate is that between the receipts of the first claim and of the
 * last settlement, so that nobody's start counts.
 */

#include "bench.h"

#include <outbox/outbox.h>

#include <stdio.h>

#define PROCESSES_MAX 4

static void register_paused(struct place *place, const char *name)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;

	target.name = name;
	target.to = "null:";
	target.start = OUTBOX_START_OLDEST;
	config.store = place->url;
	config.targets = &target;
	config.n_targets = 1;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	outbox_relay_free(relay);
	pg_runf(place->db, "UPDATE outbox_target SET paused = true WHERE name = '%s'", name);
}

static double shared_by(struct place *place, const char *target)
{
	return pg_numberf(place->db,
			  "SELECT CASE WHEN bool_and(owner IS NOT NULL) THEN count(DISTINCT owner) ELSE 0 END"
			  " FROM outbox_lane WHERE target = '%s'",
			  target);
}

static double delivered(struct place *place, const char *target)
{
	return pg_numberf(place->db,
			  "SELECT sum(r.delivered_total) FROM outbox_lane l CROSS JOIN LATERAL ("
			  " SELECT delivered_total FROM outbox_receipt r WHERE r.target = l.target"
			  " AND r.lane = l.lane ORDER BY n DESC LIMIT 1) r WHERE l.target = '%s'",
			  target);
}

static void wait_until(struct place *place, double (*look)(struct place *, const char *),
		       const char *target, double number)
{
	for (int i = 0; look(place, target) < number; i++) {
		if (i > 30000)
			die(target, "waited ten minutes for it");
		rest(20);
	}
}

static double drain(struct place *place, int processes, int messages)
{
	const char *target = place_target();
	pid_t relays[PROCESSES_MAX];
	double rate;

	register_paused(place, target);
	for (int i = 0; i < processes; i++)
		relays[i] = spawn_relay(place, target, true);
	wait_until(place, shared_by, target, processes);
	rest(300);
	pg_runf(place->db, "UPDATE outbox_target SET paused = false WHERE name = '%s'", target);
	wait_until(place, delivered, target, messages);
	rate = messages /
	       pg_numberf(place->db,
			  "SELECT extract(epoch FROM max(settled_at) FILTER (WHERE delivered > 0)"
			  " - min(settled_at) FILTER (WHERE claim_count > 0))"
			  " FROM outbox_receipt WHERE target = '%s'",
			  target);
	for (int i = 0; i < processes; i++)
		end_process(relays[i]);
	return rate;
}

#define COUNTS 3 /* of processes that are compared */

static const int processes[COUNTS] = { 1, 2, 4 };

/* One process and several, in turn. */
static void measure(struct place *place, int waiting, struct series rates[COUNTS])
{
	int repeats = place->bench->sizes.repeats < 5 ? 1 : 3;

	for (int i = 0; i < repeats; i++)
		for (int p = 0; p < COUNTS; p++)
			series_add(&rates[p], drain(place, processes[p], waiting));
}

static void report_processes(const struct series rates[COUNTS], int waiting)
{
	char what[80];

	for (int p = 1; p < COUNTS; p++) {
		snprintf(what, sizeof(what), "%d waiting, %d processes against 1", waiting,
			 processes[p]);
		report_ratio("scale", what, &rates[p], "1 process", &rates[0],
			     waiting > 100000 ? 0.95 : 0);
	}
}

/* Against the rates with fewer waiting, or with nothing. */
static void report_waiting(const struct series rates[COUNTS], int waiting,
			   const struct series before[COUNTS], int fewer, double wanted)
{
	char what[80], beside[40];

	snprintf(beside, sizeof(beside), "%d waiting", fewer);
	for (int p = 0; p < COUNTS; p++) {
		snprintf(what, sizeof(what), "%d waiting, %d process%s, 4 lanes", waiting,
			 processes[p], p ? "es" : "");
		report_ratio("scale", what, &rates[p], fewer ? beside : NULL, &before[p], wanted);
	}
}

void bench_scale(const struct bench *bench)
{
	const int *sizes = bench->sizes.scale;
	struct series rates[SCALES][COUNTS] = { 0 };
	struct place place;
	int waiting = 0;

	place_make(&place, bench, "scale", 4);
	for (int s = 0; s < SCALES && sizes[s]; s++) {
		place_fill(&place, sizes[s] - waiting);
		waiting = sizes[s];
		measure(&place, waiting, rates[s]);
		report_waiting(rates[s], waiting, rates[0], s ? sizes[0] : 0, s ? 0.7 : 0);
		if (s > 1)
			report_waiting(rates[s], waiting, rates[s - 1], sizes[s - 1], 0.95);
		report_processes(rates[s], waiting);
	}
	place_end(&place);
}
