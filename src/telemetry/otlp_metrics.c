/* SPDX-License-Identifier: Apache-2.0 */
#include "telemetry/metrics_process.h"
#include "telemetry/otlp_json.h"

#define CUMULATIVE 2

struct export
{
	const struct sample *sample;
	const struct otlp_sender *sender;
	json_t *metrics;                    /* all families so far */
	const struct metric_family *family; /* whose points come now */
	json_t *points;                     /* of it; borrowed */
	bool failed;
};

static json_t *make_attributes(const struct metric_point *p)
{
	json_t *attributes = json_array();

	for (size_t i = 0; i < p->n_labels; i++)
		otlp_append(&attributes, otlp_text_attribute(p->labels[i].name, p->labels[i].value));
	return attributes;
}

/* The family's own object, around its points. */
static json_t *make_data(const struct metric_family *f, json_t *points)
{
	if (f->type == METRIC_GAUGE)
		return json_pack("{s:o}", "dataPoints", points);
	if (f->type == METRIC_COUNTER)
		return json_pack("{s:o, s:i, s:b}", "dataPoints", points, "aggregationTemporality",
				 CUMULATIVE, "isMonotonic", 1);
	return json_pack("{s:o, s:i}", "dataPoints", points, "aggregationTemporality", CUMULATIVE);
}

static void begin_family(struct export *e, const struct metric_family *f)
{
	static const char *const kinds[] = {
		[METRIC_COUNTER] = "sum", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"
	};
	json_t *family;

	e->family = f;
	e->points = json_array();
	family = json_pack("{s:s, s:s, s:s, s:o}", "name", f->name, "description", f->help, "unit",
			   f->unit, kinds[f->type], make_data(f, e->points));
	e->failed |= json_array_append_new(e->metrics, family) != 0;
}

static int add_buckets(json_t *point, const struct metric_point *p, bool seconds)
{
	json_t *counts = json_array(), *bounds = json_array();
	int r = 0;

	for (size_t i = 0; i <= p->bounds->count; i++) {
		r |= json_array_append_new(counts, otlp_number((int64_t)p->histogram->buckets[i]));
		if (i < p->bounds->count)
			r |= json_array_append_new(bounds, json_real((double)p->bounds->bounds[i] /
								     (seconds ? 1e6 : 1)));
	}
	r |= json_object_set_new(point, "bucketCounts", counts);
	r |= json_object_set_new(point, "explicitBounds", bounds);
	r |= json_object_set_new(point, "count", otlp_number((int64_t)p->histogram->count));
	r |= json_object_set_new(point, "sum",
				 json_real((double)p->histogram->sum / (seconds ? 1e6 : 1)));
	return r;
}

static void add_point(void *context, const struct metric_family *f, const struct metric_point *p)
{
	struct export *e = context;
	bool seconds = metric_in_seconds(f);
	json_t *point;
	int r;

	if (!e->failed && f != e->family)
		begin_family(e, f);
	if (e->failed)
		return;
	point = json_pack("{s:o, s:o}", "attributes", make_attributes(p), "timeUnixNano",
			  otlp_nanoseconds(e->sample->at));
	if (f->type == METRIC_HISTOGRAM)
		r = add_buckets(point, p, seconds);
	else if (seconds)
		r = json_object_set_new(point, "asDouble", json_real((double)p->value / 1e6));
	else
		r = json_object_set_new(point, "asInt", otlp_number(p->value));
	if (f->type != METRIC_GAUGE)
		r |= json_object_set_new(point, "startTimeUnixNano",
					 otlp_nanoseconds(e->sender->started));
	if (json_array_append_new(e->points, point) || r)
		e->failed = true;
}

json_t *otlp_metrics_json(const struct sample *sample, const struct otlp_sender *sender)
{
	struct export e = { .sample = sample, .sender = sender, .metrics = json_array() };
	struct metric_sink sink = { .context = &e, .point = add_point };

	if (!e.metrics)
		return NULL;
	metrics_walk_all(sample, &sink);
	if (e.failed) {
		json_decref(e.metrics);
		return NULL;
	}
	return json_pack("{s:[{s:o, s:[{s:o, s:o}]}]}", "resourceMetrics", "resource",
			 otlp_resource(sender), "scopeMetrics", "scope", otlp_scope(), "metrics",
			 e.metrics);
}
