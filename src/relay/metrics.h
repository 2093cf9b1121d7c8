/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_METRICS_H
#define RELAY_METRICS_H

/*
 * What a relay counts and times, per target. Workers write with relaxed atomics, anybody reads: a reader never
 * makes a worker wait. Everything is since the relay was made.
 */

#include "relay/batch.h"

#include <outbox/relay.h>

#include <stdatomic.h>

#define HISTOGRAM_BUCKETS 20 /* the last one is for what is above every bound */

/* Upper bounds of a histogram's buckets but the last, ascending. */
struct histogram_bounds {
	const char *unit; /* "seconds" (bounds and sum in microseconds), "messages" */
	size_t count;
	int64_t bounds[HISTOGRAM_BUCKETS - 1];
};

extern const struct histogram_bounds histogram_durations, histogram_latencies, histogram_sizes;

struct histogram_view {
	uint64_t buckets[HISTOGRAM_BUCKETS]; /* not cumulative */
	uint64_t count;
	int64_t sum;
};

enum breaker_state { BREAKER_CLOSED = 0, BREAKER_OPEN, BREAKER_PROBING };

struct target_metrics {
	const char *target;    /* the relay's own text */
	const char *transport; /* "rabbitmq" */
	uint64_t delivered, failed, retried, parked, deferred, returned, batches;
	uint64_t attempts; /* messages handed to the transport, every time */
	uint64_t outages, takeovers, fenced;
	/* messages that may be or were sent twice, by reason */
	uint64_t duplicates_unknown;  /* no answer from the broker */
	uint64_t duplicates_takeover; /* in flight when their relay died */
	uint64_t duplicates_fenced; /* acknowledged, but its lane was lost or the store did not answer */
	uint64_t duplicates_recognised; /* the broker had them already */
	enum breaker_state breaker;     /* the worst of its workers */
	int lanes;                      /* held by this relay */
	bool throttled;                 /* its rate is used up and somebody waits for it */
	uint64_t in_flight_batches, in_flight_messages;
	outbox_time last_delivery; /* wall; 0: none yet */
	outbox_time untidy_since; /* wall: its worker's clean-up fails since then; 0: it does not */
	struct histogram_view batch_size; /* histogram_sizes: messages of each settled claim */
	struct histogram_view publish;    /* histogram_durations: each call of the transport */
	struct histogram_view settle; /* histogram_durations: each settlement, with the next claim */
	/* histogram_latencies: to the acknowledgement, in the store's time, one for each delivered message. From
	 * when it could first be sent: created_at, which is nearly the commit, the time it was due or deferred to,
	 * a requeue, the end of a pause. And from event_time. */
	struct histogram_view latency, event_latency;
};

/* One settled batch, told by the worker that did it. Borrowed for the call. */
struct batch_report {
	const char *target;
	int lane;
	size_t messages, delivered, failed, retried;
	outbox_time began;           /* wall: when it was handed to the transport */
	outbox_time publish, settle; /* how long the transport took, all rounds; and the store */
	const char *outage;          /* NULL: the broker was there all the time */
	const char *const *traceparents; /* of its delivered messages that have one */
	size_t n_traceparents;
};

/* Is told of every settled batch; must be quick and must not block. */
typedef void (*batch_observer)(void *context, const struct batch_report *report);

/* ---- what workers write: a few atomics for each batch, none for each message. Sums may be read a batch apart */

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
	_Atomic outbox_time last_delivery, untidy_since;
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
