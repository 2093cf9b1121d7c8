/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BROKERS_PLAIN_H
#define BENCH_BROKERS_PLAIN_H

/*
 * A broker by the plain client library, as a careful programmer would write the shortest loop: send the whole
 * window, then wait for every answer. Any failure ends the bench.
 */

#include <stddef.h>

/* What our driver sends, too: the body and the attributes of a CloudEvent. */
struct plain_message {
	const char *id, *type, *key, *time;
	const char *body;
	size_t size;
};

#define PLAIN_SOURCE "/outbox/bench"
#define PLAIN_CONTENT_TYPE "application/json"
#define PLAIN_TIME "2026-01-01T00:00:00.000000Z"

struct plain_ops {
	const char *name;
	const char *env;                /* where with-NAME leaves the URL */
	const char *options;            /* behind the URL, for our relay: where it is to go */
	void *(*open)(const char *url); /* connects */
	void (*make)(void *broker); /* makes the queue, stream or topic, and empties it where it can */
	long (*count)(void *broker); /* of messages there; NULL: it cannot be emptied */
	/* All n, acknowledged. */
	void (*publish)(void *broker, const struct plain_message *messages, size_t n);
	void (*close)(void *broker);
};

extern const struct plain_ops plain_rabbitmq, plain_kafka, plain_nats, plain_redis, plain_mqtt,
	plain_artemis, plain_elasticmq, plain_http;

/* "host" and port of a URL scheme://[user:password@]host:port/... */
void plain_address(const char *url, char host[256], int *port);

#endif
