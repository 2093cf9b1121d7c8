/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/json_value.h"
#include "telemetry/metrics_process.h"
#include "telemetry/otlp_json.h"

#define CUMULATIVE 2

struct export
{
	const struct sample *sample;
	const struct otlp_sender *sender;
	json_t *metrics; /* all families so far */
	json_t *points;  /* of the family being walked; borrowed */
	bool failed;
};

static json_t *make_attributes(const struct metric_point *p)
{
	json_t *attributes = json_array();

	for (size_t i = 0; attributes && i < p->n_labels; i++) {
		json_t *a = otlp_text_attribute(p->labels[i].name, p->labels[i].value);

		if (!a || json_array_append_new(attributes, a)) {
			json_decref(attributes);
			return NULL;
		}
	}
	return attributes;
}

/* The array where the family's points go is handed out, too. */
static json_t *make_family(const struct metric_family *f, json_t **ret_points)
{
	json_t *points = json_array();
	json_t *family = NULL;

	if (f->type == METRIC_GAUGE)
		family = json_pack("{s:s, s:s, s:s, s:{s:O}}", "name", f->name, "description",
				   f->help, "unit", f->unit, "gauge", "dataPoints", points);
	else if (f->type == METRIC_COUNTER)
		family = json_pack("{s:s, s:s, s:s, s:{s:O, s:i, s:b}}", "name", f->name,
				   "description", f->help, "unit", f->unit, "sum", "dataPoints",
				   points, "aggregationTemporality", CUMULATIVE, "isMonotonic", 1);
	else
		family = json_pack("{s:s, s:s, s:s, s:{s:O, s:i}}", "name", f->name, "description",
				   f->help, "unit", f->unit, "histogram", "dataPoints", points,
				   "aggregationTemporality", CUMULATIVE);
	*ret_points = points;
	json_decref(points); /* the family holds it */
	return family;
}

static void add_family(void *context, const struct metric_family *f)
{
	struct export *e = context;
	json_t *family = e->failed ? NULL : make_family(f, &e->points);

	if (!family || json_array_append_new(e->metrics, family))
		e->failed = true;
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

/* What has no points now would only be noise. */
static void drop_empty(json_t *metrics)
{
	for (size_t i = json_array_size(metrics); i-- > 0;) {
		const json_t *family = json_array_get(metrics, i);
		const json_t *data = json_object_get(family, "gauge");

		if (!data)
			data = json_object_get(family, "sum");
		if (!data)
			data = json_object_get(family, "histogram");
		if (!json_array_size(json_object_get(data, "dataPoints")))
			json_array_remove(metrics, i);
	}
}

json_t *otlp_metrics_json(const struct sample *sample, const struct otlp_sender *sender)
{
	struct export e = { .sample = sample, .sender = sender, .metrics = json_array() };
	struct metric_sink sink = { .context = &e, .family = add_family, .point = add_point };

	if (!e.metrics)
		return NULL;
	metrics_walk_all(sample, &sink);
	if (e.failed) {
		json_decref(e.metrics);
		return NULL;
	}
	drop_empty(e.metrics);
	return json_pack("{s:[{s:o, s:[{s:o, s:o}]}]}", "resourceMetrics", "resource",
			 otlp_resource(sender), "scopeMetrics", "scope", otlp_scope(), "metrics",
			 e.metrics);
}
