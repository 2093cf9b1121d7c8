/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ADMIN_METRICS_H
#define ADMIN_METRICS_H

/*
 * Metrics from a sample: one list of families, walked by whoever writes them down (the text that Prometheus
 * reads, OTLP). Labels are names that a configuration bounds: sources, targets, owners; never an id or a key.
 * docs/metrics.md explains each; a test holds it against what is really written.
 */

#include "admin/watch.h"
#include "base/buf.h"

enum metric_type { METRIC_COUNTER = 1, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_family {
	const char *name, *help;
	enum metric_type type;
	const char *unit; /* in UCUM, as OTLP wants it: "s" (values in microseconds), "By", "{message}" */
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

/* Told of each family and then of its points; of families without points, too. */
struct metric_sink {
	void *context;
	void (*family)(void *context, const struct metric_family *family);
	void (*point)(void *context, const struct metric_family *family,
		      const struct metric_point *point);
};

void metrics_walk(const struct watch_sample *sample, const struct metric_sink *sink);

/* The text that Prometheus reads (version 0.0.4). buf->failed says whether it fits. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"
void metrics_write(const struct watch_sample *sample, struct buf *out);

/* Are its values in microseconds, to be written in seconds? */
bool metric_in_seconds(const struct metric_family *family);

/* A label's value between its quotes: backslash, quote and newline escaped, other control characters and broken
 * UTF-8 replaced. */
void metric_escape(const char *text, struct buf *out);

/* What the process itself uses. -1 where the system does not say. */
struct process_use {
	int64_t resident; /* bytes */
	int64_t cpu;      /* microseconds */
	int64_t open_files, max_files;
};
void process_look(struct process_use *ret_use);

#endif
