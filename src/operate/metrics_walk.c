/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/metrics.h"

#include "base/cleanup.h"
#include "operate/status.h"

#include <stdio.h>
#include <string.h>

bool metric_in_seconds(const struct metric_family *family)
{
	return strcmp(family->unit, "s") == 0;
}

/* A point with the label source, and target unless it is NULL. */
static struct metric_point metric_point_of(const char *source, const char *target)
{
	struct metric_point p = { .n_labels = target ? 2 : 1 };

	p.labels[0] = (struct metric_label){ "source", source };
	p.labels[1] = (struct metric_label){ "target", target };
	return p;
}

void metric_add_label(struct metric_point *p, const char *name, const char *value)
{
	p->labels[p->n_labels++] = (struct metric_label){ name, value };
}

void metric_say(const struct metric_sink *sink, const struct metric_family *family,
		const struct metric_point *point)
{
	sink->point(sink->context, family, point);
}

/* ---- targets ------------------------------------------------------------------------------- */

/* A target as this process serves it, or as its store has it: one of the two. */
struct target_view {
	const struct target_metrics *relay;
	const struct outbox_target_stats *store;
	outbox_time now; /* the store's */
};

struct target_metric {
	struct metric_family family;
	size_t offset; /* in relay or store: of a 64-bit number, or with bounds of a struct histogram_view */
	const struct histogram_bounds *bounds;         /* of a histogram */
	int64_t (*value)(const struct target_view *t); /* instead of offset; below 0: no point */
	/* instead of both: several points, by a label of its own */
	void (*points)(const struct metric_sink *sink, const struct metric_family *family,
		       const struct target_view *t, struct metric_point *p);
};

static int64_t number_at(const void *row, size_t offset)
{
	return *(const int64_t *)((const char *)row + offset);
}

static void say_target(const struct metric_sink *sink, const struct target_metric *metric,
		       const struct target_view *t, struct metric_point *p)
{
	const void *row = t->relay ? (const void *)t->relay : t->store;

	if (metric->points) {
		metric->points(sink, &metric->family, t, p);
		return;
	}
	p->bounds = metric->bounds;
	if (metric->bounds)
		p->histogram = (const void *)((const char *)row + metric->offset);
	else
		p->value = metric->value ? metric->value(t) : number_at(row, metric->offset);
	if (p->value >= 0)
		metric_say(sink, &metric->family, p);
}

/* Every target of every source that this process runs, or of every store that answered. */
static void walk_targets(const struct sample *sample, const struct metric_sink *sink,
			 const struct target_metric *metric, bool of_store)
{
	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct daemon_source *source = sample->sources[i].source;
		const struct outbox_stats *stats = sample->sources[i].stats;
		size_t count = !of_store ? source->n_targets : stats ? stats->n_targets : 0;

		for (size_t n = 0; n < count; n++) {
			struct target_view t = { 0 };
			struct metric_point p;

			if (of_store)
				t = (struct target_view){ .store = &stats->targets[n],
							  .now = stats->store_now };
			else
				t.relay = &source->targets[n];
			p = metric_point_of(source->name, of_store ? t.store->name : t.relay->target);
			say_target(sink, metric, &t, &p);
		}
	}
}

/* ---- what this process counted and timed ----------------------------------------------------- */

static int64_t breaker_state(const struct target_view *t)
{
	return (int64_t)t->relay->breaker;
}

static int64_t is_throttled(const struct target_view *t)
{
	return t->relay->throttled;
}

static int64_t lanes_held(const struct target_view *t)
{
	return t->relay->lanes;
}

static int64_t cleanup_failing(const struct target_view *t)
{
	return t->relay->untidy_since != 0;
}

static int64_t last_delivery(const struct target_view *t)
{
	return t->relay->last_delivery ? t->relay->last_delivery : -1;
}

static void duplicates_by_reason(const struct metric_sink *sink, const struct metric_family *family,
				 const struct target_view *t, struct metric_point *p)
{
	const struct {
		const char *reason;
		uint64_t n;
	} all[] = {
		{ "unknown", t->relay->duplicates_unknown },
		{ "takeover", t->relay->duplicates_takeover },
		{ "fenced", t->relay->duplicates_fenced },
		{ "recognised", t->relay->duplicates_recognised },
	};

	metric_add_label(p, "reason", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		p->labels[2].value = all[i].reason;
		p->value = (int64_t)all[i].n;
		metric_say(sink, family, p);
	}
}

