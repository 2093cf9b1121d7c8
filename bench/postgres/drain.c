/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Draining to null:, the whole relay in this process, beside the raw loop and the SKIP LOCKED loop. Every
 * pass of ours is a target of its own that starts at the oldest message, so that the log need not be
 * written again. Once more with a transaction that stays open.
 */

#include "bench.h"

#include <outbox/outbox.h>

#include <stdio.h>

#define BATCH 500

static struct pass our_pass(struct place *place, int messages)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;
	struct meter meter;
	struct pass pass;

	target.name = place_target();
	target.to = "null:";
	target.start = OUTBOX_START_OLDEST;
	config.store = place->url;
	config.targets = &target;
	config.n_targets = 1;
	config.batch_messages = BATCH;
	config.purge_interval = OUTBOX_NEVER;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	meter_start(&meter, place);
	if (outbox_relay_run_once(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	pass = meter_end(&meter, place, messages);
	outbox_relay_counts(relay, &counts);
	outbox_relay_free(relay);
	if (counts.delivered != (uint64_t)messages)
		die("drain", "not every message was delivered");
	return pass;
}

/* A transaction with a number of its own and a snapshot, open until its connection ends. */
static PGconn *hold(const struct place *place)
{
	PGconn *db = pg_open(place->url);

	pg_run(db, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id()");
	return db;
}

struct result {
	struct series ours, noted, read, peer; /* rates */
	struct series our_wal, our_cpu, raw_cpu, peer_wal, peer_cpu;
};

static void measure_ours(struct place *place, struct result *result)
{
	int messages = place->bench->sizes.drain_messages;
	struct pass pass = our_pass(place, messages);

	series_add(&result->ours, pass.rate);
	series_add(&result->our_wal, pass.wal);
	series_add(&result->our_cpu, pass.cpu);
}

static void measure_raw(struct place *place, struct result *result)
{
	int messages = place->bench->sizes.drain_messages;
	struct pass noted = raw_pass(place, true, BATCH, messages, NULL);

	series_add(&result->noted, noted.rate);
	series_add(&result->raw_cpu, noted.cpu);
	series_add(&result->read, raw_pass(place, false, BATCH, messages, NULL).rate);
}

static void measure_peer(struct place *place, struct result *result)
{
	struct pass pass = skip_locked_pass(place, place->bench->sizes.peer_messages, NULL);

	series_add(&result->peer, pass.rate);
	series_add(&result->peer_wal, pass.wal);
	series_add(&result->peer_cpu, pass.cpu);
}

static void measure(struct place *place, bool peers, struct result *result)
{
	for (int i = 0; i < place->bench->sizes.repeats; i++) {
		bool first = i % 2 == 0;

		if (first)
			measure_ours(place, result);
		measure_raw(place, result);
		if (peers)
			measure_peer(place, result);
		if (!first)
			measure_ours(place, result);
	}
}

static void report_cost(const char *what, const struct series *ours, const struct series *peer,
			const char *unit, double wanted)
{
	report(&(struct line){ .bench = "drain",
			       .what = what,
			       .value = series_median(ours),
			       .unit = unit,
			       .beside = series_median(peer),
			       .beside_what = "SKIP LOCKED",
			       .want = wanted > 0 ? AT_MOST : WANT_NOTHING,
			       .wanted = wanted });
}

static double size_of(PGconn *db, const char *like)
{
	return pg_numberf(db,
			  "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) / 1048576.0 FROM pg_class"
			  " WHERE relkind = 'r' AND relname LIKE '%s'",
			  like);
}

/* Dead rows, once the server's statistics have come together. */
static void report_dead(struct place *place)
{
	static const char count[] =
		"SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables"
		" WHERE relname LIKE 'outbox%%' AND relname %s IN ('outbox_lane', 'outbox_worker')";
	double renewals, others;

	rest(1500);
	renewals = pg_numberf(place->db, count, "");
	others = pg_numberf(place->db, count, "NOT");
	report(&(struct line){ .bench = "held",
			       .what = "dead rows but those of lease renewals",
			       .value = others,
			       .unit = "rows",
			       .beside = pg_number(place->db,
						   "SELECT n_dead_tup FROM"
						   " pg_stat_user_tables WHERE relname = 'peer'"),
			       .beside_what = "SKIP LOCKED",
			       .want = AT_MOST });
	report(&(struct line){ .bench = "held",
			       .what = "dead rows of lease renewals",
			       .value = renewals,
			       .unit = "rows" });
}

static void measure_held(struct place *place)
{
	double before = size_of(place->db, "outbox%"), peer;
	PGconn *held = hold(place);
	struct result result = { 0 };

	measure(place, true, &result);
	report_ratio("held", "lanes 1, batch 500, against SKIP LOCKED", &result.ours, "SKIP LOCKED",
		     &result.peer, 6);
	report_ratio("held", "against the raw loop with receipts", &result.ours, "raw",
		     &result.noted, 0);
	report_cost("WAL a message, held", &result.our_wal, &result.peer_wal, "bytes", 20);
	report_cost("server CPU a message, held", &result.our_cpu, &result.peer_cpu, "us", 0);
	peer = size_of(place->db, "peer");
	report(&(struct line){ .bench = "held",
			       .what = "growth of the tables, all passes",
			       .value = size_of(place->db, "outbox%") - before,
			       .unit = "MiB",
			       .beside = peer,
			       .beside_what = "size of SKIP LOCKED's, one pass",
			       .want = WANT_NOTHING });
	report_dead(place);
	PQfinish(held);
}

/* The same work with one lane and with four, in turn. */
static void compare_lanes(struct place *one, struct place *four)
{
	int messages = one->bench->sizes.drain_messages;
	struct series rates[2] = { 0 }, ratio = { 0 };

	for (int i = 0; i < one->bench->sizes.repeats; i++) {
		double rate[2];

		for (int k = 0; k < 2; k++) {
			int at = (i + k) % 2;

			rate[at] = our_pass(at ? four : one, messages).rate;
			series_add(&rates[at], rate[at]);
		}
		series_add(&ratio, rate[1] / rate[0]);
	}
	report(&(struct line){ .bench = "drain",
			       .what = "lanes 4, against 1 lane",
			       .ours = series_median(&rates[1]),
			       .beside = series_median(&rates[0]),
			       .beside_what = "1 lane",
			       .value = series_median(&ratio),
			       .unit = "x",
			       .want = AT_LEAST,
			       .wanted = 0.95 });
}

static void drain_one(struct place *place, struct result *result)
{
	measure(place, true, result);
	report_ratio("drain", "lanes 1, batch 500, against SKIP LOCKED", &result->ours,
		     "SKIP LOCKED", &result->peer, 5);
	report_ratio("drain", "lanes 1, against the raw loop with receipts", &result->ours, "raw",
		     &result->noted, 0.6);
	report_ratio("drain", "lanes 1, against the raw loop, reading only", &result->ours,
		     "raw read", &result->read, 0.6);
	report_cost("WAL a message beyond its insert", &result->our_wal, &result->peer_wal, "bytes",
		    20);
	report_cost("server CPU a message", &result->our_cpu, &result->peer_cpu, "us", 0);
	report(&(struct line){ .bench = "drain",
			       .what = "server CPU a message, raw loop with receipts",
			       .value = series_median(&result->raw_cpu),
			       .unit = "us" });
	measure_held(place);
}

void bench_drain(const struct bench *bench)
{
	struct result first = { 0 }, four = { 0 };
	struct place one, place;

	place_make(&one, bench, "drain1", 1);
	place_fill(&one, bench->sizes.drain_messages);
	drain_one(&one, &first);

	place_make(&place, bench, "drain4", 4);
	place_fill(&place, bench->sizes.drain_messages);
	measure(&place, false, &four);
	report_ratio("drain", "lanes 4, against SKIP LOCKED", &four.ours, "SKIP LOCKED",
		     &first.peer, 0);
	report_ratio("drain", "lanes 4, against the raw loop with receipts", &four.ours, "raw",
		     &four.noted, 0);
	compare_lanes(&one, &place);
	place_end(&place);
	place_end(&one);
}
