/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BROKERS_ORIGIN_H
#define BENCH_BROKERS_ORIGIN_H

/* A store with a log of messages, read by the plain client library: where the bare loop gets its batches. */

#include "../latency.h"
#include "../postgres/bench.h"
#include "plain.h"

#define BATCH 500

/* A moment: the time, what this process had used of the CPU, and how many messages were acknowledged. */
struct mark {
	double time, cpu;
	size_t messages;
};

struct mark mark_now(size_t messages);

/* A broker's plain library, as what is done with each batch. */
struct sender {
	const struct plain_ops *ops;
	void *broker;
	size_t round;            /* not 0: so many at a time, then wait for their answers */
	struct mark first, last; /* acknowledgement of a batch */
	struct plain_message window[BATCH];
};

/* The first n of the window. */
void sender_send(struct sender *sender, size_t n);
/* Rows of PostgreSQL, which stay where they are until all of them were sent. */
void sender_send_rows(struct sender *sender, const PGresult *rows);

struct origin {
	const char *name;    /* for people */
	const char *url;     /* for our relay */
	struct place *place; /* PostgreSQL ... */
	const char *path;    /* ... or the file of SQLite */
	/* Read all messages, batch by batch, and send each batch. sender NULL: only look; messages a second. */
	double (*read)(const struct origin *origin, struct sender *sender, int messages);
	/* Before a pass of any kind. */
	void (*tidy)(const struct origin *origin);
};

/* Both are filled with so many messages. */
struct origin origin_postgres(struct place *place, const struct bench *bench, const char *name,
			      int messages);
struct origin origin_sqlite(const char *path, int messages);
/* The one that is at a place; it has been filled. */
struct origin origin_at(struct place *place);

/* Publishing by the plain SQLite library. */
struct latency_store latency_sqlite(const char *path);

/* The classic outbox: claim by UPDATE ... SKIP LOCKED, publish, mark by UPDATE. Fills its table first. */
void classic_pass(const struct origin *origin, struct sender *sender, int messages);

#endif
