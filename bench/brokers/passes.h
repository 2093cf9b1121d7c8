/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BROKERS_PASSES_H
#define BENCH_BROKERS_PASSES_H

/* One pass over the log of a store, to one broker, in each of the ways that are compared. */

#include "origin.h"

/*
 * Measured from the acknowledgement of the first batch on, without it, for all ways alike: librdkafka, for one,
 * connects and gets its numbers with the first message, and our relay does before. The bare loop ends with the last
 * acknowledgement, ours when the last receipt is written and the lane given back.
 */
struct cost {
	double rate;
	double cpu; /* of this process, microseconds a message */
	double start; /* seconds before that: connections, the schema's check, the lease, the first batch */
};

/* A broker, and where it is. */
struct broker {
	const struct plain_ops *ops;
	const char *url;
	char to[600]; /* for our relay */
};

/* Make the queue, stream or topic, empty. */
void broker_make(const struct broker *broker);
/* Our relay, in this process. */
struct cost relay_pass(const struct origin *origin, const struct broker *broker, int messages);
/*
 * Batches read and published by the plain libraries, one after the other, nothing else. round not 0: a batch goes so
 * many at a time, as order over so many keys requires.
 */
struct cost bare_pass(const struct origin *origin, const struct broker *broker, int messages,
		      size_t round);
/* The broker alone: one batch again and again. */
double publish_pass(const struct broker *broker, int messages, size_t round);
/* Claim, publish, mark: PostgreSQL only. */
double peer_pass(const struct origin *origin, const struct broker *broker, int messages);
/* `outbox relay` in a process of its own: its peak memory over the whole log, in MiB. */
double memory_pass(const struct origin *origin, const struct broker *broker, const char *outbox);

/* few.c: strict order with few keys, reported. */
void measure_few(const struct bench *bench, const struct broker *broker);

/* trouble.c: some messages are refused for now, reported. */
void measure_trouble(const struct bench *bench, const struct broker *broker);

/* latency.c: from commit to acknowledgement, reported. */
void measure_latency(const struct bench *bench, const struct broker *broker, const char *path);

#endif
