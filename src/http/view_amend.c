/* SPDX-License-Identifier: Apache-2.0 */
/* Corrections: what was done, and what a message was before. */
#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "fields/json_value.h"
#include "http/views.h"

#define PAYLOAD_MAX ((size_t)256 << 10) /* of one that is shown beside the message */

struct amended_row {
	const char *id;
	struct outbox_amended amended;
};

static const struct field amended_fields[] = {
	FIELD(struct amended_row, id, FIELD_TEXT, 0, NULL),
	FIELD_NAMED("requeued", struct amended_row, amended.requeued, FIELD_NUMBER, 0,
		    "deliveries that had failed or waited, and are sent at once"),
	FIELD_NAMED("parked", struct amended_row, amended.parked, FIELD_NUMBER, 0,
		    "deliveries that follow it in its key; counting stops at 100,000"),
};

const struct record view_amended = RECORD("Amended", amended_fields);

json_t *json_amended(const char *id, const struct outbox_amended *amended)
{
	return fields_json(&view_amended, &(struct amended_row){ id, *amended });
}

struct amendment_row {
	struct outbox_amendment was;
	enum payload_view payload;
};

static bool is_shown(const struct amendment_row *row)
{
	return row->payload != PAYLOAD_MASKED && row->was.data && row->was.size <= PAYLOAD_MAX;
}

static bool is_text(const struct amendment_row *row)
{
	return utf8_valid(row->was.data, row->was.size);
}

static json_t *make_payload(const void *row)
{
	const struct amendment_row *a = row;

	return is_shown(a) && is_text(a) ? json_stringn(a->was.data, a->was.size) : NULL;
}

static json_t *make_payload_base64(const void *row)
{
	const struct amendment_row *a = row;
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(2 * a->was.size + 16);

	if (!is_shown(a) || is_text(a))
		return NULL;
	base64_append(&text, a->was.data, a->was.size);
	return text.failed ? NULL : json_stringn(buf_str(&text), text.size);
}

/* As stored: JSON, or what claims to be. */
static json_t *make_headers(const void *row)
{
	const struct amendment_row *a = row;

	return a->payload != PAYLOAD_MASKED && a->was.headers ? json_text(a->was.headers) : NULL;
}

static json_t *make_left_out(const void *row)
{
	const struct amendment_row *a = row;

	if (is_shown(a))
		return NULL;
	return json_string(a->payload == PAYLOAD_MASKED ? "masked" : "too large");
}

static const char *const left_out[] = { "masked", "too large", NULL };

static const struct field amendment_fields[] = {
	FIELD_NAMED("at", struct amendment_row, was.at, FIELD_TIME, FIELD_NULL,
		    "when it was amended"),
	FIELD_NAMED("actor", struct amendment_row, was.actor, FIELD_TEXT, FIELD_NULL, "who"),
	FIELD_NAMED("reason", struct amendment_row, was.reason, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD_NAMED("content_type", struct amendment_row, was.content_type, FIELD_TEXT, FIELD_NULL,
		    "that it had; null: none was given"),
	FIELD_NAMED("size", struct amendment_row, was.size, FIELD_COUNT, 0,
		    "of the payload that it had, in bytes"),
	{ .name = "headers",
	  .type = FIELD_TEXT,
	  .flags = FIELD_ABSENT,
	  .make = make_headers,
	  .help = "that it had, as JSON" },
	{ .name = "payload", .type = FIELD_TEXT, .flags = FIELD_ABSENT, .make = make_payload },
	{ .name = "payload_base64",
	  .type = FIELD_TEXT,
	  .flags = FIELD_ABSENT,
	  .make = make_payload_base64,
	  .help = "of a payload that is not text" },
	{ .name = "payload_left_out",
	  .type = FIELD_TEXT,
	  .flags = FIELD_ABSENT,
	  .make = make_left_out,
	  .words = left_out,
	  .help = "why the payload is not here" },
};

const struct record view_amendment = RECORD("Amendment", amendment_fields);

json_t *json_amendments(const struct message_detail *detail)
{
	json_t *list = json_array();

	for (size_t i = 0; i < detail->n_amended; i++)
		json_array_append_new(list, fields_json(&view_amendment,
							&(struct amendment_row){ detail->amended[i],
										 detail->payload }));
	return list;
}
