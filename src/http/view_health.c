/* SPDX-License-Identifier: Apache-2.0 */
/* What is not well, the same by `outbox alerts --json` and by the admin server. */
#include "http/view_health.h"
#include "base/cleanup.h"
#include "fields/json_value.h"

const char *const health_levels[] = { "healthy", "degraded", "unhealthy", NULL };

static const struct field finding_fields[] = {
	FIELD(struct health_finding, rule, FIELD_TEXT, 0, "also the alert's name"),
	FIELD_ONE_OF(struct health_finding, level, health_levels, 0, NULL),
	FIELD(struct health_finding, source, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD(struct health_finding, target, FIELD_TEXT, FIELD_NULL, "null: it is about the source"),
	FIELD(struct health_finding, since, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct health_finding, text, FIELD_CHARS, 0,
	      "what is the matter, with the number and the limit"),
	FIELD(struct health_finding, runbook, FIELD_CHARS, 0, "what to do: a link to its section"),
};

const struct record view_finding = RECORD("Finding", finding_fields);

json_t *view_make_findings(const void *row)
{
	const struct watch_sample *sample = row;

	return fields_list(&view_finding, sample->findings, sample->n_findings,
			   sizeof(*sample->findings));
}

static const struct field alerts_fields[] = { VIEW_SAMPLE_FIELDS };

const struct record view_alerts = RECORD("Alerts", alerts_fields);
