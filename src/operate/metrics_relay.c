/* SPDX-License-Identifier: Apache-2.0 */
/* The families of what this process counted and timed, per target. */
#include "base/cleanup.h"
#include "operate/metrics_parts.h"

#include <string.h>

#define COUNTED(name_, field_, help_)                                 \
	{                                                             \
		{ name_, help_, METRIC_COUNTER, "{message}" },        \
			offsetof(struct target_metrics, field_), NULL \
	}
#define HAPPENED(name_, field_, help_)                                \
	{                                                             \
		{ name_, help_, METRIC_COUNTER, "{event}" },          \
			offsetof(struct target_metrics, field_), NULL \
	}
#define TIMED(name_, field_, bounds_, unit_, help_)                         \
	{                                                                   \
		{ name_, help_, METRIC_HISTOGRAM, unit_ },                  \
			offsetof(struct target_metrics, field_), &(bounds_) \
	}

struct counted {
	struct metric_family family;
	size_t offset;                         /* of a uint64_t, or of a struct histogram_view */
	const struct histogram_bounds *bounds; /* NULL: a counter */
};

static const struct counted counted[] = {
	COUNTED("outbox_delivered_total", delivered, "Messages that the broker acknowledged"),
	COUNTED("outbox_failed_total", failed,
		"Deliveries that failed for good: attempts used up, rejected or expired"),
	COUNTED("outbox_retried_total", retried, "Failed tries that are tried again"),
	COUNTED("outbox_attempts_total", attempts, "Messages handed to the transport, every time"),
	COUNTED("outbox_parked_total", parked, "Messages set aside behind another of their key"),
	COUNTED("outbox_deferred_total", deferred, "Messages set aside until they are due"),
	COUNTED("outbox_returned_total", returned,
		"Messages given back unsent or unanswered, not charged"),
	HAPPENED("outbox_batches_total", batches, "Batches that were settled"),
	HAPPENED("outbox_outages_total", outages, "Times that the breaker opened"),
	HAPPENED("outbox_lane_takeovers_total", takeovers,
		 "Lanes taken over with messages in flight"),
	HAPPENED("outbox_fenced_total", fenced, "Settlements refused since the lane was lost"),
	TIMED("outbox_batch_size", batch_size, histogram_sizes, "{message}",
	      "Messages in a settled batch"),
	TIMED("outbox_publish_seconds", publish, histogram_durations, "s",
	      "Duration of one call of the transport"),
	TIMED("outbox_settle_seconds", settle, histogram_durations, "s",
	      "Duration of settling a batch and claiming the next one"),
	TIMED("outbox_delivery_latency_seconds", latency, histogram_latencies, "s",
	      "From when a message could first be sent to its acknowledgement"),
	TIMED("outbox_event_latency_seconds", event_latency, histogram_latencies, "s",
	      "From a message's event time to its acknowledgement"),
};

/* Calls `each` for every target of every source that this process runs. */
typedef void (*each_target)(const struct metric_sink *sink, const struct metric_family *family,
			    const struct target_metrics *m, struct metric_point *p,
			    const void *context);

static void walk_targets(const struct sample *sample, const struct metric_sink *sink,
			 const struct metric_family *family, each_target each, const void *context)
{
	sink->family(sink->context, family);
	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct daemon_source *s = sample->sources[i].source;

		for (size_t t = 0; t < s->n_targets; t++) {
			struct metric_point p = metric_point_of(s->name, s->targets[t].target);

			each(sink, family, &s->targets[t], &p, context);
		}
	}
}

static void each_counted(const struct metric_sink *sink, const struct metric_family *family,
			 const struct target_metrics *m, struct metric_point *p, const void *context)
{
	const struct counted *c = context;
	const void *field = (const char *)m + c->offset;
	uint64_t value;

	if (c->bounds) {
		p->histogram = field;
		p->bounds = c->bounds;
	} else {
		memcpy(&value, field, sizeof(value));
		p->value = (int64_t)value;
	}
	metric_say(sink, family, p);
}

static void each_duplicate(const struct metric_sink *sink, const struct metric_family *family,
			   const struct target_metrics *m, struct metric_point *p,
			   const void *context)
{
	const struct {
		const char *reason;
		uint64_t n;
	} all[] = {
		{ "unknown", m->duplicates_unknown },
		{ "takeover", m->duplicates_takeover },
		{ "fenced", m->duplicates_fenced },
		{ "recognised", m->duplicates_recognised },
	};

	(void)context;
	metric_add_label(p, "reason", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		p->labels[2].value = all[i].reason;
		p->value = (int64_t)all[i].n;
		metric_say(sink, family, p);
	}
}

static void each_info(const struct metric_sink *sink, const struct metric_family *family,
		      const struct target_metrics *m, struct metric_point *p, const void *context)
{
	(void)context;
	metric_add_label(p, "transport", m->transport ? m->transport : "");
	p->value = 1;
	metric_say(sink, family, p);
}

static void each_breaker(const struct metric_sink *sink, const struct metric_family *family,
			 const struct target_metrics *m, struct metric_point *p, const void *context)
{
	(void)context;
	p->value = (int64_t)m->breaker;
	metric_say(sink, family, p);
}

static void each_throttled(const struct metric_sink *sink, const struct metric_family *family,
			   const struct target_metrics *m, struct metric_point *p,
			   const void *context)
{
	(void)context;
	p->value = m->throttled;
	metric_say(sink, family, p);
}

static void each_held(const struct metric_sink *sink, const struct metric_family *family,
		      const struct target_metrics *m, struct metric_point *p, const void *context)
{
	(void)context;
	p->value = m->lanes;
	metric_say(sink, family, p);
}

static void each_flying(const struct metric_sink *sink, const struct metric_family *family,
			const struct target_metrics *m, struct metric_point *p, const void *context)
{
	(void)context;
	p->value = (int64_t)m->in_flight_messages;
	metric_say(sink, family, p);
}

static void each_last(const struct metric_sink *sink, const struct metric_family *family,
		      const struct target_metrics *m, struct metric_point *p, const void *context)
{
	(void)context;
	p->value = m->last_delivery;
	if (m->last_delivery)
		metric_say(sink, family, p);
}

static const struct {
	struct metric_family family;
	each_target each;
} special[] = {
	{ { "outbox_duplicates_total", "Messages that were or may have been sent twice, by reason",
	    METRIC_COUNTER, "{message}" },
	  each_duplicate },
	{ { "outbox_target_info", "A target that this process serves, and its transport",
	    METRIC_GAUGE, "1" },
	  each_info },
	{ { "outbox_breaker_state",
	    "0 closed, 1 open, 2 probing: the worst of the target's workers", METRIC_GAUGE, "1" },
	  each_breaker },
	{ { "outbox_throttled", "1 while messages wait for the target's rate limit", METRIC_GAUGE,
	    "1" },
	  each_throttled },
	{ { "outbox_lanes_held", "Lanes that this process holds", METRIC_GAUGE, "{lane}" },
	  each_held },
	{ { "outbox_in_flight", "Messages claimed by this process and not settled yet",
	    METRIC_GAUGE, "{message}" },
	  each_flying },
	{ { "outbox_last_delivery_timestamp_seconds", "When the last batch was settled",
	    METRIC_GAUGE, "s" },
	  each_last },
};

void metrics_walk_relays(const struct sample *sample, const struct metric_sink *sink)
{
	for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
		walk_targets(sample, sink, &counted[i].family, each_counted, &counted[i]);
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		walk_targets(sample, sink, &special[i].family, special[i].each, NULL);
}
