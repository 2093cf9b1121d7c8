/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries and messages, straight from a store. */
#include "http/api.h"

#include "core/lifecycle.h"
#include "fields/json_value.h"
#include "http/views.h"
#include "operate/selection.h"
#include "store/store.h"

#define ARENA_MAX ((size_t)80 << 20) /* one message with its payload */
#define PAYLOAD_MAX \
	((size_t)256 << 10) /* in JSON; larger ones are there to be fetched by themselves */
#define LIMIT_MAX 1000

struct messages_query {
	const char *source, *target, *type, *key, *state, *why, *cursor;
	outbox_time before;
	size_t limit;
};

#define Q(name_, kind_, help_) FIELD(struct messages_query, name_, kind_, 0, help_)

static const struct field messages_fields[] = {
	API_SOURCE(struct messages_query),
	Q(target, FIELD_TEXT, NULL),
	Q(type, FIELD_TEXT, "* and ? match: order.*"),
	Q(key, FIELD_TEXT, "this key exactly"),
	{ .name = "state",
	  .type = FIELD_TEXT,
	  .offset = offsetof(struct messages_query, state),
	  .words = state_names },
	{ .name = "why",
	  .type = FIELD_TEXT,
	  .offset = offsetof(struct messages_query, why),
	  .words = why_names,
	  .help = "why the delivery is pending" },
	Q(before, FIELD_AGO, "created before: an age like 7d, or a time"),
	Q(cursor, FIELD_TEXT, "next of the previous page"),
	FIELD_LIMIT(struct messages_query, LIMIT_MAX, "deliveries on a page; 100 unless given"),
};

const struct record api_messages_query = RECORD("MessagesQuery", messages_fields);

API_HANDLER(api_messages)
{
	struct messages_query query = { 0 };
	struct outbox_filter filter;
	struct outbox_page page;
	struct outbox_store *store;
	int r = api_query(request, &api_messages_query, &query, err);

	if (r == OUTBOX_OK)
		r = selection_filter(&(struct selection){ .state = query.state,
							  .why = query.why,
							  .target = query.target,
							  .type = query.type,
							  .key = query.key,
							  .created_before = query.before },
				     NAMED_AS_FIELD, &filter, err);
	if (r == OUTBOX_OK)
		r = api_open(request, query.source, query.target, &store, err);
	if (r)
		return r;
	filter.cursor = query.cursor;
	filter.limit = query.limit;
	r = store_list(store, &filter, request->arena, &page, err);
	if (r)
		return r;
	return api_answer(response,
			  json_pack("{s:o, s:o}", "deliveries",
				    fields_list(&view_delivery, page.rows, page.count,
						sizeof(*page.rows)),
				    "next", json_text(page.cursor)),
			  err);
}

/* ---- one ----------------------------------------------------------------------------------- */

struct message_query {
	const char *source;
	bool payload;
};

static const struct field message_fields[] = {
	API_SOURCE(struct message_query),
	FIELD(struct message_query, payload, FIELD_BOOL, 0,
	      "show it, too; requires the operate role; up to 256 KiB"),
};

const struct record api_message_query = RECORD("MessageQuery", message_fields);

static const struct field source_fields[] = {
	API_SOURCE(struct message_query),
};

const struct record api_source_query = RECORD("SourceQuery", source_fields);

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

API_HANDLER(api_message)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ARENA_MAX);
	struct message_query query = { 0 };
	enum payload_view view = PAYLOAD_MASKED;
	struct message_detail detail;
	struct outbox_store *store;
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = api_query(request, &api_message_query, &query, err);
	if (r == OUTBOX_OK && query.payload && request->role < ROLE_OPERATE)
		return api_refuse(response, 403, "forbidden",
				  "payload: true requires a token with the operate role", err);
	if (r == OUTBOX_OK)
		r = api_open(request, query.source, NULL, &store, err);
	if (r == OUTBOX_OK)
		r = message_detail_read(store, request->captured[0], arena, &detail, err);
	if (r)
		return r;
	if (query.payload)
		view = detail.message.message.size > PAYLOAD_MAX ? PAYLOAD_TOO_LARGE : PAYLOAD_SHOWN;
	return api_answer(response, json_message_detail(&detail, view), err);
}

API_HANDLER(api_payload)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ARENA_MAX);
	struct message_query query = { 0 };
	struct outbox_claimed message;
	struct outbox_store *store;
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = api_query(request, &api_source_query, &query, err);
	if (r == OUTBOX_OK)
		r = api_open(request, query.source, NULL, &store, err);
	if (r == OUTBOX_OK)
		r = store_get(store, request->captured[0], arena, &message, err);
	if (r)
		return r;
	response->content_type = "application/octet-stream";
	response->disposition = "attachment; filename=\"payload\"";
	response->body.max = message.message.size + 1;
	if (message.message.size)
		buf_append(&response->body, message.message.data, message.message.size);
	return response->body.failed ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}

/* ---- audit --------------------------------------------------------------------------------- */

struct audit_query {
	const char *source, *id;
	size_t limit;
};

static const struct field audit_fields[] = {
	API_SOURCE(struct audit_query),
	FIELD(struct audit_query, id, FIELD_TEXT, 0, "of one message"),
	FIELD_LIMIT(struct audit_query, LIMIT_MAX, "rows; 100 unless given"),
};

const struct record api_audit_query = RECORD("AuditQuery", audit_fields);

API_HANDLER(api_audit)
{
	struct audit_query query = { 0 };
	struct outbox_audit *rows;
	size_t n;
	struct outbox_store *store;
	int r = api_query(request, &api_audit_query, &query, err);

	if (r == OUTBOX_OK)
		r = api_open(request, query.source, NULL, &store, err);
	if (r == OUTBOX_OK)
		r = store_audit(store, query.id, query.limit ? query.limit : 100, request->arena,
				&rows, &n, err);
	return r ? r : api_answer(response, json_audits(rows, n), err);
}

/* ---- keys that wait ------------------------------------------------------------------------ */

struct keys_query {
	const char *source, *target, *cursor;
	size_t limit;
};

static const struct field keys_fields[] = {
	API_SOURCE(struct keys_query),
	FIELD(struct keys_query, target, FIELD_TEXT, 0, NULL),
	FIELD(struct keys_query, cursor, FIELD_TEXT, 0, "next of the previous page"),
	FIELD_LIMIT(struct keys_query, LIMIT_MAX, "keys on a page; 100 unless given"),
};

const struct record api_keys_query = RECORD("KeysQuery", keys_fields);

API_HANDLER(api_keys)
{
	struct keys_query query = { 0 };
	struct outbox_keys_filter filter;
	struct outbox_keys_page page;
	struct outbox_store *store;
	int r = api_query(request, &api_keys_query, &query, err);

	if (r == OUTBOX_OK)
		r = api_open(request, query.source, query.target, &store, err);
	if (r)
		return r;
	filter = (struct outbox_keys_filter){ .struct_size = sizeof(filter),
					      .target = query.target,
					      .cursor = query.cursor,
					      .limit = query.limit };
	r = store_keys(store, &filter, request->arena, &page, err);
	return r ? r : api_answer(response, json_blocked_keys(&page), err);
}
