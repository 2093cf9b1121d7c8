/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_TALLY_H
#define RELAY_TALLY_H

/*
 * What the workers of one target count and time. They write with relaxed atomics, a few for each batch and none
 * for each message; whoever reads takes no lock and makes nobody wait. Sums may be read a batch apart.
 */

#include "relay/batch.h"
#include "relay/metrics.h"

#include <stdatomic.h>

struct histogram {
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
	_Atomic int64_t sum;
};

struct tally {
	_Atomic uint64_t delivered, failed, retried, parked, deferred, returned, batches, attempts;
	_Atomic uint64_t outages, takeovers, fenced;
	_Atomic uint64_t duplicates_unknown, duplicates_takeover, duplicates_fenced;
	_Atomic uint64_t duplicates_recognised;
	_Atomic uint64_t in_flight_batches, in_flight_messages;
	_Atomic outbox_time last_delivery;
	struct histogram batch_size, publish, settle, latency, event_latency;
	batch_observer observer; /* set before the threads start */
	void *observer_context;
};

/* A claim on its way, until it is settled. */
struct trip {
	outbox_time began; /* wall: when its first message was handed to the transport; 0: not yet */
	outbox_time publish; /* how long the transport had it, over all rounds */
	bool outage;         /* the broker went away meanwhile */
	struct histogram_view latency, event_latency; /* of what was acknowledged */
};

/* A claim that was settled. */
struct tally_batch {
	const char *target;
	int lane;
	const struct batch *batch;
	const struct batch_outcomes *ended;
	const struct trip *trip;
	outbox_time settle; /* how long that took */
	outbox_time wall;   /* now */
	const char *outage; /* the text for the trip's outage */
};

static inline void tally_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void tally_sub(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_sub_explicit(counter, n, memory_order_relaxed);
}

/* The bucket of a value: the first whose bound is not below it. */
size_t histogram_bucket(const struct histogram_bounds *bounds, int64_t value);
void histogram_observe(struct histogram *histogram, const struct histogram_bounds *bounds,
		       int64_t value);

/* One publish() took so long. */
void tally_called(struct tally *tally, outbox_time took);

/* A round came back from the transport, after `took`, at the store's time `acked_at`. Before it is judged.
 * open_since: nothing could be sent to the target before. */
void tally_published(struct tally *tally, struct trip *trip, const struct batch *batch,
		     outbox_time took, outbox_time acked_at, outbox_time open_since);

/* The claim was settled: count it and tell the observer. */
void tally_settled(struct tally *tally, const struct tally_batch *batch);

/* Everything but what belongs to single workers: breaker, lanes, names. */
void tally_view(const struct tally *tally, struct target_metrics *ret_metrics);

#endif
