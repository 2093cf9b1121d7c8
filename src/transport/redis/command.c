/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as an entry of a stream. CloudEvents has no binding for Redis; this is ours:
 *
 *	binary		id, source, type ...: a field for each attribute; datacontenttype; data: the payload
 *	native		outbox-id, outbox-type ...; content-type; payload
 *	structured	event: the JSON object, and nothing else (external likewise)
 *
 * The application's headers are fields "header.NAME", so that none of them can be taken for one of ours.
 */

#include "transport/redis/driver.h"

#include <string.h>

/* Where the application's headers begin; the encoder puts them behind its own. */
static size_t own_headers(const struct outbox_encoded *e, const struct outbox_message *m)
{
	size_t first = e->n_headers;

	for (size_t k = m->n_headers; k > 0 && first > 0; k--)
		if (e->headers[first - 1].name == m->headers[k - 1].name)
			first--;
	return first;
}

static void put_fields(struct redis_transport *t, const struct outbox_encoded *e,
		       const struct outbox_message *m)
{
	bool native = t->broker.envelope == OUTBOX_ENVELOPE_NATIVE;
	size_t first = own_headers(e, m);

	for (size_t i = 0; i < e->n_headers; i++) {
		redis_wire_argument(&t->wire, i < first ? "" : "header.", e->headers[i].name,
				    strlen(e->headers[i].name));
		redis_wire_text(&t->wire, e->headers[i].value);
	}
	redis_wire_text(&t->wire, native ? "content-type" : "datacontenttype");
	redis_wire_text(&t->wire, e->content_type);
	redis_wire_text(&t->wire, native ? "payload" : "data");
	redis_wire_argument(&t->wire, "", e->body, e->size);
}

int redis_command_add(struct redis_transport *t, const struct outbox_item *item,
		      struct outbox_error *err)
{
	bool fields = t->broker.envelope == OUTBOX_ENVELOPE_CE_BINARY ||
		      t->broker.envelope == OUTBOX_ENVELOPE_NATIVE;
	struct outbox_encoded encoded;
	size_t n = 3 + (size_t)!t->create + (t->maxlen ? 3 : 0);
	int r;

	if (!t->fixed) {
		buf_clear(&t->key);
		r = template_render(&t->stream, item->message, &t->key, err);
		if (r)
			return r;
	}
	r = outbox_encode(t->broker.encoder, item, &encoded, err);
	if (r)
		return r;
	redis_wire_begin(&t->wire, n + (fields ? 2 * (encoded.n_headers + 2) : 2));
	redis_wire_text(&t->wire, "XADD");
	redis_wire_argument(&t->wire, "", t->key.data, t->key.size);
	if (!t->create)
		redis_wire_text(&t->wire, "NOMKSTREAM");
	if (t->maxlen) {
		redis_wire_text(&t->wire, "MAXLEN");
		redis_wire_text(&t->wire, t->maxlen_exact ? "=" : "~");
		redis_wire_number(&t->wire, t->maxlen);
	}
	redis_wire_text(&t->wire, "*");
	if (fields) {
		put_fields(t, &encoded, item->message);
	} else {
		redis_wire_text(&t->wire, "event");
		redis_wire_argument(&t->wire, "", encoded.body, encoded.size);
	}
	redis_wire_end(&t->wire);
	return OUTBOX_OK;
}

void redis_command_wait(struct redis_transport *t, outbox_time limit)
{
	redis_wire_begin(&t->wire, 3);
	redis_wire_text(&t->wire, "WAIT");
	redis_wire_number(&t->wire, t->replicas);
	redis_wire_number(&t->wire, limit > OUTBOX_MILLISECONDS ? limit / OUTBOX_MILLISECONDS : 1);
	redis_wire_end(&t->wire);
}
