/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NATS_BATCH_H
#define NATS_BATCH_H

/* A batch to publish, for tests that look at single verdicts. */

#include <outbox/arena.h>
#include <outbox/transport.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define BATCH_MAX 2000

extern const struct outbox_transport_ops nats_transport_ops;

struct batch {
	struct outbox_arena *arena;
	struct outbox_batch batch;
	struct outbox_item items[BATCH_MAX], *pointers[BATCH_MAX];
	struct outbox_message messages[BATCH_MAX];
	struct outbox_error err;
};

struct batch *batch_new(void);
void batch_free(struct batch *batch);

/* Add a message: type "ok.N" unless it is changed, id "<prefix>-N", a small JSON payload. */
struct outbox_message *batch_add(struct batch *batch, const char *prefix);
void batch_add_many(struct batch *batch, const char *prefix, size_t count);

/* Open and connect; fails the test when it cannot. */
struct outbox_transport *transport_to(const char *format, ...) __attribute__((format(printf, 1, 2)));

outbox_time in_seconds(int seconds);
/* Publish with that much time; the result. */
int batch_publish(struct batch *batch, struct outbox_transport *transport, int seconds);

size_t batch_count(const struct batch *batch, int verdict);
/* The verdict of one, and a part of its reason (NULL: none). */
void assert_verdict(const struct batch *batch, size_t i, int verdict, const char *reason);

#endif
