/* SPDX-License-Identifier: Apache-2.0 */
/* Corrections. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "http/api.h"
#include "http/views.h"
#include "store/store.h"

#include <string.h>

#define ARENA_MAX ((size_t)80 << 20) /* the message as it is */

struct amend_body {
	const char *source, *reason, *payload, *payload_base64, *content_type;
	struct field_map headers;
};

static const struct field amend_fields[] = {
	API_SOURCE(struct amend_body),
	FIELD(struct amend_body, reason, FIELD_TEXT, FIELD_REQUIRED, "why, for the audit"),
	FIELD(struct amend_body, payload, FIELD_TEXT, 0,
	      "the new one; what is not given stays as it is"),
	FIELD(struct amend_body, payload_base64, FIELD_TEXT, 0, "the same for bytes"),
	FIELD(struct amend_body, content_type, FIELD_TEXT, 0, NULL),
	FIELD(struct amend_body, headers, FIELD_MAP, 0, "they replace all that it has"),
};

const struct record api_amend_body = RECORD("Amend", amend_fields);

DEFINE_CLEANUP(struct outbox_arena *, outbox_arena_free)

static int read_payload(const struct amend_body *body, struct outbox_arena *arena,
			struct store_correction *correction, struct outbox_error *err)
{
	size_t size = body->payload_base64 ? strlen(body->payload_base64) : 0;
	void *bytes;

	if (body->payload && body->payload_base64)
		return outbox_fail(err, OUTBOX_EINVAL, "payload, payload_base64: give one of them");
	correction->data = body->payload;
	correction->size = body->payload ? strlen(body->payload) : 0;
	if (!body->payload_base64)
		return OUTBOX_OK;
	bytes = outbox_arena_alloc(arena, size + 1);
	if (!bytes)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	if (!base64_decode(body->payload_base64, size, bytes, &correction->size))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "payload_base64: is not base64 (RFC 4648, with padding)");
	correction->data = bytes;
	return OUTBOX_OK;
}

API_HANDLER(api_amend)
{
	_cleanup_(outbox_arena_freep) struct outbox_arena *arena = outbox_arena_new(ARENA_MAX);
	struct store_correction correction = { .id = request->captured[0], .actor = request->actor };
	struct outbox_amended amended = { 0 };
	struct amend_body body = { 0 };
	struct outbox_store *store;
	int r;

	if (!arena)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	r = api_body(request, &api_amend_body, &body, err);
	if (r == OUTBOX_OK)
		r = read_payload(&body, arena, &correction, err);
	if (r == OUTBOX_OK)
		r = api_open(request, body.source, NULL, &store, err);
	if (r)
		return r;
	correction.reason = body.reason;
	correction.content_type = body.content_type;
	correction.headers = body.headers.items;
	correction.n_headers = body.headers.count;
	correction.set_headers = body.headers.given;
	r = store_correct(store, &correction, arena, &amended, err);
	return r ? r : api_answer(response, json_amended(correction.id, &amended), err);
}
