/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/metrics.h"

#define MS OUTBOX_MILLISECONDS
#define S OUTBOX_SECONDS

const struct histogram_bounds histogram_durations = {
	.unit = "seconds",
	.count = 19,
	.bounds = { 100, 250, 500, 1 * MS, 5 * MS / 2, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS,
		    250 * MS, 500 * MS, 1 * S, 5 * S / 2, 5 * S, 10 * S, 30 * S, 60 * S, 300 * S },
};

/* Below a millisecond nothing was ever delivered; after an outage it may be hours. */
const struct histogram_bounds histogram_latencies = {
	.unit = "seconds",
	.count = 19,
	.bounds = { 1 * MS, 5 * MS / 2, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS,
		    500 * MS, 1 * S, 5 * S / 2, 5 * S, 10 * S, 30 * S, 60 * S, 300 * S, 900 * S,
		    3600 * S, 21600 * S },
};

const struct histogram_bounds histogram_sizes = {
	.unit = "messages",
	.count = 16,
	.bounds = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000,
		    100000 },
};

size_t histogram_bucket(const struct histogram_bounds *bounds, int64_t value)
{
	size_t i = 0;

	while (i < bounds->count && value > bounds->bounds[i])
		i++;
	return i;
}

static void add_sum(_Atomic int64_t *sum, int64_t n)
{
	atomic_fetch_add_explicit(sum, n, memory_order_relaxed);
}

void histogram_observe(struct histogram *h, const struct histogram_bounds *bounds, int64_t value)
{
	if (value < 0) /* a clock was set back */
		value = 0;
	tally_add(&h->buckets[histogram_bucket(bounds, value)], 1);
	add_sum(&h->sum, value);
}

static bool is_within(const struct histogram_bounds *bounds, size_t bucket, int64_t value)
{
	return (bucket == bounds->count || value <= bounds->bounds[bucket]) &&
	       (bucket == 0 || value > bounds->bounds[bucket - 1]);
}

/* Neighbours in the log are of nearly the same age: mostly the last bucket is right again. */
static void add_age(struct histogram_view *view, size_t *bucket, int64_t age)
{
	const struct histogram_bounds *bounds = &histogram_latencies;

	if (age < 0)
		age = 0;
	if (!is_within(bounds, *bucket, age))
		*bucket = histogram_bucket(bounds, age);
	view->buckets[*bucket]++;
	view->sum += age;
}

/* Since when it could be sent, as far as the message and its delivery say. */
static outbox_time ready_since(const struct outbox_claimed *item)
{
	if (item->ready_at)
		return item->ready_at;
	return item->message.due_at > item->created_at ? item->message.due_at : item->created_at;
}

static void add_latencies(struct trip *trip, const struct batch *batch, outbox_time acked_at,
			  outbox_time open_since)
{
	size_t bucket = 0, event_bucket = 0;

	for (size_t i = 0; i < batch->round.count; i++) {
		const struct outbox_claimed *item = &batch->claim.items[batch->in_round[i]];
		outbox_time since = ready_since(item), event = item->message.event_time;

		if (batch->round.items[i]->verdict != OUTBOX_ACKED)
			continue;
		add_age(&trip->latency, &bucket,
			acked_at - (since > open_since ? since : open_since));
		add_age(&trip->event_latency, &event_bucket,
			acked_at - (event ? event : item->created_at));
	}
}

void tally_called(struct tally *t, outbox_time took)
{
	histogram_observe(&t->publish, &histogram_durations, took);
}

void tally_published(struct tally *t, struct trip *trip, const struct batch *batch,
		     outbox_time took, outbox_time acked_at, outbox_time open_since)
{
	tally_add(&t->attempts, batch->round.count);
	trip->publish += took;
	add_latencies(trip, batch, acked_at, open_since);
}

