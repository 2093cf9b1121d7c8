/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_METRICS_PARTS_H
#define OPERATE_METRICS_PARTS_H

/* The parts of metrics_walk(). */

#include "operate/metrics.h"

/* What the relays of this process counted and timed. */
void metrics_walk_relays(const struct sample *sample, const struct metric_sink *sink);
/* What the stores say. */
void metrics_walk_stores(const struct sample *sample, const struct metric_sink *sink);

/* A point with the label source, and target unless it is NULL. */
struct metric_point metric_point_of(const char *source, const char *target);
void metric_add_label(struct metric_point *point, const char *name, const char *value);
void metric_say(const struct metric_sink *sink, const struct metric_family *family,
		const struct metric_point *point);

#endif
