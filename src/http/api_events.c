/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live views by server-sent events: a `sample` for each look of the sampler (what /api/outbox says, without the lanes), an
 * `alert` when a finding appears or goes, `end` when the process drains. A stream keeps nothing but the last sample: who
 * reads slowly misses some, and nothing piles up here. Whoever comes back with a Last-Event-ID gets the newest one, which
 * says all that the missed ones did.
 */
#include "fields/json_value.h"
#include "http/api.h"
#include "http/views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct events {
	struct http_stream base;
	struct sampler *sampler;
	struct daemon *daemon;
	const struct sample *last; /* held */
};

static bool same_finding(const struct health_finding *a, const struct health_finding *b)
{
	return strcmp(a->rule, b->rule) == 0 &&
	       strcmp(a->source ? a->source : "", b->source ? b->source : "") == 0 &&
	       strcmp(a->target ? a->target : "", b->target ? b->target : "") == 0;
}

static bool has_finding(const struct sample *sample, const struct health_finding *finding)
{
	for (size_t i = 0; sample && i < sample->n_findings; i++)
		if (same_finding(&sample->findings[i], finding))
			return true;
	return false;
}

/* Takes data. One line: JSON has no line breaks of its own. */
static void say(struct buf *out, const char *event, outbox_time id, json_t *data)
{
	char *text = data ? json_dumps(data, JSON_STYLE) : NULL;

	if (text)
		buf_printf(out, "event: %s\nid: %" PRId64 "\ndata: %s\n\n", event, id, text);
	free(text);
	json_decref(data);
}

static void say_changes(struct buf *out, const struct sample *had, const struct sample *has,
			const char *state)
{
	for (size_t i = 0; has && i < has->n_findings; i++) {
		json_t *data;

		if (has_finding(had, &has->findings[i]))
			continue;
		data = fields_json(&view_finding, &has->findings[i]);
		json_object_set_new(data, "state", json_string(state));
		say(out, "alert", (had && had->at > has->at ? had : has)->at, data);
	}
}

/* Lanes by the hundred would make an event that no view wants. */
static json_t *sample_json(const struct sample *sample)
{
	json_t *object = fields_json(&view_outbox, sample);
	json_t *source, *target;
	size_t i, j;

	json_array_foreach(json_object_get(object, "sources"), i, source)
		json_array_foreach(json_object_get(source, "targets"), j, target)
			json_object_del(target, "lanes");
	return object;
}

static bool next(struct http_stream *stream, struct buf *out)
{
	struct events *events = container_of(stream, struct events, base);
	const struct sample *sample;

	if (daemon_draining(events->daemon)) {
		buf_text(out, "event: end\ndata: {\"reason\":\"draining\"}\n\n");
		return false;
	}
	sample = sampler_hold(events->sampler);
	if (sample && (!events->last || sample->at > events->last->at)) {
		say(out, "sample", sample->at, sample_json(sample));
		say_changes(out, events->last, sample, "firing");
		say_changes(out, sample, events->last, "resolved");
		if (events->last)
			sampler_release(events->sampler, events->last);
		events->last = sample;
	} else if (sample) {
		sampler_release(events->sampler, sample);
	}
	return true;
}

static void events_free(struct http_stream *stream)
{
	struct events *events = container_of(stream, struct events, base);

	if (events->last)
		sampler_release(events->sampler, events->last);
	free(events);
}

API_HANDLER(api_events)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	events->base = (struct http_stream){ .next = next, .free = events_free };
	events->sampler = http_sampler(request->server);
	events->daemon = http_daemon(request->server);
	response->stream = &events->base;
	response->content_type = "text/event-stream";
	return OUTBOX_OK;
}