static void info_with_transport(const struct metric_sink *sink, const struct metric_family *family,
				const struct target_view *t, struct metric_point *p)
{
	metric_add_label(p, "transport", t->relay->transport ? t->relay->transport : "");
	p->value = 1;
	metric_say(sink, family, p);
}

#define COUNTED(name_, field_, unit_, help_)                              \
	{                                                                 \
		{ name_, help_, METRIC_COUNTER, unit_ },                  \
			.offset = offsetof(struct target_metrics, field_) \
	}
#define TIMED(name_, field_, bounds_, unit_, help_)                                             \
	{                                                                                       \
		{ name_, help_, METRIC_HISTOGRAM, unit_ },                                      \
			.offset = offsetof(struct target_metrics, field_), .bounds = &(bounds_) \
	}

static const struct target_metric relay_metrics[] = {
	COUNTED("outbox_delivered_total", delivered, "{message}",
		"Messages that the broker acknowledged"),
	COUNTED("outbox_failed_total", failed, "{message}",
		"Deliveries that failed for good: attempts used up, rejected or expired"),
	COUNTED("outbox_retried_total", retried, "{message}", "Failed tries that are tried again"),
	COUNTED("outbox_attempts_total", attempts, "{message}",
		"Messages handed to the transport, every time"),
	COUNTED("outbox_parked_total", parked, "{message}",
		"Messages set aside behind another of their key"),
	COUNTED("outbox_deferred_total", deferred, "{message}",
		"Messages set aside until they are due"),
	COUNTED("outbox_returned_total", returned, "{message}",
		"Messages given back unsent or unanswered, not charged"),
	COUNTED("outbox_batches_total", batches, "{event}", "Batches that were settled"),
	COUNTED("outbox_outages_total", outages, "{event}", "Times that the breaker opened"),
	COUNTED("outbox_lane_takeovers_total", takeovers, "{event}",
		"Lanes taken over with messages in flight"),
	COUNTED("outbox_fenced_total", fenced, "{event}",
		"Settlements refused because the lane was lost"),
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
	{ { "outbox_duplicates_total", "Messages that were or may have been sent twice, by reason",
	    METRIC_COUNTER, "{message}" },
	  .points = duplicates_by_reason },
	{ { "outbox_target_info", "A target that this process serves, and its transport",
	    METRIC_GAUGE, "1" },
	  .points = info_with_transport },
	{ { "outbox_in_flight", "Messages claimed by this process and not settled yet",
	    METRIC_GAUGE, "{message}" },
	  .offset = offsetof(struct target_metrics, in_flight_messages) },
	{ { "outbox_breaker_state",
	    "0 closed, 1 open, 2 probing: the worst of the target's workers", METRIC_GAUGE, "1" },
	  .value = breaker_state },
	{ { "outbox_throttled", "1 while messages wait for the target's rate limit", METRIC_GAUGE,
	    "1" },
	  .value = is_throttled },
	{ { "outbox_lanes_held", "Lanes that this process holds", METRIC_GAUGE, "{lane}" },
	  .value = lanes_held },
	{ { "outbox_cleanup_failing",
	    "1 while the clean-up that the target's worker does for its source fails", METRIC_GAUGE,
	    "1" },
	  .value = cleanup_failing },
	{ { "outbox_last_delivery_timestamp_seconds",
	    "When the last batch with a delivery was settled", METRIC_GAUGE, "s" },
	  .value = last_delivery },
};

/* ---- what the stores say --------------------------------------------------------------------
 *
 * The same whichever relay is asked. A store that did not answer has no values at all: an old number would be
 * taken for a new one.
 */

static int64_t oldest_age(const struct target_view *t)
{
	return t->store->oldest && t->store->oldest < t->now ? t->now - t->store->oldest : 0;
}

static int64_t is_paused(const struct target_view *t)
{
	return t->store->paused;
}

static int64_t is_closed(const struct target_view *t)
{
	return status_closed(t->store);
}

static int64_t has_outage(const struct target_view *t)
{
	return t->store->outage != NULL;
}

static int64_t is_unserved(const struct target_view *t)
{
	return t->store->unserved != NULL;
}

static int64_t lanes_refused(const struct target_view *t)
{
	size_t count;

	status_refused(t->store, &count);
	return (int64_t)count;
}

/* "relay-a:83a0/0" is one worker of relay-a in one of its lives: people look for relay-a. */
struct owner_name {
	char text[256];
};

static struct owner_name name_of(const struct outbox_lane_stats *lane, outbox_time now)
{
	struct owner_name name = { "" };
	char *end;

