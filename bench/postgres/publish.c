/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing, by pgbench: transactions with one business row, alone, with a row in a plain table as wide as the
 * log, and with a message, by INSERT and by outbox_publish(); the doorbell off and on; a NOTIFY by every
 * message, which is what we do not do. All variants in turn, forwards and backwards, and each ratio is the median
 * of those of the rounds.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum variant {
	BUSINESS,    /* no message, no relay */
	PLAIN,       /* a row in a plain table, no relay */
	MESSAGE,     /* no relay */
	FUNCTION,    /* by outbox_publish(), no relay */
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
	static const char *const scripts[VARIANTS] = {
		[BUSINESS] = "business.sql", [PLAIN] = "plain.sql", [FUNCTION] = "function.sql"
	};
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
	tps = pgbench(place, scripts[variant] ? scripts[variant] : "message.sql", clients);
	if (relay)
		end_process(relay);
	if (asleep)
		PQfinish(asleep);
	if (variant == NOTIFY)
		pg_run(place->db, "DROP TRIGGER always ON outbox_message");
	return tps;
}

static const struct comparison {
	const char *what;
	enum variant ours, beside;
	const char *beside_what;
	double wanted; /* with 8 clients; 0: nothing */
} comparisons[] = {
	{ "with a message", MESSAGE, BUSINESS, "business row only", 0 },
	{ "with a message", MESSAGE, PLAIN, "a row in a plain table", 0 },
	{ "outbox_publish()", FUNCTION, MESSAGE, "INSERT", 0.77 },
	{ "while a relay delivers", RELAY, MESSAGE, "no relay", 0 },
	{ "doorbell, relay awake", RELAY_BELL, RELAY, "doorbell off", 0.95 },
	{ "doorbell, every transaction rings", BELL_ASLEEP, MESSAGE, "doorbell off, no relay", 0 },
	{ "NOTIFY always", NOTIFY, MESSAGE, "no NOTIFY, no relay", 0 },
};

#define COMPARISONS (sizeof(comparisons) / sizeof(comparisons[0]))

static void measure_clients(struct place *place, int clients)
{
	struct series rates[VARIANTS] = { 0 }, ratios[COMPARISONS] = { 0 };
	char what[80];

	for (int i = 0; i < place->bench->sizes.publish_repeats; i++) {
		double tps[VARIANTS];

		for (int v = 0; v < VARIANTS; v++) {
			int at = i % 2 ? VARIANTS - 1 - v : v;

			tps[at] = measure(place, (enum variant)at, clients);
			series_add(&rates[at], tps[at]);
		}
		for (size_t c = 0; c < COMPARISONS; c++)
			series_add(&ratios[c], tps[comparisons[c].ours] / tps[comparisons[c].beside]);
	}
	for (size_t c = 0; c < COMPARISONS; c++) {
		const struct comparison *one = &comparisons[c];
		bool wanted = clients == 8 && one->wanted > 0;

		snprintf(what, sizeof(what), "%d clients: %s", clients, one->what);
		report(&(struct line){ .bench = "publish",
				       .what = what,
				       .ours = series_median(&rates[one->ours]),
				       .beside = series_median(&rates[one->beside]),
				       .beside_what = one->beside_what,
				       .value = series_median(&ratios[c]),
				       .unit = "x",
				       .want = wanted ? AT_LEAST : WANT_NOTHING,
				       .wanted = wanted ? one->wanted : 0 });
	}
}

void bench_publish(const struct bench *bench)
{
	struct place place;

	place_make(&place, bench, "publish", 4);
	pg_run(place.db, "CREATE TABLE business (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
			 " customer integer, total numeric, note text)");
	pg_run(place.db, "CREATE TABLE plain (LIKE outbox_message)");
	pg_run(place.db, "ALTER TABLE plain ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY,"
			 " ADD PRIMARY KEY (seq)");
	measure_clients(&place, 1);
	measure_clients(&place, 8);
	place_end(&place);
}
