/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench-brokers OUTBOX [quick|full] BROKER: from PostgreSQL to one broker, beside the bare loop, the classic
 * design, the broker's own limit and the store's. Run by bench/run, which starts both servers. Database, broker and
 * relay share the machine, so the bare loop is the fair limit.
 */

#include "passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const struct plain_ops *const brokers[] = { &plain_rabbitmq, &plain_kafka, &plain_nats,
						   &plain_redis };

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
	struct series ours, bare, raw, read, classic, our_cpu, bare_cpu;
};

static void measure(struct place *place, const struct plain_ops *ops, const char *url,
		    const char *to, struct result *r)
{
	int n = place->bench->sizes.drain_messages;
	struct cost cost;

	for (int i = 0; i < place->bench->sizes.repeats; i++) {
		for (int k = 0; k < 2; k++) {
			if (k == i % 2) {
				cost = relay_pass(place, to, n);
				series_add(&r->ours, cost.rate);
				series_add(&r->our_cpu, cost.cpu);
			} else {
				cost = bare_pass(place, ops, url, n);
				series_add(&r->bare, cost.rate);
				series_add(&r->bare_cpu, cost.cpu);
			}
		}
		series_add(&r->raw, publish_pass(ops, url, n));
		series_add(&r->read, raw_pass(place, false, BATCH, n, NULL).rate);
		series_add(&r->classic,
			   classic_pass(place, ops, url, place->bench->sizes.peer_messages));
	}
}

static void report_all(const struct plain_ops *ops, const struct result *r)
{
	bool rabbit = ops == &plain_rabbitmq, twice = ops == &plain_nats || ops == &plain_redis;
	struct rusage usage;

	report_ratio(ops->name, "against the bare loop", &r->ours, "bare loop", &r->bare, 0.85);
	report_ratio(ops->name, "against the broker's own limit", &r->ours, "plain library",
		     &r->raw, rabbit ? 0.7 : 0);
	report_ratio(ops->name, "against the classic design", &r->ours, "claim, publish, mark",
		     &r->classic, twice ? 2 : 0);
	report_ratio(ops->name, "against the store's read limit", &r->ours, "raw read", &r->read, 0);
	report(&(struct line){ .bench = ops->name,
			       .what = "CPU of the relay a message",
			       .value = series_median(&r->our_cpu),
			       .unit = "us",
			       .beside = series_median(&r->bare_cpu),
			       .beside_what = "bare loop" });
	getrusage(RUSAGE_SELF, &usage);
	report(&(struct line){ .bench = ops->name,
			       .what = "peak memory of this process, all passes",
			       .value = (double)usage.ru_maxrss / 1024,
			       .unit = "MiB",
			       .want = AT_MOST,
			       .wanted = 48 });
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		die(name, "is not set; run me by bench/run");
	return value;
}

int main(int argc, char **argv)
{
	static const struct sizes full = { .repeats = 5,
					   .drain_messages = 100000,
					   .peer_messages = 50000 };
	static const struct sizes quick = { .repeats = 3,
					    .drain_messages = 20000,
					    .peer_messages = 10000 };
	struct bench bench = { 0 };
	struct result result = { 0 };
	char server[200], to[600];
	struct place place;

	if (argc != 4)
		die("bench-brokers", "give OUTBOX, quick or full, and a broker");
	snprintf(server, sizeof(server), "postgres://postgres@127.0.0.1:%s", environment("PGPORT"));
	bench.server = server;
	bench.outbox = argv[1];
	bench.bin = environment("PG_BIN");
	bench.data = environment("PGDATA");
	bench.sizes = strcmp(argv[2], "quick") == 0 ? quick : full;
	for (size_t i = 0; i < sizeof(brokers) / sizeof(brokers[0]); i++) {
		const struct plain_ops *ops = brokers[i];
		const char *url;

		if (strcmp(ops->name, argv[3]) != 0)
			continue;
		url = environment(ops->env);
		snprintf(to, sizeof(to), "%.*s%s", (int)strcspn(url, "?"), url, ops->options);
		place_make(&place, &bench, ops->name, 1);
		place_fill(&place, bench.sizes.drain_messages);
		ops->close(ops->open(url)); /* makes the queue, stream or topic */
		measure(&place, ops, url, to, &result);
		report_all(ops, &result);
		place_end(&place);
		return 0;
	}
	die(argv[3], "is no broker; there are: rabbitmq, kafka, nats, redis");
}
