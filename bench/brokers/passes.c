/* SPDX-License-Identifier: Apache-2.0 */
#include "passes.h"

#include <outbox/outbox.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define TIME "2026-01-01T00:00:00.000000Z"

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct cost relay_pass(struct place *place, const char *to, int messages)
{
	struct outbox_target_config target = OUTBOX_TARGET_CONFIG_INIT;
	struct outbox_relay_config config = OUTBOX_RELAY_CONFIG_INIT;
	struct outbox_relay_counts counts = OUTBOX_RELAY_COUNTS_INIT;
	struct outbox_error err = OUTBOX_ERROR_INIT;
	struct outbox_relay *relay = NULL;
	double start, cpu;
	struct cost cost;

	target.name = place_target();
	target.to = to;
	target.start = OUTBOX_START_OLDEST;
	config.store = place->url;
	config.targets = &target;
	config.n_targets = 1;
	config.batch_messages = BATCH;
	config.purge_interval = OUTBOX_NEVER;
	if (outbox_relay_new(&relay, &config, &err) != OUTBOX_OK)
		die("relay", err.message);
	start = now_seconds();
	cpu = cpu_seconds();
	if (outbox_relay_run_once(relay, &err) != OUTBOX_OK)
		die("relay", err.message);
	cost = (struct cost){ .rate = messages / (now_seconds() - start),
			      .cpu = (cpu_seconds() - cpu) * 1e6 / messages };
	outbox_relay_counts(relay, &counts);
	outbox_relay_free(relay);
	if (counts.delivered != (uint64_t)messages)
		die("relay", "not every message was delivered");
	return cost;
}

/* A broker's plain library, as what is done with each batch. */
struct publisher {
	struct each base;
	const struct plain_ops *ops;
	void *broker;
};

static void publish_rows(struct each *each, const PGresult *rows)
{
	static struct plain_message window[BATCH];
	struct publisher *p = (struct publisher *)each;
	int n = PQntuples(rows), id = PQfnumber(rows, "id_text"), type = PQfnumber(rows, "type"),
	    key = PQfnumber(rows, "key"), body = PQfnumber(rows, "payload");

	if (id < 0)
		id = PQfnumber(rows, "id");
	for (int i = 0; i < n; i++)
		window[i] = (struct plain_message){ .id = PQgetvalue(rows, i, id),
						    .type = PQgetvalue(rows, i, type),
						    .key = PQgetvalue(rows, i, key),
						    .time = TIME,
						    .body = PQgetvalue(rows, i, body),
						    .size = (size_t)PQgetlength(rows, i, body) };
	p->ops->publish(p->broker, window, (size_t)n);
}

static struct publisher publisher_open(const struct plain_ops *ops, const char *url)
{
	return (struct publisher){ .base.run = publish_rows, .ops = ops, .broker = ops->open(url) };
}

struct cost bare_pass(struct place *place, const struct plain_ops *ops, const char *url, int messages)
{
	struct publisher publisher = publisher_open(ops, url);
	double cpu = cpu_seconds(),
	       rate = raw_pass(place, false, BATCH, messages, &publisher.base).rate;

	cpu = (cpu_seconds() - cpu) * 1e6 / messages;
	ops->close(publisher.broker);
	return (struct cost){ .rate = rate, .cpu = cpu };
}

double classic_pass(struct place *place, const struct plain_ops *ops, const char *url, int messages)
{
	struct publisher publisher = publisher_open(ops, url);
	double rate = skip_locked_pass(place, messages, &publisher.base).rate;

	ops->close(publisher.broker);
	return rate;
}

double publish_pass(const struct plain_ops *ops, const char *url, int messages)
{
	static struct plain_message window[BATCH];
	static char ids[BATCH][40];
	void *broker = ops->open(url);
	double start = now_seconds(), rate;

	for (int sent = 0; sent < messages; sent += BATCH) {
		for (int i = 0; i < BATCH; i++) { /* ids that no broker has seen */
			snprintf(ids[i], sizeof(ids[i]), "%.0f-%d", start * 1e6, sent + i);
			window[i] = (struct plain_message){ .id = ids[i],
							    .type = "bench.message",
							    .key = ids[i],
							    .time = TIME,
							    .body = payload(),
							    .size = strlen(payload()) };
		}
		ops->publish(broker, window, BATCH);
	}
	rate = messages / (now_seconds() - start);
	ops->close(broker);
	return rate;
}
