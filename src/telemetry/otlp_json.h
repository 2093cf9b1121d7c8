/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TELEMETRY_OTLP_JSON_H
#define TELEMETRY_OTLP_JSON_H

/*
 * The bodies of OTLP over HTTP in JSON: ids in hexadecimal, 64-bit numbers as strings. All functions return a new
 * reference, or NULL when out of memory.
 */

#include "telemetry/otlp_ring.h"
#include "telemetry/sampler.h"

#include <jansson.h>

/* Who sends: the value of service.instance.id. */
struct otlp_sender {
	char instance[200];
	outbox_time started; /* wall: when counting began */
};

/* ExportTraceServiceRequest: a span for each batch. The spans' ids are drawn from random. */
json_t *otlp_spans_json(const struct otlp_batch *batches, size_t count,
			const struct otlp_sender *sender, struct outbox_random *random);

/* ExportMetricsServiceRequest: what /metrics says, under the same names. */
json_t *otlp_metrics_json(const struct sample *sample, const struct otlp_sender *sender);

/* ---- for the two of them ------------------------------------------------------------------- */

json_t *otlp_resource(const struct otlp_sender *sender);
json_t *otlp_scope(void);
json_t *otlp_text_attribute(const char *key, const char *value);
json_t *otlp_number(int64_t value); /* "42" */
json_t *otlp_nanoseconds(outbox_time time);
/* Takes the item. When there is no memory for it, the list is freed and NULL from then on. */
void otlp_append(json_t **list, json_t *item);

#endif
