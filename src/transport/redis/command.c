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

static bool has_fields(const struct redis_transport *t)
{
	return t->broker.envelope == OUTBOX_ENVELOPE_CE_BINARY ||
	       t->broker.envelope == OUTBOX_ENVELOPE_NATIVE;
}

static void put_fields(const struct redis_transport *t, const struct outbox_encoded *e,
		       const struct outbox_message *m, struct buf *out)
{
	bool native = t->broker.envelope == OUTBOX_ENVELOPE_NATIVE;
	size_t first = own_headers(e, m);

	for (size_t i = 0; i < e->n_headers; i++) {
		redis_wire_argument(out, i < first ? "" : "header.", e->headers[i].name,
				    strlen(e->headers[i].name));
		redis_wire_text(out, e->headers[i].value);
	}
	redis_wire_text(out, native ? "content-type" : "datacontenttype");
	redis_wire_text(out, e->content_type);
	redis_wire_text(out, native ? "payload" : "data");
	redis_wire_argument(out, "", e->body, e->size);
}

static int encode(struct redis_transport *t, const struct outbox_item *item,
		  struct outbox_encoded *ret_encoded, struct outbox_error *err)
{
	int r;

	if (!t->fixed) {
		buf_clear(&t->key);
		r = template_render(&t->stream, item->message, &t->key, err);
		if (r)
			return r;
	}
	return outbox_encode(t->broker.encoder, item, ret_encoded, err);
}

static size_t count_words(const struct redis_transport *t, const struct outbox_encoded *e)
{
	return 3 + (size_t)!t->create + (t->maxlen ? 3 : 0) +
	       (has_fields(t) ? 2 * (e->n_headers + 2) : 2);
}

static void put_words(const struct redis_transport *t, const struct outbox_encoded *e,
		      const struct outbox_message *m, struct buf *out)
{
	redis_wire_text(out, "XADD");
	redis_wire_argument(out, "", t->key.data, t->key.size);
	if (!t->create)
		redis_wire_text(out, "NOMKSTREAM");
	if (t->maxlen) {
		redis_wire_text(out, "MAXLEN");
		redis_wire_text(out, t->maxlen_exact ? "=" : "~");
		redis_wire_number(out, t->maxlen);
	}
	redis_wire_text(out, "*");
	if (has_fields(t)) {
		put_fields(t, e, m, out);
	} else {
		redis_wire_text(out, "event");
		redis_wire_argument(out, "", e->body, e->size);
	}
}

int redis_command_add(struct redis_transport *t, const struct outbox_item *item,
		      struct outbox_error *err)
{
	struct outbox_encoded encoded;
	int r = encode(t, item, &encoded, err);

	if (r)
		return r;
	redis_wire_begin(&t->wire.out, count_words(t, &encoded));
	put_words(t, &encoded, item->message, &t->wire.out);
	redis_wire_end(&t->wire.out);
	return OUTBOX_OK;
}

int redis_command_words(struct redis_transport *t, const struct outbox_item *item, struct buf *out,
			size_t *ret_words, struct outbox_error *err)
{
	struct outbox_encoded encoded;
	size_t n;
	int r = encode(t, item, &encoded, err);

	if (r)
		return r;
	n = count_words(t, &encoded);
	redis_wire_number(out, (int64_t)n);
	put_words(t, &encoded, item->message, out);
	*ret_words = 1 + n;
	return OUTBOX_OK;
}

void redis_command_wait(struct redis_transport *t, outbox_time limit)
{
	struct buf *out = &t->wire.out;

	redis_wire_begin(out, 3);
	redis_wire_text(out, "WAIT");
	redis_wire_number(out, t->replicas);
	redis_wire_number(out, limit > OUTBOX_MILLISECONDS ? limit / OUTBOX_MILLISECONDS : 1);
	redis_wire_end(out);
}
