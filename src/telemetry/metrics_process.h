/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_METRICS_PROCESS_H
#define TELEMETRY_METRICS_PROCESS_H

/* The daemon's metrics: those of its relays and stores (operate/metrics.h), and its own. */

#include "operate/metrics.h"

void metrics_walk_all(const struct sample *sample, const struct metric_sink *sink);
void metrics_write(const struct sample *sample, struct buf *out);

#endif