	if (!lane->owner || lane->lease_until <= now)
		return name;
	snprintf(name.text, sizeof(name.text), "%s", lane->owner);
	end = strrchr(name.text, '/');
	if (end)
		*end = '\0';
	end = strrchr(name.text, ':');
	if (end)
		*end = '\0';
	return name;
}

/* Is it the first of the target's lanes with this owner? */
static bool first_of_owner(const struct outbox_target_stats *target, size_t lane, outbox_time now)
{
	struct owner_name name = name_of(&target->lanes[lane], now);

	for (size_t i = 0; i < lane; i++)
		if (strcmp(name_of(&target->lanes[i], now).text, name.text) == 0)
			return false;
	return true;
}

static int64_t lane_owners(const struct target_view *t)
{
	int64_t owners = 0;

	for (size_t i = 0; i < t->store->n_lanes; i++)
		owners += name_of(&t->store->lanes[i], t->now).text[0] &&
			  first_of_owner(t->store, i, t->now);
	return owners;
}

static void lanes_by_owner(const struct metric_sink *sink, const struct metric_family *family,
			   const struct target_view *t, struct metric_point *p)
{
	const struct outbox_target_stats *target = t->store;

	metric_add_label(p, "owner", NULL);
	for (size_t i = 0; i < target->n_lanes; i++) {
		struct owner_name name = name_of(&target->lanes[i], t->now);

		if (!first_of_owner(target, i, t->now))
			continue;
		p->labels[2].value = name.text;
		p->value = 0;
		for (size_t k = i; k < target->n_lanes; k++)
			p->value += !strcmp(name_of(&target->lanes[k], t->now).text, name.text);
		metric_say(sink, family, p);
	}
}

#define HOW_MANY(field_, help_)                                                \
	{                                                                      \
		{ "outbox_" #field_, help_, METRIC_GAUGE, "{message}" },       \
			.offset = offsetof(struct outbox_target_stats, field_) \
	}

/* They stop at OUTBOX_COUNT_CAP. */
static const struct target_metric store_counts[] = {
	HOW_MANY(pending, "Messages in the log that are not read yet"),
	HOW_MANY(sending, "Deliveries claimed by some relay and not settled yet"),
	HOW_MANY(waiting, "Deliveries that wait for their next attempt"),
	HOW_MANY(parked, "Deliveries behind an unfinished one of their key"),
	HOW_MANY(deferred, "Deliveries that are not due yet"),
	HOW_MANY(failed, "Deliveries that failed and wait for somebody to act"),
	HOW_MANY(discarded, "Deliveries that an operator discarded"),
};

static void capped_counts(const struct metric_sink *sink, const struct metric_family *family,
			  const struct target_view *t, struct metric_point *p)
{
	metric_add_label(p, "gauge", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(store_counts); i++) {
		p->labels[2].value = store_counts[i].family.name;
		p->value = number_at(t->store, store_counts[i].offset) > OUTBOX_COUNT_CAP;
		metric_say(sink, family, p);
	}
}

static const struct target_metric store_metrics[] = {
	{ { "outbox_count_capped", "1 if counting stopped and the true number may be higher",
	    METRIC_GAUGE, "1" },
	  .points = capped_counts },
	{ { "outbox_oldest_age_seconds",
	    "How long the oldest unfinished delivery has been ready to send, failed ones aside",
	    METRIC_GAUGE, "s" },
	  .value = oldest_age },
	{ { "outbox_paused", "1 while the target is paused", METRIC_GAUGE, "1" }, .value = is_paused },
	{ { "outbox_closed", "1 while the target is paused because it said that it is gone for good",
	    METRIC_GAUGE, "1" },
	  .value = is_closed },
	{ { "outbox_outage", "1 while some relay says that it cannot reach the target",
	    METRIC_GAUGE, "1" },
	  .value = has_outage },
	{ { "outbox_unserved", "1 while a relay that is configured for the target does not serve it",
	    METRIC_GAUGE, "1" },
	  .value = is_unserved },
	{ { "outbox_store_delivered_total", "Messages delivered by all relays, ever",
	    METRIC_COUNTER, "{message}" },
	  .offset = offsetof(struct outbox_target_stats, delivered_ever) },
	{ { "outbox_lanes", "Lanes by the relay that holds them; owner \"\" means no relay",
	    METRIC_GAUGE, "{lane}" },
	  .points = lanes_by_owner },
	{ { "outbox_lane_owners", "Relays that hold lanes of the target", METRIC_GAUGE, "{relay}" },
	  .value = lane_owners },
	{ { "outbox_lanes_refused", "Lanes that wait for outbox realign", METRIC_GAUGE, "{lane}" },
	  .value = lanes_refused },
};

/* ---- all of it ------------------------------------------------------------------------------- */

static void walk_sources(const struct sample *sample, const struct metric_sink *sink)
{
	static const struct metric_family up = { "outbox_source_up",
						 "1 if the store answered when it was last sampled",
						 METRIC_GAUGE, "1" },
					  running = { "outbox_source_running",
						      "1 while this process relays the source",
						      METRIC_GAUGE, "1" },
					  messages = { "outbox_messages",
						       "Messages in the log, at most 100,001",
						       METRIC_GAUGE, "{message}" };
	const struct metric_family *families[] = { &up, &running, &messages };

	for (size_t f = 0; f < 3; f++) {
		for (size_t i = 0; i < sample->n_sources; i++) {
			const struct sample_source *s = &sample->sources[i];
			struct metric_point p = metric_point_of(s->source->name, NULL);

			if (f == 0)
				p.value = s->stats != NULL;
			else if (f == 1)
				p.value = s->source->state == SOURCE_RUNNING;
			else if (s->stats)
				p.value = s->stats->messages;
			else
				continue;
			metric_say(sink, families[f], &p);
		}
	}
}

/* Of the inbox beside an outbox, where there is one. */
static void walk_inboxes(const struct sample *sample, const struct metric_sink *sink)
{
	static const struct metric_family families[] = {
		{ "outbox_inbox_ids", "Ids in the inbox; many are estimated, or counted to 100,001",
		  METRIC_GAUGE, "{id}" },
		{ "outbox_inbox_oldest_seconds", "Age of the oldest id in the inbox", METRIC_GAUGE,
		  "s" },
	};

	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		for (size_t i = 0; i < sample->n_sources; i++) {
			const struct sample_source *s = &sample->sources[i];
			struct metric_point p = metric_point_of(s->source->name, NULL);

			if (!s->stats || !s->stats->inbox.there)
				continue;
			if (f == 0)
				p.value = s->stats->inbox.rows;
			else if (s->stats->inbox.oldest)
				p.value = s->stats->inbox.store_now - s->stats->inbox.oldest;
			metric_say(sink, &families[f], &p);
		}
	}
}

