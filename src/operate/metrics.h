/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_METRICS_H
#define OPERATE_METRICS_H

/*
 * Metrics from a sample: one list of families, walked by whoever writes them down (the text that Prometheus
 * reads, OTLP). Labels are names that a configuration bounds: sources, targets, owners; never an id or a key.
 * docs/metrics.md explains each; a test holds it against what is really written.
 */

#include "base/buf.h"
#include "operate/sample.h"

enum metric_type { METRIC_COUNTER = 1, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
	const char *name, *help;
	enum metric_type type;
	const char *unit; /* in UCUM, as OTLP requires: "s" (values in microseconds), "By", "{message}" */
};

struct metric_label {
	const char *name, *value;
};

#define METRIC_LABELS 4

struct metric_point {
	struct metric_label labels[METRIC_LABELS];
	size_t n_labels;
	int64_t value;
	const struct histogram_view *histogram; /* of METRIC_HISTOGRAM: instead of the value */
	const struct histogram_bounds *bounds;
};

/* Gets every point, those of a family one after the other. */
struct metric_sink {
	void *context;
	void (*point)(void *context, const struct metric_family *family,
		      const struct metric_point *point);
};

/* What relays and stores say; of the process around them nothing. */
void metrics_walk(const struct sample *sample, const struct metric_sink *sink);

/* The text that Prometheus reads (version 0.0.4). out->failed says whether it fits. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
struct metric_text {
	struct buf *out;
	const struct metric_family *said; /* the family whose HELP and TYPE were written */
};
struct metric_sink metric_text_sink(struct metric_text *text);

/* A family with one point and no label; below 0: without. */
void metric_alone(const struct metric_sink *sink, const struct metric_family *family, int64_t value);

/* Are its values in microseconds, to be written in seconds? */
bool metric_in_seconds(const struct metric_family *family);

/* A label's value between its quotes: backslash, quote and newline escaped, other control characters and broken
 * UTF-8 replaced. */
void metric_escape(const char *text, struct buf *out);

void metric_add_label(struct metric_point *point, const char *name, const char *value);
void metric_say(const struct metric_sink *sink, const struct metric_family *family,
		const struct metric_point *point);

#endif
