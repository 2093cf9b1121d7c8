/* SPDX-License-Identifier: Apache-2.0 */

#include "latency.h"

#include "postgres/bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MESSAGES_MAX 100000
#define THREADS_MAX 4

static double committed[MESSAGES_MAX];
static double acknowledged[MESSAGES_MAX];
static atomic_int seen;

struct publisher {
	pthread_t thread;
	const struct latency_store *store;
	int first, step, end; /* messages first, first + step, ... */
	double start, rate;   /* of all publishers together */
};

void latency_note(const char *key)
{
	long i = strtol(key, NULL, 10);

	if (i < 0 || i >= MESSAGES_MAX || acknowledged[i] > 0)
		return;
	acknowledged[i] = now_seconds();
	atomic_fetch_add(&seen, 1);
}

static void wait_until(double time)
{
	double wait = time - now_seconds();
	struct timespec t = { .tv_sec = (time_t)wait };

	if (wait <= 0)
		return;
	t.tv_nsec = (long)((wait - (double)t.tv_sec) * 1e9);
	nanosleep(&t, NULL);
}

static void *publish(void *argument)
{
	struct publisher *p = argument;
	void *store = p->store->open(p->store->where);

	for (int i = p->first; i < p->end; i += p->step) {
		char key[16];

		wait_until(p->start + i / p->rate);
		snprintf(key, sizeof(key), "%d", i);
		p->store->publish(store, key);
		committed[i] = now_seconds();
	}
	p->store->close(store);
	return NULL;
}

double latency_publish(const struct latency_store *store, int n, double rate)
{
	struct publisher publishers[THREADS_MAX];
	int threads = rate > 200 ? store->threads : 1;
	double start = now_seconds() + 0.01;

	if (n > MESSAGES_MAX || threads > THREADS_MAX)
		die("latency", "too many messages or threads");
	for (int t = 0; t < threads; t++) {
		publishers[t] = (struct publisher){ .store = store,
						    .first = t,
						    .step = threads,
						    .end = n,
						    .start = start,
						    .rate = rate };
		if (pthread_create(&publishers[t].thread, NULL, publish, &publishers[t]))
			die("latency", "cannot start a thread");
	}
	for (int t = 0; t < threads; t++)
		pthread_join(publishers[t].thread, NULL);
	return n / (now_seconds() - start);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct latency latency_measure(const struct latency_store *store, int n, double rate)
{
	static double sorted[MESSAGES_MAX];
	struct latency latency;

	memset(acknowledged, 0, sizeof(acknowledged));
	atomic_store(&seen, 0);
	latency.rate = latency_publish(store, n, rate);
	for (int i = 0; atomic_load(&seen) < n; i++) {
		if (i > 1000)
			die("latency", "not every message was delivered within 10 s");
		rest(10);
	}
	for (int i = 0; i < n; i++)
		sorted[i] = acknowledged[i] > committed[i] ? (acknowledged[i] - committed[i]) * 1000
							   : 0;
	qsort(sorted, (size_t)n, sizeof(sorted[0]), compare);
	latency.p50 = sorted[n / 2];
	latency.p99 = sorted[(n - 1) * 99 / 100];
	return latency;
}

/* ---- PostgreSQL ------------------------------------------------------------------------------ */

static void *open_publisher(const char *url, const char *sql)
{
	PGconn *db = pg_open(url);
	PGresult *result = PQprepare(db, "publish", sql, 0, NULL);

	pg_check(db, result, PGRES_COMMAND_OK, "publish");
	PQclear(result);
	return db;
}

static void *open_postgres(const char *url)
{
	return open_publisher(url, "INSERT INTO outbox_message (type, key, payload)"
				   " VALUES ('bench.message', $1, $2)");
}

static void *open_peer(const char *url)
{
	return open_publisher(url, "INSERT INTO peer (type, key, payload)"
				   " VALUES ('bench.message', $1, $2)");
}

static void publish_postgres(void *db, const char *key)
{
	const char *values[] = { key, payload() };
	PGresult *result = PQexecPrepared(db, "publish", 2, values, NULL, NULL, 0);

	pg_check(db, result, PGRES_COMMAND_OK, "publish");
	PQclear(result);
}

static void close_postgres(void *db)
{
	PQfinish(db);
}

struct latency_store latency_postgres(const char *url)
{
	return (struct latency_store){ .open = open_postgres,
				       .publish = publish_postgres,
				       .close = close_postgres,
				       .where = url,
				       .threads = THREADS_MAX };
}

struct latency_store latency_peer(const char *url)
{
	struct latency_store store = latency_postgres(url);

	store.open = open_peer;
	return store;
}