/* One series for each finding while it lasts: what `outbox alerts` lists. */
static void walk_findings(const struct sample *sample, const struct metric_sink *sink)
{
	static const struct metric_family family = {
		"outbox_finding", "1 for each finding of the health rules while it lasts",
		METRIC_GAUGE, "1"
	};

	for (size_t i = 0; i < sample->n_findings; i++) {
		const struct health_finding *f = &sample->findings[i];
		struct metric_point p =
			metric_point_of(f->source ? f->source : "", f->target ? f->target : "");

		metric_add_label(&p, "rule", f->rule);
		metric_add_label(&p, "level", health_level_name(f->level));
		p.value = 1;
		metric_say(sink, &family, &p);
	}
}

void metric_alone(const struct metric_sink *sink, const struct metric_family *family, int64_t value)
{
	struct metric_point p = { .value = value };

	if (value >= 0)
		metric_say(sink, family, &p);
}

void metrics_walk(const struct sample *sample, const struct metric_sink *sink)
{
	static const struct metric_family health = { "outbox_health",
						     "0 healthy, 1 degraded, 2 unhealthy",
						     METRIC_GAUGE, "1" },
					  looked = { "outbox_looked_timestamp_seconds",
						     "When the stores were last sampled",
						     METRIC_GAUGE, "s" },
					  build = { "outbox_build_info", "The program's version",
						    METRIC_GAUGE, "1" };
	struct metric_point version = { .value = 1 };

	for (size_t i = 0; i < ARRAY_SIZE(relay_metrics); i++)
		walk_targets(sample, sink, &relay_metrics[i], false);
	for (size_t i = 0; i < ARRAY_SIZE(store_counts); i++)
		walk_targets(sample, sink, &store_counts[i], true);
	for (size_t i = 0; i < ARRAY_SIZE(store_metrics); i++)
		walk_targets(sample, sink, &store_metrics[i], true);
	walk_sources(sample, sink);
	walk_inboxes(sample, sink);
	metric_alone(sink, &health, (int64_t)sample->level);
	walk_findings(sample, sink);
	metric_alone(sink, &looked, sample->at);
	metric_add_label(&version, "version", OUTBOX_VERSION);
	metric_say(sink, &build, &version);
}
