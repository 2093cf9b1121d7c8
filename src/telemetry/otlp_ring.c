/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded queue of many writers and one reader: each slot says whose turn it is. A slot with turn == position may be
 * filled, with turn == position + 1 taken out; then it is the writers' again, one round later.
 */
#include "telemetry/otlp_ring.h"

#include <stdio.h>
#include <string.h>

#define MASK ((size_t)OTLP_RING_SIZE - 1)

void otlp_ring_init(struct otlp_ring *ring)
{
	for (size_t i = 0; i < OTLP_RING_SIZE; i++)
		atomic_init(&ring->slots[i].turn, i);
}

static void fill_batch(struct otlp_batch *b, const char *source, const struct batch_report *r)
{
	snprintf(b->source, sizeof(b->source), "%s", source);
	snprintf(b->target, sizeof(b->target), "%s", r->target);
	snprintf(b->outage, sizeof(b->outage), "%s", r->outage ? r->outage : "");
	b->report = *r;
	b->report.target = b->report.outage = NULL;
	b->report.traceparents = NULL;
	b->n_links = b->dropped_links = 0;
	for (size_t i = 0; i < r->n_traceparents; i++) {
		if (b->n_links == OTLP_LINKS_MAX)
			b->dropped_links++;
		else if (traceparent_parse(r->traceparents[i], &b->links[b->n_links]))
			b->n_links++;
	}
}

bool otlp_ring_put(struct otlp_ring *ring, const char *source, const struct batch_report *report)
{
	size_t at = atomic_load_explicit(&ring->head, memory_order_relaxed);

	for (;;) {
		struct otlp_slot *slot = &ring->slots[at & MASK];
		size_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);

		if (turn == at) {
			if (!atomic_compare_exchange_weak_explicit(&ring->head, &at, at + 1,
								   memory_order_relaxed,
								   memory_order_relaxed))
				continue; /* another worker was faster: `at` is new */
			fill_batch(&slot->batch, source, report);
			atomic_store_explicit(&slot->turn, at + 1, memory_order_release);
			return true;
		}
		if ((ptrdiff_t)(turn - at) < 0)
			return false; /* not taken out yet */
		at = atomic_load_explicit(&ring->head, memory_order_relaxed);
	}
}

bool otlp_ring_take(struct otlp_ring *ring, struct otlp_batch *ret_batch)
{
	size_t at = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	struct otlp_slot *slot = &ring->slots[at & MASK];

	if (atomic_load_explicit(&slot->turn, memory_order_acquire) != at + 1)
		return false;
	memcpy(ret_batch, &slot->batch, sizeof(*ret_batch));
	atomic_store_explicit(&slot->turn, at + OTLP_RING_SIZE, memory_order_release);
	atomic_store_explicit(&ring->tail, at + 1, memory_order_relaxed);
	return true;
}

size_t otlp_ring_count(const struct otlp_ring *ring)
{
	size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed),
	       head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	return head - tail <= OTLP_RING_SIZE ? head - tail : 0;
}
