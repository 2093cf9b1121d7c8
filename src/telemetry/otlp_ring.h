/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_OTLP_RING_H
#define TELEMETRY_OTLP_RING_H

/*
 * Settled batches on their way from the workers to the thread that sends them. Of a fixed size, made once: a
 * worker puts its report in without a lock and without memory of its own, or it is full.
 */

#include "core/message.h"
#include "relay/metrics.h"

#include <outbox/store.h>

#include <stdatomic.h>
#include <stdbool.h>

#define OTLP_RING_SIZE 1024 /* a power of 2 */
#define OTLP_LINKS_MAX 64   /* of one span; collectors cut at 128 */

struct otlp_batch {
	char source[OUTBOX_TARGET_NAME_MAX + 1], target[OUTBOX_TARGET_NAME_MAX + 1];
	char outage[200];           /* "": none */
	struct batch_report report; /* its numbers; its texts are NULL */
	struct traceparent links[OTLP_LINKS_MAX];
	size_t n_links, dropped_links;
};

struct otlp_slot {
	_Atomic size_t turn;
	struct otlp_batch batch;
};

struct otlp_ring {
	_Atomic size_t head; /* the next one that a worker fills */
	_Atomic size_t tail; /* the next one that is taken out */
	struct otlp_slot slots[OTLP_RING_SIZE];
};

void otlp_ring_init(struct otlp_ring *ring);

/* From any thread; never waits. False: it is full. */
bool otlp_ring_put(struct otlp_ring *ring, const char *source, const struct batch_report *report);

/* From one thread. False: it is empty. */
bool otlp_ring_take(struct otlp_ring *ring, struct otlp_batch *ret_batch);

/* How many are in it, about. */
size_t otlp_ring_count(const struct otlp_ring *ring);

#endif
