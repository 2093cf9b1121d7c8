/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench-brokers OUTBOX quick|full|huge BROKER DATABASE [drain|few|latency|trouble ...]: from PostgreSQL and from SQLite
 * to one broker, beside the bare loop, the broker's own limit, the store's and (PostgreSQL) the classic design; then few
 * keys, the latencies, and refused messages. Run by bench/run, which starts both servers and makes the SQLite database.
 * Database, broker and relay share the machine, so the bare loop is the fair limit.
 */

#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct plain_ops *const brokers[] = { &plain_rabbitmq,  &plain_kafka, &plain_nats,
						   &plain_redis,     &plain_mqtt,  &plain_artemis,
						   &plain_elasticmq, &plain_http };

void plain_address(const char *url, char host[256], int *port)
{
	const char *at = strstr(url, "://"), *user;
	char *end;

	if (!at)
		die(url, "is not a URL");
	at += 3;
	user = strpbrk(at, "@/");
	if (user && *user == '@')
		at = user + 1;
	snprintf(host, 256, "%.*s", (int)strcspn(at, ":/"), at);
	at += strlen(host);
	*port = *at == ':' ? (int)strtol(at + 1, &end, 10) : 0;
}

struct result {
	struct series ours, bare, ratio, read, our_cpu, bare_cpu, start;
};

#define POSTGRES 0
#define SQLITE 1
#define ORIGINS 2

struct run {
	const struct bench *bench;
	struct broker broker;
	struct origin origins[ORIGINS];
	struct result results[ORIGINS];
	struct series raw, classic;
};

/* Ours and the bare loop in turn, and the other way round the next time. */
static void measure_pair(struct run *run, int o, bool ours_first)
{
	int n = run->bench->sizes.drain_messages;
	struct result *r = &run->results[o];
	struct cost ours, bare;

	if (ours_first)
		ours = relay_pass(&run->origins[o], &run->broker, n);
	bare = bare_pass(&run->origins[o], &run->broker, n, 0);
	if (!ours_first)
		ours = relay_pass(&run->origins[o], &run->broker, n);
	series_add(&r->ours, ours.rate);
	series_add(&r->bare, bare.rate);
	series_add(&r->ratio, ours.rate / bare.rate);
	series_add(&r->our_cpu, ours.cpu);
	series_add(&r->bare_cpu, bare.cpu);
	series_add(&r->start, ours.start * 1000);
	series_add(&r->read, run->origins[o].read(&run->origins[o], NULL, n));
}

static void measure(struct run *run)
{
	const struct sizes *sizes = &run->bench->sizes;

	for (int i = 0; i < sizes->repeats; i++) {
		for (int o = 0; o < ORIGINS; o++)
			measure_pair(run, o, i % 2 == 0);
		series_add(&run->raw, publish_pass(&run->broker, sizes->drain_messages, 0));
		series_add(&run->classic,
			   peer_pass(&run->origins[POSTGRES], &run->broker, sizes->peer_messages));
	}
}

static void report_costs(const struct run *run, const char *bench, int o)
{
	const struct result *r = &run->results[o];

	report(&(struct line){ .bench = bench,
			       .what = "CPU of the relay a message",
			       .value = series_median(&r->our_cpu),
			       .unit = "us",
			       .beside = series_median(&r->bare_cpu),
			       .beside_what = "bare loop" });
	report(&(struct line){ .bench = bench,
			       .what = "start and first batch, not counted",
			       .value = series_median(&r->start),
			       .unit = "ms",
			       .beside = run->bench->sizes.drain_messages * 1000.0 /
					 series_median(&r->ours),
			       .beside_what = "ms the rest" });
	report(&(struct line){
		.bench = bench,
		.what = "peak memory of `outbox relay`",
		.value = memory_pass(&run->origins[o], &run->broker, run->bench->outbox),
		.unit = "MiB",
		.want = AT_MOST,
		.wanted = 48 });
}

