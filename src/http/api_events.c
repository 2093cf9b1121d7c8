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

struct events {
	struct http_stream base;
	struct sampler *sampler;
	struct daemon *daemon;
	const struct sample *last; /* held */
};

/* Takes data. One line: JSON has no line breaks of its own. */
static void append_event(struct buf *out, const char *event, outbox_time id, json_t *data)
{
	char *text = data ? json_dumps(data, JSON_STYLE) : NULL;

	if (text)
		buf_printf(out, "event: %s\nid: %" PRId64 "\ndata: %s\n\n", event, id, text);
	free(text);
	json_decref(data);
}

static void append_changes(struct buf *out, const struct sample *had, const struct sample *has,
			   const char *state)
{
	for (size_t i = 0; has && i < has->n_findings; i++) {
		json_t *data;

		if (sample_has(had, &has->findings[i]))
			continue;
		data = fields_json(&view_finding, &has->findings[i]);
		json_object_set_new(data, "state", json_string(state));
		append_event(out, "alert", (had && had->at > has->at ? had : has)->at, data);
	}
}

/* Lanes by the hundred would make an event larger than any view needs. */
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
		append_event(out, "sample", sample->at, sample_json(sample));
		append_changes(out, events->last, sample, "firing");
		append_changes(out, sample, events->last, "resolved");
		sampler_release(events->last);
		events->last = sample;
	} else {
		sampler_release(sample);
	}
	return true;
}

static void events_free(struct http_stream *stream)
{
	struct events *events = container_of(stream, struct events, base);

	sampler_release(events->last);
	free(events);
}

API_HANDLER(api_events)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	events->base = (struct http_stream){ .next = next, .free = events_free };
	events->sampler = request->sampler;
	events->daemon = request->daemon;
	response->stream = &events->base;
	response->content_type = "text/event-stream";
	return OUTBOX_OK;
}
