/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of what the stores say, which is the same whichever relay is asked. A store that did not answer has no
 * values at all: an old number would be taken for a new one.
 */
#include "base/cleanup.h"
#include "operate/metrics_parts.h"

#include <stdio.h>
#include <string.h>

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
	sink->family(sink->context, family);
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
} looked[] = {
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
	{ { "outbox_lanes_refused", "Lanes that wait for outbox rebase", METRIC_GAUGE, "{lane}" },
	  each_refused },
};

void metrics_walk_stores(const struct sample *sample, const struct metric_sink *sink)
{
	for (size_t i = 0; i < ARRAY_SIZE(how_many); i++)
		walk_stats(sample, sink, &how_many[i].family, each_count);
	walk_stats(sample, sink, &capped, each_capped);
	for (size_t i = 0; i < ARRAY_SIZE(looked); i++)
		walk_stats(sample, sink, &looked[i].family, looked[i].each);
}
