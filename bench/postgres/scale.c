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

void bench_scale(const struct bench *bench)
{
	static const int processes[] = { 1, 2, 4 };
	struct series first[3] = { 0 };
	struct place place;
	int waiting = 0;

	place_make(&place, bench, "scale", 4);
	for (int s = 0; bench->sizes.scale[s]; s++) {
		place_fill(&place, bench->sizes.scale[s] - waiting);
		waiting = bench->sizes.scale[s];
		for (int p = 0; p < 3; p++) {
			struct series rates = { 0 };
			char what[80];

			for (int i = 0; i < (waiting > 100000 || bench->sizes.repeats < 5 ? 1 : 3);
			     i++)
				series_add(&rates, drain(&place, processes[p], waiting));
			if (s == 0)
				first[p] = rates;
			snprintf(what, sizeof(what), "%d waiting, %d process%s, 4 lanes", waiting,
				 processes[p], processes[p] > 1 ? "es" : "");
			report_ratio("scale", what, &rates, s ? "10000 waiting" : NULL, &first[p],
				     s ? 0.7 : 0);
		}
	}
	place_end(&place);
}
