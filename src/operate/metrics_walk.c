/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/metrics_parts.h"

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
		sink->family(sink->context, families[f]);
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

	sink->family(sink->context, &family);
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

	sink->family(sink->context, family);
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

	metrics_walk_relays(sample, sink);
	metrics_walk_stores(sample, sink);
	walk_sources(sample, sink);
	metric_alone(sink, &health, (int64_t)sample->level);
	walk_findings(sample, sink);
	metric_alone(sink, &looked, sample->at);
	sink->family(sink->context, &build);
	metric_add_label(&version, "version", OUTBOX_VERSION);
	metric_say(sink, &build, &version);
}