static void report_batch(const struct tally *t, const struct tally_batch *b)
{
	const struct batch *batch = b->batch;
	struct batch_report report = {
		.target = b->target,
		.lane = b->lane,
		.messages = batch->claim.count,
		.delivered = b->ended->delivered,
		.failed = b->ended->failed,
		.retried = b->ended->waiting,
		.began = b->trip->began ? b->trip->began : b->wall - b->settle,
		.publish = b->trip->publish,
		.settle = b->settle,
		.outage = b->trip->outage ? b->outage : NULL,
	};
	/* No memory: the report goes without them. */
	const char **parents =
		outbox_arena_alloc(batch->arena, batch->claim.count * sizeof(*parents));

	for (size_t i = 0; parents && i < batch->claim.count; i++)
		if (batch->outcomes[i].outcome == OUTBOX_OUT_DELIVERED &&
		    batch->claim.items[i].message.traceparent)
			parents[report.n_traceparents++] = batch->claim.items[i].message.traceparent;
	report.traceparents = parents;
	t->observer(t->observer_context, &report);
}

static void add_view(struct histogram *h, const struct histogram_view *more)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (more->buckets[i])
			tally_add(&h->buckets[i], more->buckets[i]);
	add_sum(&h->sum, more->sum);
}

void tally_settled(struct tally *t, const struct tally_batch *b)
{
	const struct batch_outcomes *ended = b->ended;

	tally_add(&t->delivered, ended->delivered);
	tally_add(&t->failed, ended->failed);
	tally_add(&t->retried, ended->waiting);
	tally_add(&t->parked, ended->parked);
	tally_add(&t->deferred, ended->deferred);
	tally_add(&t->returned, ended->returned);
	tally_add(&t->batches, 1);
	histogram_observe(&t->batch_size, &histogram_sizes, (int64_t)b->batch->claim.count);
	histogram_observe(&t->settle, &histogram_durations, b->settle);
	add_view(&t->latency, &b->trip->latency);
	add_view(&t->event_latency, &b->trip->event_latency);
	if (ended->delivered)
		atomic_store_explicit(&t->last_delivery, b->wall, memory_order_relaxed);
	if (t->observer)
		report_batch(t, b);
}

static struct histogram_view read_histogram(const struct histogram *h)
{
	struct histogram_view view = { .sum = atomic_load_explicit(&h->sum, memory_order_relaxed) };

	/* Counted here, so that the buckets always add up to it. */
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		view.buckets[i] = atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
		view.count += view.buckets[i];
	}
	return view;
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void tally_view(const struct tally *t, struct target_metrics *ret)
{
	*ret = (struct target_metrics){
		.delivered = read_counter(&t->delivered),
		.failed = read_counter(&t->failed),
		.retried = read_counter(&t->retried),
		.parked = read_counter(&t->parked),
		.deferred = read_counter(&t->deferred),
		.returned = read_counter(&t->returned),
		.batches = read_counter(&t->batches),
		.attempts = read_counter(&t->attempts),
		.outages = read_counter(&t->outages),
		.takeovers = read_counter(&t->takeovers),
		.fenced = read_counter(&t->fenced),
		.duplicates_unknown = read_counter(&t->duplicates_unknown),
		.duplicates_takeover = read_counter(&t->duplicates_takeover),
		.duplicates_fenced = read_counter(&t->duplicates_fenced),
		.duplicates_recognised = read_counter(&t->duplicates_recognised),
		.in_flight_batches = read_counter(&t->in_flight_batches),
		.in_flight_messages = read_counter(&t->in_flight_messages),
		.last_delivery = atomic_load_explicit(&t->last_delivery, memory_order_relaxed),
		.untidy_since = atomic_load_explicit(&t->untidy_since, memory_order_relaxed),
		.batch_size = read_histogram(&t->batch_size),
		.publish = read_histogram(&t->publish),
		.settle = read_histogram(&t->settle),
		.latency = read_histogram(&t->latency),
		.event_latency = read_histogram(&t->event_latency),
	};
}
