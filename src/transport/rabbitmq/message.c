/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as AMQP sees it. AMQP's limits are checked here, before anything is sent: the library truncates what is
 * too long for a length byte, and one frame must hold all properties.
 */
#include "transport/rabbitmq/driver.h"

#include "base/text.h"

#include <string.h>

#define FRAME_OVERHEAD 8   /* type, channel, size, end mark */
#define HEADER_OVERHEAD 14 /* class, weight, body size, flags */

static int render(const struct template *template, const struct outbox_message *m, struct buf *out,
		  amqp_bytes_t *ret_text, struct outbox_error *err)
{
	int r;

	buf_clear(out);
	r = template_render(template, m, out, err);
	if (r != OUTBOX_OK)
		return r;
	if (out->size > RABBIT_SHORT_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "the %s has %zu bytes; AMQP allows 255",
				   template->option, out->size);
	*ret_text = rabbit_bytes(buf_str(out), out->size);
	return OUTBOX_OK;
}

static int check_short(const char *what, const char *text, struct outbox_error *err)
{
	size_t length = strlen(text);

	if (length <= RABBIT_SHORT_MAX)
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "the %s has %zu bytes; AMQP allows 255", what, length);
}

/* Properties that are a convenience, since the envelope has them too: left out when AMQP has no room. */
static bool fits(const char *text)
{
	return text && text[0] && strlen(text) <= RABBIT_SHORT_MAX;
}

static int set_headers(struct rabbit *rabbit, const struct outbox_encoded *encoded,
		       size_t *ret_size, amqp_table_t *ret_table, struct outbox_error *err)
{
	char shown[80];

	if (encoded->n_headers > RABBIT_HEADERS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL, "%zu headers; at most %d",
				   encoded->n_headers, RABBIT_HEADERS_MAX);
	*ret_size = 4;
	for (size_t i = 0; i < encoded->n_headers; i++) {
		const struct outbox_header *h = &encoded->headers[i];
		size_t name = strlen(h->name), value = strlen(h->value);

		if (name > RABBIT_SHORT_MAX)
			return outbox_fail(err, OUTBOX_EINVAL,
					   "the name of header \"%s\" has %zu bytes; AMQP allows 255",
					   text_shown(shown, sizeof(shown), h->name), name);
		rabbit->headers[i] = (amqp_table_entry_t){
			.key = rabbit_bytes(h->name, name),
			.value = { .kind = AMQP_FIELD_KIND_UTF8,
				   .value.bytes = rabbit_bytes(h->value, value) },
		};
		*ret_size += 1 + name + 1 + 4 + value;
	}
	*ret_table = (amqp_table_t){ (int)encoded->n_headers, rabbit->headers };
	return OUTBOX_OK;
}

static int set_properties(struct rabbit *rabbit, const struct outbox_message *m,
			  const struct outbox_encoded *encoded, amqp_basic_properties_t *p,
			  struct outbox_error *err)
{
	bool external = rabbit->broker.envelope == OUTBOX_ENVELOPE_EXTERNAL;
	size_t size = 0;
	int r = check_short("id", m->id, err);

	if (r == OUTBOX_OK)
		r = check_short("content type", encoded->content_type, err);
	if (r == OUTBOX_OK)
		r = set_headers(rabbit, encoded, &size, &p->headers, err);
	if (r != OUTBOX_OK)
		return r;
	p->_flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG |
		    AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_TIMESTAMP_FLAG;
	p->delivery_mode = AMQP_DELIVERY_PERSISTENT;
	p->message_id = amqp_cstring_bytes(m->id);
	p->content_type = amqp_cstring_bytes(encoded->content_type);
	p->timestamp = m->event_time > 0 ? (uint64_t)(m->event_time / OUTBOX_SECONDS) : 0;
	if (encoded->n_headers)
		p->_flags |= AMQP_BASIC_HEADERS_FLAG;
	if (fits(m->type)) {
		p->_flags |= AMQP_BASIC_TYPE_FLAG;
		p->type = amqp_cstring_bytes(m->type);
	}
	if (fits(m->correlation_id) && !external) {
		p->_flags |= AMQP_BASIC_CORRELATION_ID_FLAG;
		p->correlation_id = amqp_cstring_bytes(m->correlation_id);
	}
	size += HEADER_OVERHEAD + 9 + 4 + p->message_id.len + p->content_type.len + p->type.len +
		p->correlation_id.len;
	if (size > (size_t)amqp_get_frame_max(rabbit->connection) - FRAME_OVERHEAD)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "headers and properties have %zu bytes; this broker's frames hold %d",
				   size, amqp_get_frame_max(rabbit->connection) - FRAME_OVERHEAD);
	return OUTBOX_OK;
}

int rabbit_message(struct rabbit *rabbit, const struct outbox_item *item,
		   struct rabbit_message *ret_message, struct outbox_error *err)
{
	const struct outbox_message *m = item->message;
	struct rabbit_message message = { 0 };
	struct outbox_encoded encoded;
	int r = render(&rabbit->exchange, m, &rabbit->exchange_name, &message.exchange, err);

	if (r == OUTBOX_OK)
		r = render(&rabbit->routing_key, m, &rabbit->key, &message.key, err);
	if (r == OUTBOX_OK)
		r = outbox_encode(rabbit->broker.encoder, item, &encoded, err);
	if (r == OUTBOX_OK)
		r = set_properties(rabbit, m, &encoded, &message.properties, err);
	if (r != OUTBOX_OK)
		return r;
	message.body = rabbit_bytes(encoded.body, encoded.size);
	if (rabbit->size_max && encoded.size > rabbit->size_max)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "the body has %zu bytes; this broker takes %llu", encoded.size,
				   (unsigned long long)rabbit->size_max);
	message.mandatory = rabbit->mandatory_events || m->kind == OUTBOX_KIND_COMMAND;
	*ret_message = message;
	return OUTBOX_OK;
}
