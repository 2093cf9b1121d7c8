/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/metrics.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

bool metric_in_seconds(const struct metric_family *family)
{
	return strcmp(family->unit, "s") == 0;
}

struct metric_point metric_point_of(const char *source, const char *target)
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

/* ---- what this process counted and timed, per target ----------------------------------------- */

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

static void walk_relays(const struct sample *sample, const struct metric_sink *sink)
{
	for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
		walk_targets(sample, sink, &counted[i].family, each_counted, &counted[i]);
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		walk_targets(sample, sink, &special[i].family, special[i].each, NULL);
}

/* ---- what the stores say --------------------------------------------------------------------
 *
 * The same whichever relay is asked. A store that did not answer has no values at all: an old number would be
 * taken for a new one.
 */

#define HOW_MANY(name_, field_, help_)                                          \
	{                                                                       \
		{ "outbox_" #name_, help_, METRIC_GAUGE, "{message}" }, #name_, \
			offsetof(struct outbox_target_stats, field_)            \
	}

static const struct how_many {
	struct metric_family family;
	const char *name;
	size_t offset; /* of an int64_t */
} how_many[] = {
	HOW_MANY(pending, pending, "Messages in the log that are not read yet"),
	HOW_MANY(sending, sending, "Deliveries claimed by some relay and not settled yet"),
	HOW_MANY(waiting, waiting, "Deliveries that wait for their next attempt"),
	HOW_MANY(parked, parked, "Deliveries behind an unfinished one of their key"),
	HOW_MANY(deferred, deferred, "Deliveries that are not due yet"),
	HOW_MANY(failed, failed, "Deliveries that failed and wait for somebody to act"),
	HOW_MANY(discarded, discarded, "Deliveries that an operator discarded"),
};

static const struct metric_family capped = { "outbox_count_capped",
					     "1 where the count stopped and the true one is higher",
					     METRIC_GAUGE, "1" };

static int64_t count_of(const struct outbox_target_stats *stats, const struct how_many *h)
{
	int64_t value;

	memcpy(&value, (const char *)stats + h->offset, sizeof(value));
	return value;
}

/* Calls `each` for every target of every store that answered. */
typedef void (*each_stats)(const struct metric_sink *sink, const struct metric_family *family,
			   const struct outbox_target_stats *target, outbox_time now,
			   struct metric_point *point);

static void walk_stats(const struct sample *sample, const struct metric_sink *sink,
		       const struct metric_family *family, each_stats each)
{
	for (size_t i = 0; i < sample->n_sources; i++) {
		const struct sample_source *s = &sample->sources[i];

		for (size_t t = 0; s->stats && t < s->stats->n_targets; t++) {
			const struct outbox_target_stats *target = &s->stats->targets[t];
			struct metric_point p = metric_point_of(s->source->name, target->name);

			each(sink, family, target, s->stats->store_now, &p);
		}
	}
}

static void each_count(const struct metric_sink *sink, const struct metric_family *family,
		       const struct outbox_target_stats *target, outbox_time now,
		       struct metric_point *p)
{
	(void)now;
	for (size_t i = 0; i < ARRAY_SIZE(how_many); i++) {
		if (family != &how_many[i].family)
			continue;
		p->value = count_of(target, &how_many[i]);
		metric_say(sink, family, p);
	}
}

static void each_capped(const struct metric_sink *sink, const struct metric_family *family,
			const struct outbox_target_stats *target, outbox_time now,
			struct metric_point *p)
{
	(void)now;
	metric_add_label(p, "gauge", NULL);
	for (size_t i = 0; i < ARRAY_SIZE(how_many); i++) {
		p->labels[2].value = how_many[i].family.name;
		p->value = count_of(target, &how_many[i]) > OUTBOX_COUNT_CAP;
		metric_say(sink, family, p);
	}
}

static void each_oldest(const struct metric_sink *sink, const struct metric_family *family,
			const struct outbox_target_stats *target, outbox_time now,
			struct metric_point *p)
{
	if (target->oldest && target->oldest < now)
		p->value = now - target->oldest;
	metric_say(sink, family, p);
}

static void each_paused(const struct metric_sink *sink, const struct metric_family *family,
			const struct outbox_target_stats *target, outbox_time now,
			struct metric_point *p)
{
	(void)now;
	p->value = target->paused;
	metric_say(sink, family, p);
}

static void each_outage(const struct metric_sink *sink, const struct metric_family *family,
			const struct outbox_target_stats *target, outbox_time now,
			struct metric_point *p)
{
	(void)now;
	p->value = target->outage != NULL;
	metric_say(sink, family, p);
}

static void each_unserved(const struct metric_sink *sink, const struct metric_family *family,
			  const struct outbox_target_stats *target, outbox_time now,
			  struct metric_point *p)
{
	(void)now;
	p->value = target->unserved != NULL;
	metric_say(sink, family, p);
}

static void each_ever(const struct metric_sink *sink, const struct metric_family *family,
		      const struct outbox_target_stats *target, outbox_time now,
		      struct metric_point *p)
{
	(void)now;
	p->value = target->delivered_ever;
	metric_say(sink, family, p);
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

static void each_lanes(const struct metric_sink *sink, const struct metric_family *family,
		       const struct outbox_target_stats *target, outbox_time now,
		       struct metric_point *p)
{
	metric_add_label(p, "owner", NULL);
	for (size_t i = 0; i < target->n_lanes; i++) {
		struct owner_name name = name_of(&target->lanes[i], now);

		if (!first_of_owner(target, i, now))
			continue;
		p->labels[2].value = name.text;
		p->value = 0;
		for (size_t k = i; k < target->n_lanes; k++)
			p->value += !strcmp(name_of(&target->lanes[k], now).text, name.text);
		metric_say(sink, family, p);
	}
}

static void each_owners(const struct metric_sink *sink, const struct metric_family *family,
			const struct outbox_target_stats *target, outbox_time now,
			struct metric_point *p)
{
	for (size_t i = 0; i < target->n_lanes; i++)
		p->value +=
			name_of(&target->lanes[i], now).text[0] && first_of_owner(target, i, now);
	metric_say(sink, family, p);
}

static void each_refused(const struct metric_sink *sink, const struct metric_family *family,
			 const struct outbox_target_stats *target, outbox_time now,
			 struct metric_point *p)
{
	(void)now;
	for (size_t i = 0; i < target->n_lanes; i++)
		p->value += target->lanes[i].refused != NULL;
	metric_say(sink, family, p);
}

static const struct {
	struct metric_family family;
	each_stats each;
} of_target[] = {
	{ { "outbox_oldest_age_seconds",
	    "How long the oldest unfinished delivery has been ready to send, failed ones aside",
	    METRIC_GAUGE, "s" },
	  each_oldest },
	{ { "outbox_paused", "1 while the target is paused", METRIC_GAUGE, "1" }, each_paused },
	{ { "outbox_outage", "1 while some relay says that it cannot reach the target",
	    METRIC_GAUGE, "1" },
	  each_outage },
	{ { "outbox_unserved", "1 while a relay that is configured for the target does not serve it",
	    METRIC_GAUGE, "1" },
	  each_unserved },
	{ { "outbox_store_delivered_total", "Messages delivered by all relays, ever",
	    METRIC_COUNTER, "{message}" },
	  each_ever },
	{ { "outbox_lanes", "Lanes by the relay that holds them; owner \"\" is nobody",
	    METRIC_GAUGE, "{lane}" },
	  each_lanes },
	{ { "outbox_lane_owners", "Relays that hold lanes of the target", METRIC_GAUGE, "{relay}" },
	  each_owners },
	{ { "outbox_lanes_refused", "Lanes that wait for outbox realign", METRIC_GAUGE, "{lane}" },
	  each_refused },
};

static void walk_stores(const struct sample *sample, const struct metric_sink *sink)
{
	for (size_t i = 0; i < ARRAY_SIZE(how_many); i++)
		walk_stats(sample, sink, &how_many[i].family, each_count);
	walk_stats(sample, sink, &capped, each_capped);
	for (size_t i = 0; i < ARRAY_SIZE(of_target); i++)
		walk_stats(sample, sink, &of_target[i].family, of_target[i].each);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void walk_sources(const struct sample *sample, const struct metric_sink *sink)
{
	static const struct metric_family up = { "outbox_source_up",
						 "1 when the store answered the last look at it",
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
						     "When the stores were looked at last",
						     METRIC_GAUGE, "s" },
					  build = { "outbox_build_info", "The program's version",
						    METRIC_GAUGE, "1" };
	struct metric_point version = { .value = 1 };

	walk_relays(sample, sink);
	walk_stores(sample, sink);
	walk_sources(sample, sink);
	metric_alone(sink, &health, (int64_t)sample->level);
	walk_findings(sample, sink);
	metric_alone(sink, &looked, sample->at);
	metric_add_label(&version, "version", OUTBOX_VERSION);
	metric_say(sink, &build, &version);
}
