/* SPDX-License-Identifier: Apache-2.0 */

/* What a relay with nothing to do costs the database. */

#include "bench.h"

#include <stdio.h>

/* Transactions and CPU a second, of the whole server. */
static void watch(const struct place *place, double *ret_queries, double *ret_cpu)
{
	double start, cpu, seconds, queries;

	queries = server_commits(place->db);
	cpu = server_cpu(place->bench);
	start = now_seconds();
	rest(place->bench->sizes.idle_seconds * 1000L);
	seconds = now_seconds() - start;
	*ret_cpu = (server_cpu(place->bench) - cpu) / seconds;
	*ret_queries = (server_commits(place->db) - queries) / seconds;
}

static void measure(struct place *place, bool bell)
{
	double queries, cpu, none_queries, none_cpu;
	char what[2][80];
	pid_t relay;

	pg_runf(place->db, "SELECT outbox_doorbell(%s)", bell ? "true" : "false");
	watch(place, &none_queries, &none_cpu);
	relay = spawn_relay(place, place_target(), false);
	rest(2000);
	watch(place, &queries, &cpu);
	end_process(relay);
	for (int i = 0; i < 2; i++)
		snprintf(what[i], sizeof(what[i]), "%s, 4 lanes: %s", bell ? "doorbell" : "polling",
			 i ? "CPU of the database" : "transactions");
	report(&(struct line){ .bench = "idle",
			       .what = what[0],
			       .value = queries,
			       .unit = "a second",
			       .beside = none_queries,
			       .beside_what = "without a relay" });
	report(&(struct line){ .bench = "idle",
			       .what = what[1],
			       .value = cpu * 100,
			       .unit = "% of a core",
			       .beside = none_cpu * 100,
			       .beside_what = "without a relay",
			       .want = AT_MOST,
			       .wanted = 2 });
}

void bench_idle(const struct bench *bench)
{
	struct place place;

	place_make(&place, bench, "idle", 4);
	place_fill(&place, 10000);
	measure(&place, false);
	measure(&place, true);
	place_end(&place);
}
