/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing, by pgbench: transactions with one business row, alone and with a message; the doorbell off
 * and on; a NOTIFY by every message, which is what we do not do. All variants in turn, forwards and
 * backwards, and each ratio is the median of those of the rounds.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum variant {
	BUSINESS,    /* no message, no relay */
	MESSAGE,     /* no relay */
	RELAY,       /* a relay delivers at the same time; no doorbell */
	RELAY_BELL,  /* the same with a doorbell: it is awake, since there is work */
	BELL_ASLEEP, /* nobody ever wakes up: every transaction rings */
	NOTIFY,      /* no doorbell; a trigger that always notifies */
	VARIANTS
};

static double pgbench(const struct place *place, const char *script, int clients)
{
	char command[2000], line[300];
	double tps = 0;
	FILE *pipe;

	snprintf(command, sizeof(command),
		 "'%s/pgbench' -n -M prepared -c %d -j %d -T %d -f '%s/%s' '%s' 2>&1",
		 place->bench->bin, clients, clients > 1 ? 2 : 1,
		 place->bench->sizes.publish_seconds, place->bench->here, script, place->url);
	pipe = popen(command, "re");
	if (!pipe)
		die("pgbench", "cannot be started");
	while (fgets(line, sizeof(line), pipe)) {
		if (strncmp(line, "tps = ", 6) == 0)
			tps = strtod(line + 6, NULL);
		if (strstr(line, "rror"))
			fprintf(stderr, "%s", line);
	}
	if (pclose(pipe) != 0 || tps <= 0)
		die("pgbench", "it failed");
	return tps;
}

/* Somebody listens and never wakes up. */
static PGconn *sleeper(const struct place *place)
{
	PGconn *db = pg_open(place->url);

	pg_run(db, "SELECT outbox_listen()");
	return db;
}

static double measure(struct place *place, enum variant variant, int clients)
{
	bool bell = variant == RELAY_BELL || variant == BELL_ASLEEP;
	PGconn *asleep = NULL;
	pid_t relay = 0;
	double tps;

	pg_runf(place->db, "SELECT outbox_doorbell(%s)", bell ? "true" : "false");
	if (variant == NOTIFY)
		pg_run(place->db,
		       "CREATE TRIGGER always AFTER INSERT ON outbox_message FOR EACH STATEMENT"
		       " EXECUTE FUNCTION outbox_ring('always')");
	if (variant == BELL_ASLEEP)
		asleep = sleeper(place);
	if (variant == NOTIFY) {
		asleep = pg_open(place->url);
		pg_run(asleep, "LISTEN always");
	}
	if (variant == RELAY || variant == RELAY_BELL) {
		relay = spawn_relay(place, place_target(), false);
		rest(500);
	}
	tps = pgbench(place, variant == BUSINESS ? "business.sql" : "message.sql", clients);
	if (relay)
		end_process(relay);
	if (asleep)
		PQfinish(asleep);
	if (variant == NOTIFY)
		pg_run(place->db, "DROP TRIGGER always ON outbox_message");
	return tps;
}

struct result {
	struct series rates[VARIANTS], ratios[VARIANTS];
};

static void compare(const struct result *r, const char *what, enum variant a, enum variant b,
		    const char *beside, double wanted)
{
	report(&(struct line){ .bench = "publish",
			       .what = what,
			       .ours = series_median(&r->rates[a]),
			       .beside = series_median(&r->rates[b]),
			       .beside_what = beside,
			       .value = series_median(&r->ratios[a]),
			       .unit = "x",
			       .want = wanted > 0 ? AT_LEAST : WANT_NOTHING,
			       .wanted = wanted });
}

static void measure_clients(struct place *place, int clients)
{
	/* what each is compared with */
	static const enum variant base[VARIANTS] = {
		[BUSINESS] = BUSINESS, [MESSAGE] = BUSINESS,    [RELAY] = MESSAGE,
		[RELAY_BELL] = RELAY,  [BELL_ASLEEP] = MESSAGE, [NOTIFY] = MESSAGE,
	};
	struct result result = { 0 };
	char what[5][80];

	for (int i = 0; i < place->bench->sizes.publish_repeats; i++) {
		double tps[VARIANTS];

		for (int v = 0; v < VARIANTS; v++) {
			int at = i % 2 ? VARIANTS - 1 - v : v;

			tps[at] = measure(place, (enum variant)at, clients);
			series_add(&result.rates[at], tps[at]);
		}
		for (int v = 0; v < VARIANTS; v++)
			series_add(&result.ratios[v], tps[v] / tps[base[v]]);
	}
	snprintf(what[0], sizeof(what[0]), "%d clients: with a message", clients);
	snprintf(what[1], sizeof(what[1]), "%d clients: while a relay delivers", clients);
	snprintf(what[2], sizeof(what[2]), "%d clients: doorbell, relay awake", clients);
	snprintf(what[3], sizeof(what[3]), "%d clients: doorbell, every transaction rings", clients);
	snprintf(what[4], sizeof(what[4]), "%d clients: NOTIFY always", clients);
	compare(&result, what[0], MESSAGE, BUSINESS, "business row only", 0);
	compare(&result, what[1], RELAY, MESSAGE, "no relay", 0);
	compare(&result, what[2], RELAY_BELL, RELAY, "doorbell off", clients == 8 ? 0.95 : 0);
	compare(&result, what[3], BELL_ASLEEP, MESSAGE, "doorbell off, no relay", 0);
	compare(&result, what[4], NOTIFY, MESSAGE, "no NOTIFY, no relay", 0);
}

void bench_publish(const struct bench *bench)
{
	struct place place;

	place_make(&place, bench, "publish", 4);
	pg_run(place.db, "CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
			 " customer integer, total numeric, note text)");
	measure_clients(&place, 1);
	measure_clients(&place, 8);
	place_end(&place);
}