/* What is wanted is said of PostgreSQL. */
static void report_origin(const struct run *run, int o)
{
	const struct plain_ops *ops = run->broker.ops;
	const struct result *r = &run->results[o];
	bool postgres = o == POSTGRES, rabbit = postgres && ops == &plain_rabbitmq,
	     twice = ops == &plain_nats || ops == &plain_redis;
	char bench[60];

	snprintf(bench, sizeof(bench), "%s to %s", run->origins[o].name, ops->name);
	report(&(struct line){ .bench = bench, /* pairs ran side by side, so their ratios count */
			       .what = "against the bare loop",
			       .ours = series_median(&r->ours),
			       .beside = series_median(&r->bare),
			       .beside_what = "bare loop",
			       .value = series_median(&r->ratio),
			       .unit = "x",
			       .want = postgres ? AT_LEAST : WANT_NOTHING,
			       .wanted = 0.85 });
	report_ratio(bench, "against the broker's own limit", &r->ours, "plain library", &run->raw,
		     rabbit ? 0.7 : 0);
	if (postgres)
		report_ratio(bench, "against the classic design", &r->ours, "claim, publish, mark",
			     &run->classic, twice ? 2 : 0);
	report_ratio(bench, "against the store's read limit", &r->ours, "raw read", &r->read, 0);
	report_costs(run, bench, o);
}

static void measure_drain(const struct bench *bench, const struct broker *broker, const char *path)
{
	static struct run run;
	struct place place;

	run.bench = bench;
	run.broker = *broker;
	run.origins[POSTGRES] =
		origin_postgres(&place, bench, broker->ops->name, bench->sizes.drain_messages);
	run.origins[SQLITE] = origin_sqlite(path, bench->sizes.drain_messages);
	measure(&run);
	for (int o = 0; o < ORIGINS; o++)
		report_origin(&run, o);
	place_end(&place);
}

/* The parts that are named, or all. */
static bool is_wanted(char *const *names, const char *part)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strcmp(*names, part) == 0)
			return true;
	return false;
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die(name, "is not set; run me by bench/run");
	return value;
}

static struct broker find_broker(const char *name)
{
	for (size_t i = 0; i < sizeof(brokers) / sizeof(brokers[0]); i++) {
		struct broker broker = { .ops = brokers[i] };

		if (strcmp(broker.ops->name, name) != 0)
			continue;
		broker.url = environment(broker.ops->env);
		snprintf(broker.to, sizeof(broker.to), "timed:%.*s%s",
			 (int)strcspn(broker.url, "?"), broker.url, broker.ops->options);
		return broker;
	}
	die(name,
	    "is no broker; there are: rabbitmq, kafka, nats, redis, mqtt, artemis, elasticmq, http");
}

int main(int argc, char **argv)
{
	static const struct sizes full = { .repeats = 5,
					   .drain_messages = 100000,
					   .peer_messages = 50000,
					   .latency_seconds = 10,
					   .trouble = { 20000, 100000 } };
	static const struct sizes quick = { .repeats = 3,
					    .drain_messages = 20000,
					    .peer_messages = 10000,
					    .latency_seconds = 2,
					    .trouble = { 20000 } };
	struct bench bench = { 0 };
	struct broker broker;
	char server[200];

	if (argc < 5)
		die("bench-brokers", "give OUTBOX, quick or full, a broker and a SQLite database");
	broker = find_broker(argv[3]);
	snprintf(server, sizeof(server), "postgres://postgres@127.0.0.1:%s", environment("PGPORT"));
	bench.server = server;
	bench.outbox = argv[1];
	bench.bin = environment("PG_BIN");
	bench.data = environment("PGDATA");
	bench.sizes = strcmp(argv[2], "quick") == 0 ? quick : full;
	if (strcmp(argv[2], "huge") == 0)
		bench.sizes.trouble[2] = 1000000;
	if (is_wanted(argv + 5, "drain"))
		measure_drain(&bench, &broker, argv[4]);
	if (is_wanted(argv + 5, "few"))
		measure_few(&bench, &broker);
	if (is_wanted(argv + 5, "latency"))
		measure_latency(&bench, &broker, argv[4]);
	if (is_wanted(argv + 5, "trouble"))
		measure_trouble(&bench, &broker);
	return 0;
}
