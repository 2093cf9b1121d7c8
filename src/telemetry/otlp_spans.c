/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/json_value.h"
#include "telemetry/otlp_json.h"

#include <stdio.h>

#define KIND_CLIENT 3
#define STATUS_ERROR 2

json_t *otlp_number(int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return json_string(text);
}

json_t *otlp_nanoseconds(outbox_time time)
{
	return otlp_number(time > INT64_MAX / 1000 ? INT64_MAX : time * 1000);
}

void otlp_append(json_t **list, json_t *item)
{
	if (json_array_append_new(*list, item) == 0)
		return;
	json_decref(*list);
	*list = NULL;
}

json_t *otlp_text_attribute(const char *key, const char *value)
{
	return json_pack("{s:s, s:{s:o}}", "key", key, "value", "stringValue", json_text(value));
}

static json_t *number_attribute(const char *key, int64_t value)
{
	return json_pack("{s:s, s:{s:o}}", "key", key, "value", "intValue", otlp_number(value));
}

json_t *otlp_resource(const struct otlp_sender *sender)
{
	return json_pack("{s:[o, o, o]}", "attributes",
			 otlp_text_attribute("service.name", "outbox"),
			 otlp_text_attribute("service.version", OUTBOX_VERSION),
			 otlp_text_attribute("service.instance.id", sender->instance));
}

json_t *otlp_scope(void)
{
	return json_pack("{s:s, s:s}", "name", "outbox", "version", OUTBOX_VERSION);
}

static json_t *make_hex(const unsigned char *bytes, size_t size)
{
	char text[33];

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return json_string(text);
}

/* An id must not be all zeros. */
static json_t *make_random_id(struct outbox_random *random, size_t size)
{
	uint64_t numbers[2] = { 0 };

	while (!numbers[0] || !numbers[1])
		for (size_t i = 0; i < 2; i++)
			numbers[i] = random->next(random);
	return make_hex((const unsigned char *)numbers, size);
}

static json_t *make_links(const struct otlp_batch *b)
{
	json_t *links = json_array();

	for (size_t i = 0; i < b->n_links; i++) {
		const struct traceparent *l = &b->links[i];

		otlp_append(&links,
			    json_pack("{s:o, s:o, s:i}", "traceId", make_hex(l->trace, 16),
				      "spanId", make_hex(l->span, 8), "flags", (int)l->flags));
	}
	return links;
}

static json_t *make_attributes(const struct otlp_batch *b)
{
	return json_pack("[o, o, o, o, o, o, o, o, o, o]",
			 otlp_text_attribute("messaging.operation.type", "send"),
			 otlp_text_attribute("messaging.destination.name", b->target),
			 number_attribute("messaging.batch.message_count",
					  (int64_t)b->report.messages),
			 otlp_text_attribute("outbox.source", b->source),
			 number_attribute("outbox.lane", b->report.lane),
			 number_attribute("outbox.delivered", (int64_t)b->report.delivered),
			 number_attribute("outbox.failed", (int64_t)b->report.failed),
			 number_attribute("outbox.retried", (int64_t)b->report.retried),
			 number_attribute("outbox.publish_us", b->report.publish),
			 number_attribute("outbox.settle_us", b->report.settle));
}

static json_t *make_status(const struct otlp_batch *b)
{
	if (!b->outage[0])
		return json_object(); /* unset: nothing went wrong */
	return json_pack("{s:i, s:o}", "code", STATUS_ERROR, "message", json_text(b->outage));
}

static json_t *make_span(const struct otlp_batch *b, struct outbox_random *random)
{
	char name[sizeof(b->target) + 8];

	snprintf(name, sizeof(name), "send %s", b->target);
	return json_pack("{s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:i, s:o}", "traceId",
			 make_random_id(random, 16), "spanId", make_random_id(random, 8), "name",
			 json_text(name), "kind", KIND_CLIENT, "startTimeUnixNano",
			 otlp_nanoseconds(b->report.began), "endTimeUnixNano",
			 otlp_nanoseconds(b->report.began + b->report.publish + b->report.settle),
			 "attributes", make_attributes(b), "links", make_links(b),
			 "droppedLinksCount", (int)b->dropped_links, "status", make_status(b));
}

json_t *otlp_spans_json(const struct otlp_batch *batches, size_t count,
			const struct otlp_sender *sender, struct outbox_random *random)
{
	json_t *spans = json_array();

	for (size_t i = 0; i < count; i++)
		otlp_append(&spans, make_span(&batches[i], random));
	return json_pack("{s:[{s:o, s:[{s:o, s:o}]}]}", "resourceSpans", "resource",
			 otlp_resource(sender), "scopeSpans", "scope", otlp_scope(), "spans", spans);
}
