/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_METRICS_PROCESS_H
#define TELEMETRY_METRICS_PROCESS_H

/* The daemon's metrics: those of its relays and stores (operate/metrics.h), and its own. */

#include "operate/metrics.h"

void metrics_walk_all(const struct sample *sample, const struct metric_sink *sink);
void metrics_write(const struct sample *sample, struct buf *out);

/* What the process itself uses. -1 where the system does not say. */
struct process_use {
	int64_t resident; /* bytes */
	int64_t cpu;      /* microseconds */
	int64_t open_files, max_files;
};
void process_use_read(struct process_use *ret_use);

#endif
