/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries, keys that wait, audit rows, messages and what they were before people amended them. */
#include "http/views.h"

#include "base/base64.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "core/lifecycle.h"
#include "core/message.h"
#include "fields/json_value.h"

/* ---- deliveries ---------------------------------------------------------------------------- */

static const struct field delivery_fields[] = {
	FIELD(struct outbox_delivery, id, FIELD_TEXT, 0, "of the message"),
	FIELD(struct outbox_delivery, seq, FIELD_SEQ, 0, "its place in the log"),
	FIELD(struct outbox_delivery, target, FIELD_TEXT, 0, NULL),
	FIELD(struct outbox_delivery, type, FIELD_TEXT, 0, NULL),
	FIELD(struct outbox_delivery, key, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD(struct outbox_delivery, lane, FIELD_INT, 0, NULL),
	FIELD_ONE_OF(struct outbox_delivery, state, state_names, 0, NULL),
	FIELD_ONE_OF(struct outbox_delivery, why, why_names, FIELD_NULL, "why it is pending"),
	FIELD(struct outbox_delivery, attempts, FIELD_INT, 0, "failed tries"),
	FIELD(struct outbox_delivery, owner, FIELD_TEXT, FIELD_NULL, "who sends or sent it"),
	FIELD(struct outbox_delivery, error, FIELD_TEXT, FIELD_NULL | FIELD_UNTRUSTED,
	      "of the last try"),
	FIELD(struct outbox_delivery, reason, FIELD_TEXT, FIELD_NULL, "an operator's"),
	FIELD(struct outbox_delivery, event_time, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct outbox_delivery, created_at, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct outbox_delivery, last_status_at, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct outbox_delivery, next_attempt_at, FIELD_TIME, FIELD_NULL, NULL),
};

const struct record view_delivery = RECORD("Delivery", delivery_fields);

static const struct field deliveries_fields[] = {
	FIELD_MADE_OF("deliveries", FIELD_LIST, view_delivery, NULL, NULL),
	FIELD_MADE("next", FIELD_TEXT, FIELD_NULL, NULL,
		   "the cursor of the next page; null: this is the last one"),
};

/* The command line prints it page by page, so that it is never made as a whole there. */
const struct record view_deliveries = RECORD("Deliveries", deliveries_fields);

/* ---- keys that wait ------------------------------------------------------------------------ */

static json_t *make_key(const void *row)
{
	return json_text(((const struct outbox_blocked_key *)row)->front.key);
}

static json_t *make_front(const void *row)
{
	return fields_json(&view_delivery, &((const struct outbox_blocked_key *)row)->front);
}

static const struct field blocked_key_fields[] = {
	FIELD_MADE("key", FIELD_TEXT, FIELD_NULL, make_key, NULL),
	FIELD_NAMED("target", struct outbox_blocked_key, front.target, FIELD_TEXT, 0, NULL),
	FIELD(struct outbox_blocked_key, since, FIELD_TIME, FIELD_NULL,
	      "the first failed try of what is in the way, else its last change"),
	FIELD(struct outbox_blocked_key, parked, FIELD_NUMBER, 0,
	      "deliveries behind it; counting stops at 100,000"),
	FIELD_MADE_OF("front", FIELD_OBJECT, view_delivery, make_front, NULL),
};

const struct record view_blocked_key = RECORD("BlockedKey", blocked_key_fields);

static const struct field blocked_keys_fields[] = {
	FIELD_MADE_OF("keys", FIELD_LIST, view_blocked_key, NULL, NULL),
	FIELD_MADE("next", FIELD_TEXT, FIELD_NULL, NULL,
		   "the cursor of the next page; null: this is the last one"),
};

const struct record view_blocked_keys = RECORD("BlockedKeys", blocked_keys_fields);

json_t *json_blocked_keys(const struct outbox_keys_page *page)
{
	return json_pack("{s:o, s:o}", "keys",
			 fields_list(&view_blocked_key, page->rows, page->count, sizeof(*page->rows)),
			 "next", json_text(page->cursor));
}

/* ---- audit --------------------------------------------------------------------------------- */

static const struct field audit_fields[] = {
	FIELD(struct outbox_audit, number, FIELD_SEQ, 0, NULL),
	FIELD(struct outbox_audit, at, FIELD_TIME, FIELD_NULL, NULL),
	FIELD(struct outbox_audit, actor, FIELD_TEXT, FIELD_NULL, "who"),
	FIELD(struct outbox_audit, action, FIELD_TEXT, 0, NULL),
	FIELD(struct outbox_audit, target, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD(struct outbox_audit, id, FIELD_TEXT, FIELD_NULL, "of the message"),
	FIELD(struct outbox_audit, reason, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD(struct outbox_audit, detail, FIELD_TEXT, FIELD_NULL, "what was before, as JSON"),
};

const struct record view_audit = RECORD("Audit", audit_fields);

static const struct field audits_fields[] = {
	FIELD_MADE_OF("audit", FIELD_LIST, view_audit, NULL, "newest first"),
};

const struct record view_audits = RECORD("Audits", audits_fields);

json_t *json_audits(const struct outbox_audit *rows, size_t count)
{
	return json_pack("{s:o}", "audit", fields_list(&view_audit, rows, count, sizeof(*rows)));
}

/* ---- messages ------------------------------------------------------------------------------ */

static const char *const left_out[] = {
	[PAYLOAD_MASKED] = "masked", [PAYLOAD_TOO_LARGE] = "too large", NULL
};

/* What a row with a payload begins with. */
struct shown_payload {
	const char *data;
	size_t size;
	int view; /* enum payload_view */
};

static json_t *make_payload(const void *row)
{
	const struct shown_payload *shown = row;
	const char *data = shown->data ? shown->data : "";

	if (shown->view != PAYLOAD_SHOWN || !utf8_valid(data, shown->size))
		return NULL;
	return json_stringn(data, shown->size);
}

static json_t *make_payload_base64(const void *row)
{
	const struct shown_payload *shown = row;
	_cleanup_(buf_deinit) struct buf text = BUF_INIT(2 * shown->size + 16);
	const char *data = shown->data ? shown->data : "";

	if (shown->view != PAYLOAD_SHOWN || utf8_valid(data, shown->size))
		return NULL;
	base64_append(&text, data, shown->size);
	return text.failed ? NULL : json_stringn(buf_str(&text), text.size);
}

static json_t *make_left_out(const void *row)
{
	const char *word = left_out[((const struct shown_payload *)row)->view];

	return word ? json_string(word) : NULL;
}

#define PAYLOAD_FIELDS                                                                          \
	FIELD_MADE("payload", FIELD_TEXT, FIELD_ABSENT, make_payload, NULL),                    \
		FIELD_MADE("payload_base64", FIELD_TEXT, FIELD_ABSENT, make_payload_base64,     \
			   "of a payload that is not text"),                                    \
	{                                                                                       \
		.name = "payload_left_out", .type = FIELD_TEXT, .flags = FIELD_ABSENT,          \
		.make = make_left_out, .words = left_out, .help = "why the payload is not here" \
	}

struct message_row {
	struct shown_payload payload;
	struct message_detail detail;
};

#define DETAIL(row) (&((const struct message_row *)(row))->detail)
#define MESSAGE(row) (&DETAIL(row)->message.message)

static json_t *make_kind(const void *row)
{
	return json_string(kind_name(MESSAGE(row)->kind));
}

/* Which headers there are says how a message is handled; what is in them may be anything, as in a payload. */
static json_t *make_headers(const void *row)
{
	const struct outbox_message *message = MESSAGE(row);
	bool masked = ((const struct shown_payload *)row)->view == PAYLOAD_MASKED;
	json_t *object = json_object();

	for (size_t i = 0; i < message->n_headers; i++)
		json_object_set_new(object, message->headers[i].name,
				    json_text(masked ? HEADER_MASK : message->headers[i].value));
	return object;
}

static json_t *make_published(const void *row)
{
	return json_boolean(MESSAGE(row)->published != 0);
}

#define M(name_, kind_, flags_, help_) \
	FIELD_NAMED(#name_, struct message_row, detail.message.message.name_, kind_, flags_, help_)

static const struct field message_fields[] = {
	M(id, FIELD_TEXT, 0, NULL),
	FIELD_NAMED("seq", struct message_row, detail.message.seq, FIELD_SEQ, 0,
		    "its place in the log"),
	M(type, FIELD_TEXT, 0, NULL),
	{ .name = "kind", .type = FIELD_TEXT, .make = make_kind, .words = kind_names },
	M(key, FIELD_TEXT, FIELD_NULL, NULL),
	M(source, FIELD_TEXT, FIELD_NULL, NULL),
	M(subject, FIELD_TEXT, FIELD_NULL, NULL),
	M(topic, FIELD_TEXT, FIELD_NULL, NULL),
	M(content_type, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD_MADE("headers", FIELD_MAP, 0, make_headers,
		   "values are *** while the payload is masked"),
	M(correlation_id, FIELD_TEXT, FIELD_NULL, NULL),
	M(causation_id, FIELD_TEXT, FIELD_NULL, NULL),
	M(traceparent, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD_MADE("published", FIELD_BOOL, 0, make_published, "goes to external targets, too"),
	M(priority, FIELD_INT, 0, NULL),
	M(event_time, FIELD_TIME, FIELD_NULL, NULL),
	FIELD_NAMED("created_at", struct message_row, detail.message.created_at, FIELD_TIME,
		    FIELD_NULL, NULL),
	M(due_at, FIELD_TIME, FIELD_NULL, NULL),
	M(expires_at, FIELD_TIME, FIELD_NULL, NULL),
	FIELD_NAMED("malformed", struct message_row, detail.message.malformed, FIELD_TEXT,
		    FIELD_NULL, "why its row is not a valid message"),
	M(size, FIELD_COUNT, 0, "of the payload, in bytes"),
	PAYLOAD_FIELDS,
};

const struct record view_message = RECORD("Message", message_fields);

/* ---- failed attempts ----------------------------------------------------------------------- */

/* What a broker answers may quote the payload, and is masked with it. */
struct attempt_row {
	struct outbox_attempt tried;
	bool masked;
};

static json_t *make_answer(const void *row)
{
	const struct attempt_row *attempt = row;

	return attempt->masked || !attempt->tried.answer ? NULL : json_text(attempt->tried.answer);
}

static const struct field attempt_fields[] = {
	FIELD_NAMED("target", struct attempt_row, tried.target, FIELD_TEXT, 0, NULL),
	FIELD_NAMED("at", struct attempt_row, tried.at, FIELD_TIME, FIELD_NULL, NULL),
	FIELD_NAMED("attempt", struct attempt_row, tried.attempt, FIELD_INT, 0,
		    "which one it was, from 1 on; counting starts again with a requeue"),
	{ .name = "verdict",
	  .type = FIELD_WORD,
	  .offset = offsetof(struct attempt_row, tried.verdict),
	  .words = verdict_names },
	FIELD_NAMED("native", struct attempt_row, tried.native, FIELD_INT, 0,
		    "the broker's code; 0: it gave none"),
	FIELD_NAMED("reason", struct attempt_row, tried.reason, FIELD_TEXT,
		    FIELD_NULL | FIELD_UNTRUSTED, "null: redacted"),
	FIELD_MADE("answer", FIELD_TEXT, FIELD_ABSENT | FIELD_UNTRUSTED, make_answer,
		   "what the broker said in full, up to 4 KiB; masked with the payload"),
};

const struct record view_attempt = RECORD("Attempt", attempt_fields);

static json_t *make_attempts(const void *row)
{
	const struct message_row *message = row;
	json_t *list = json_array();

	for (size_t i = 0; i < message->detail.n_attempts; i++)
		json_array_append_new(list,
				      fields_json(&view_attempt,
						  &(struct attempt_row){ message->detail.attempts[i],
									 message->payload.view ==
										 PAYLOAD_MASKED }));
	return list;
}

/* ---- corrections: what was done, and what a message was before ------------------------------ */

#define AMENDED_MAX ((size_t)256 << 10) /* of a payload that is shown beside the message */

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
	struct shown_payload payload;
	struct outbox_amendment was;
};

/* As stored: JSON, or what claims to be. */
static json_t *make_was_headers(const void *row)
{
	const struct amendment_row *amendment = row;

	if (amendment->payload.view == PAYLOAD_MASKED || !amendment->was.headers)
		return NULL;
	return json_text(amendment->was.headers);
}

static const struct field amendment_fields[] = {
	FIELD_NAMED("at", struct amendment_row, was.at, FIELD_TIME, FIELD_NULL,
		    "when it was amended"),
	FIELD_NAMED("actor", struct amendment_row, was.actor, FIELD_TEXT, FIELD_NULL, "who"),
	FIELD_NAMED("reason", struct amendment_row, was.reason, FIELD_TEXT, FIELD_NULL, NULL),
	FIELD_NAMED("content_type", struct amendment_row, was.content_type, FIELD_TEXT, FIELD_NULL,
		    "that it had; null: none was given"),
	FIELD_NAMED("size", struct amendment_row, was.size, FIELD_COUNT, 0,
		    "of the payload that it had, in bytes"),
	FIELD_MADE("headers", FIELD_TEXT, FIELD_ABSENT, make_was_headers, "that it had, as JSON"),
	PAYLOAD_FIELDS,
};

const struct record view_amendment = RECORD("Amendment", amendment_fields);

static json_t *make_amended(const void *row)
{
	const struct message_row *message = row;
	json_t *list = json_array();

	for (size_t i = 0; i < message->detail.n_amended; i++) {
		const struct outbox_amendment *was = &message->detail.amended[i];
		struct amendment_row amendment = { { was->data, was->size, message->payload.view },
						   *was };

		if (amendment.payload.view != PAYLOAD_MASKED)
			amendment.payload.view = was->data && was->size <= AMENDED_MAX
							 ? PAYLOAD_SHOWN
							 : PAYLOAD_TOO_LARGE;
		json_array_append_new(list, fields_json(&view_amendment, &amendment));
	}
	return list;
}

/* ---- a message with all of it -------------------------------------------------------------- */

static json_t *make_message(const void *row)
{
	return fields_json(&view_message, row);
}

static json_t *make_deliveries(const void *row)
{
	const struct outbox_page *page = &DETAIL(row)->page;

	return fields_list(&view_delivery, page->rows, page->count, sizeof(*page->rows));
}

/* Oldest first: a story. */
static json_t *make_history(const void *row)
{
	const struct message_detail *detail = DETAIL(row);
	json_t *list = json_array();

	for (size_t i = detail->n_history; i-- > 0;)
		json_array_append_new(list, fields_json(&view_audit, &detail->history[i]));
	return list;
}

static const struct field detail_fields[] = {
	FIELD_MADE_OF("message", FIELD_OBJECT, view_message, make_message, NULL),
	FIELD_MADE_OF("deliveries", FIELD_LIST, view_delivery, make_deliveries,
		      "one for each target that takes it"),
	FIELD_MADE_OF("failed_attempts", FIELD_LIST, view_attempt, make_attempts,
		      "by target, oldest first; of each delivery the first one and the last 19"),
	FIELD_MADE_OF("history", FIELD_LIST, view_audit, make_history,
		      "what people did to it, oldest first"),
	FIELD_MADE_OF("amended", FIELD_LIST, view_amendment, make_amended,
		      "what it was before people amended it, oldest first"),
};

const struct record view_message_detail = RECORD("MessageDetail", detail_fields);

json_t *json_message_detail(const struct message_detail *detail, enum payload_view view)
{
	const struct outbox_message *message = &detail->message.message;
	struct message_row row = { { message->data, message->size, (int)view }, *detail };

	return fields_json(&view_message_detail, &row);
}
