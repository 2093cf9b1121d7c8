/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_METRICS_H
#define RELAY_METRICS_H

/*
 * What a relay counts and times, per target. Workers write with relaxed atomics, anybody reads: a reader never
 * makes a worker wait. Everything is since the relay was made.
 */

#include <outbox/relay.h>

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
	outbox_time last_delivery;        /* wall; 0: none yet */
	struct histogram_view batch_size; /* histogram_sizes: messages of each settled claim */
	struct histogram_view publish;    /* histogram_durations: each call of the transport */
	struct histogram_view settle; /* histogram_durations: each settlement, with the next claim */
	/* histogram_latencies: to the acknowledgement, in the store's time, one for each delivered message. From
	 * when it could first be sent: created_at, which is nearly the commit, the time it was due or deferred to,
	 * a requeue, the end of a pause. And from event_time. */
	struct histogram_view latency, event_latency;
};

/* Has it been started, and nobody told it to stop? */
bool relay_running(const struct outbox_relay *relay);

/* Its store is a replay's spool: see relay/outgoing.h. Before it starts. */
void relay_set_replay(struct outbox_relay *relay);

size_t relay_target_count(const struct outbox_relay *relay);
void relay_target_metrics(const struct outbox_relay *relay, size_t target,
			  struct target_metrics *ret_metrics);

void relay_counts_add(struct outbox_relay_counts *sum, const struct outbox_relay_counts *more);

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

/* Be told of every settled batch. Before start(); must be quick and must not block. */
typedef void (*batch_observer)(void *context, const struct batch_report *report);
void relay_observe(struct outbox_relay *relay, batch_observer observer, void *context);

#endif
