/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BROKERS_PASSES_H
#define BENCH_BROKERS_PASSES_H

/* One pass over the log of a place, to one broker, in four ways. */

#include "../postgres/bench.h"
#include "plain.h"

#define BATCH 500

struct cost {
	double rate;
	double cpu; /* of this process, microseconds a message */
};

/* Our relay, in this process. */
struct cost relay_pass(struct place *place, const char *to, int messages);
/* Batches read by libpq and published by the plain library, one after the other, nothing else. */
struct cost bare_pass(struct place *place, const struct plain_ops *ops, const char *url,
		      int messages);
/* The broker alone: one batch again and again. */
double publish_pass(const struct plain_ops *ops, const char *url, int messages);
/* The classic outbox: claim by UPDATE ... SKIP LOCKED, publish, mark by UPDATE. Fills its table first. */
double classic_pass(struct place *place, const struct plain_ops *ops, const char *url, int messages);

#endif
