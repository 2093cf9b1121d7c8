/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_VIEW_HEALTH_H
#define HTTP_VIEW_HEALTH_H

/* Findings, and the fields that every view of a sample has: when, how well, what is the matter. */

#include "fields/fields.h"
#include "telemetry/sampler.h"

extern const struct record view_finding, view_alerts;

extern const char *const health_levels[];
json_t *view_make_findings(const void *row);

#define VIEW_SAMPLE_FIELDS                                                          \
	FIELD(struct watch_sample, at, FIELD_TIME, 0, "when it was looked at"),     \
		FIELD_ONE_OF(struct watch_sample, level, health_levels, 0, NULL),   \
	{                                                                           \
		.name = "findings", .type = FIELD_LIST, .make = view_make_findings, \
		.of = &view_finding, .help = "what is not well, the worst first"    \
	}

#endif
