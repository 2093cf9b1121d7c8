/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Publishing from C, a hundred messages a transaction: with a call each, with a publisher, and all at once, beside the
 * same INSERT, prepared once, with plain libpq. All in turn, and each ratio is the median of those of the rounds.
 */

#include "bench.h"

#include <outbox/postgres.h>

#include <stdio.h>

#define BATCH 100

enum how { PLAIN, ONE_BY_ONE, UNPREPARED, PREPARED, PIPELINE, TOGETHER, HOWS };

static const struct {
	const char *name;
	unsigned flags; /* of the publisher */
	double wanted;
} hows[HOWS] = {
	[ONE_BY_ONE] = { "outbox_publish_pg()", 0, 0 },
	[UNPREPARED] = { "a publisher", 0, 0 },
	[PREPARED] = { "a publisher, prepared", OUTBOX_PREPARE, 0 },
	[PIPELINE] = { "a publisher, prepared, in a pipeline", OUTBOX_PREPARE | OUTBOX_PIPELINE, 1 },
	[TOGETHER] = { "outbox_publish_pg_batch()", 0, 1 },
};

static void insert_plainly(PGconn *db, const struct outbox_message *m)
{
	const char *const values[] = { m->type, m->key, m->data };
	PGresult *done = PQexecPrepared(db, "plain", 3, values, NULL, NULL, 0);

	pg_check(db, done, PGRES_COMMAND_OK, "INSERT");
	PQclear(done);
}

static int publish_all(PGconn *db, struct outbox_publisher *publisher, enum how how,
		       const struct outbox_message *messages, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (how == TOGETHER)
		return outbox_publish_pg_batch(db, messages, BATCH, 0, NULL, err);
	for (int i = 0; i < BATCH && r == OUTBOX_OK; i++) {
		if (how == PLAIN)
			insert_plainly(db, &messages[i]);
		else if (how == ONE_BY_ONE)
			r = outbox_publish_pg(db, &messages[i], err);
		else
			r = outbox_publisher_publish(publisher, &messages[i], NULL, err);
	}
	return r == OUTBOX_OK && publisher ? outbox_publisher_flush(publisher, err) : r;
}

static double measure(PGconn *db, enum how how, double seconds)
{
	static struct outbox_message messages[BATCH];
	static char keys[BATCH][16];
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_publisher *publisher = NULL;
	double start, count = 0;

	for (int i = 0; i < BATCH; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key-%d", i);
		messages[i] = (struct outbox_message)OUTBOX_MESSAGE_INIT;
		messages[i].type = "bench.message";
		messages[i].key = keys[i];
		messages[i].data = payload();
		messages[i].size = 300;
	}
	if (how != PLAIN && how != ONE_BY_ONE && how != TOGETHER &&
	    outbox_publisher_new_pg(&publisher, db, hows[how].flags, &err) != OUTBOX_OK)
		die("publisher", err.message);
	for (start = now_seconds(); now_seconds() < start + seconds; count += BATCH) {
		pg_run(db, "BEGIN");
		if (publish_all(db, publisher, how, messages, &err) != OUTBOX_OK)
			die("publish", err.message);
		pg_run(db, "COMMIT");
	}
	count /= now_seconds() - start;
	outbox_publisher_free(publisher);
	return count;
}

void bench_publisher(const struct bench *bench)
{
	struct series rates[HOWS] = { 0 }, ratios[HOWS] = { 0 };
	struct place place;
	PGconn *db;

	place_make(&place, bench, "publisher", 4);
	db = pg_open(place.url);
	PQclear(PQprepare(db, "plain",
			  "INSERT INTO outbox_message (type, key, payload) VALUES ($1, $2, $3)", 0,
			  NULL));
	for (int i = 0; i < bench->sizes.publish_repeats; i++) {
		double rate[HOWS];

		for (int v = 0; v < HOWS; v++) {
			int at = i % 2 ? HOWS - 1 - v : v;

			rate[at] = measure(db, (enum how)at, bench->sizes.publish_seconds);
			series_add(&rates[at], rate[at]);
		}
		for (int v = 0; v < HOWS; v++)
			series_add(&ratios[v], rate[v] / rate[PLAIN]);
	}
	for (int v = PLAIN + 1; v < HOWS; v++)
		report(&(struct line){ .bench = "publisher",
				       .what = hows[v].name,
				       .ours = series_median(&rates[v]),
				       .beside = series_median(&rates[PLAIN]),
				       .beside_what = "prepared INSERT, one by one",
				       .value = series_median(&ratios[v]),
				       .unit = "x",
				       .want = hows[v].wanted > 0 ? AT_LEAST : WANT_NOTHING,
				       .wanted = hows[v].wanted });
	PQfinish(db);
	place_end(&place);
}
