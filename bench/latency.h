/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

/*
 * From commit to acknowledgement. Publishers in threads note when their COMMIT was answered; whoever sees an
 * acknowledgement in this process notes it with latency_note(). One clock for both. A message that was
 * acknowledged before its COMMIT was answered counts as 0.
 */

#include "series.h"

/* How a publisher reaches a store. Each thread opens one of its own. */
struct latency_store {
	void *(*open)(const char *where);
	void (*publish)(void *store, const char *key); /* one message, committed */
	void (*close)(void *store);
	const char *where;
	int threads; /* at more than 200 messages a second */
};

struct latency {
	double p50, p99; /* milliseconds */
	double rate;     /* messages a second that came, since a store may not keep up */
};

/* The message with this key, as the publishers made it, was acknowledged now. From any thread. */
void latency_note(const char *key);

/* Publish n messages at this rate; returns the rate at which they came. */
double latency_publish(const struct latency_store *store, int n, double rate);
/* Publish n messages at this rate to a relay that runs, and wait until all are acknowledged. */
struct latency latency_measure(const struct latency_store *store, int n, double rate);

/* Publishing by plain libpq. */
struct latency_store latency_postgres(const char *url);
/* The same into the table of the SKIP LOCKED loop. */
struct latency_store latency_peer(const char *url);

#endif
