/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as AMQP 1.0 sees it. The body is one data section, whatever the payload is. Headers whose names begin with
 * x-opt- are the broker's instructions (Azure's partition key and scheduled time, Artemis' delivery time) and become
 * message annotations; all others are application properties.
 */

#include "transport/amqp1/driver.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>
#include <proton/codec.h>

#define AZURE_ID_MAX 128
#define PARTITION_KEY "x-opt-partition-key"
#define HASHED_MAX 80

static pn_bytes_t bytes_of(const char *text)
{
	return pn_bytes(strlen(text), text);
}

/* Azure takes ids of 128 bytes. A longer one is told apart from others by its digest just as well. */
static const char *fit_id(const struct amqp1_transport *t, const char *id, char out[HASHED_MAX])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0, at = 0;

	if (!t->azure || strlen(id) <= AZURE_ID_MAX)
		return id;
	EVP_Digest(id, strlen(id), digest, &size, EVP_sha256(), NULL);
	at = (unsigned int)snprintf(out, HASHED_MAX, "sha256:");
	for (unsigned int i = 0; i < size; i++)
		at += (unsigned int)snprintf(out + at, HASHED_MAX - at, "%02x", digest[i]);
	return out;
}

/* ---- annotations and properties ------------------------------------------------------------------------ */

static bool is_annotation(const char *name)
{
	return strncasecmp(name, "x-opt-", 6) == 0;
}

static bool is_time(const char *name)
{
	return strcasecmp(name, "x-opt-scheduled-enqueue-time") == 0 ||
	       strcasecmp(name, "x-opt-delivery-time") == 0;
}

/* A time is written as RFC 3339, and sent as the broker wants it: Azure a timestamp, Artemis a number. */
static int put_annotation(struct amqp1_transport *t, pn_data_t *map, const char *name,
			  const char *value, struct outbox_error *err)
{
	struct outbox_error why = OUTBOX_ERROR_INIT;
	char small[64];
	outbox_time time;

	snprintf(small, sizeof(small), "%s", name);
	for (char *c = small; *c; c++)
		*c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
	pn_data_put_symbol(map, bytes_of(small));
	if (!is_time(name)) {
		pn_data_put_string(map, bytes_of(value));
		return OUTBOX_OK;
	}
	if (time_parse(value, t->broker.clock->wall(t->broker.clock), &time, &why) != OUTBOX_OK)
		return outbox_fail(err, OUTBOX_EINVAL, "header %s: %s", small, why.message);
	if (strcmp(small, "x-opt-delivery-time") == 0)
		pn_data_put_long(map, time / OUTBOX_MILLISECONDS);
	else
		pn_data_put_timestamp(map, time / OUTBOX_MILLISECONDS);
	return OUTBOX_OK;
}

static int put_annotations(struct amqp1_transport *t, const struct outbox_message *m,
			   const struct outbox_encoded *encoded, struct outbox_error *err)
{
	pn_data_t *map = pn_message_annotations(t->message);
	const char *key = t->partition_by_key && m->key && m->key[0] ? m->key : NULL;
	char hashed[HASHED_MAX];
	bool any = key;
	int r = OUTBOX_OK;

	for (size_t i = 0; i < encoded->n_headers; i++) {
		any |= is_annotation(encoded->headers[i].name);
		if (strcasecmp(encoded->headers[i].name, PARTITION_KEY) == 0)
			key = NULL; /* the message has its own */
	}
	if (!any)
		return OUTBOX_OK;
	pn_data_put_map(map);
	pn_data_enter(map);
	if (key)
		r = put_annotation(t, map, PARTITION_KEY, fit_id(t, key, hashed), err);
	for (size_t i = 0; i < encoded->n_headers && r == OUTBOX_OK; i++)
		if (is_annotation(encoded->headers[i].name))
			r = put_annotation(t, map, encoded->headers[i].name,
					   encoded->headers[i].value, err);
	pn_data_exit(map);
	return r;
}

static void put_properties(struct amqp1_transport *t, const struct outbox_encoded *encoded)
{
	pn_data_t *map = pn_message_properties(t->message);

	pn_data_put_map(map);
	pn_data_enter(map);
	for (size_t i = 0; i < encoded->n_headers; i++) {
		if (is_annotation(encoded->headers[i].name))
			continue;
		pn_data_put_string(map, bytes_of(encoded->headers[i].name));
		pn_data_put_string(map, bytes_of(encoded->headers[i].value));
	}
	pn_data_exit(map);
}

/* ---- the message ---------------------------------------------------------------------------------------- */

static const char *session_of(const struct amqp1_transport *t, const struct outbox_message *m)
{
	if (t->session_from == SESSION_NONE)
		return NULL;
	return t->session_from == SESSION_KEY ? m->key : m->correlation_id;
}

static void put_ttl(struct amqp1_transport *t, const struct outbox_message *m)
{
	outbox_time left = m->expires_at - t->broker.clock->wall(t->broker.clock);
	outbox_time ms = left / OUTBOX_MILLISECONDS;

	if (m->expires_at)
		pn_message_set_ttl(t->message, ms < 1            ? 1
					       : ms > UINT32_MAX ? UINT32_MAX
								 : (pn_millis_t)ms);
}

static void put_fields(struct amqp1_transport *t, const struct outbox_message *m,
		       const struct outbox_encoded *encoded)
{
	const char *session = session_of(t, m);
	char hashed[HASHED_MAX];

	pn_message_set_durable(t->message, true);
	pn_message_set_inferred(t->message, true);
	pn_message_set_id(t->message,
			  (pn_msgid_t){ .type = PN_STRING,
					.u.as_bytes = bytes_of(fit_id(t, m->id, hashed)) });
	pn_message_set_subject(t->message, m->type);
	pn_message_set_content_type(t->message, encoded->content_type);
	pn_message_set_creation_time(t->message, m->event_time / OUTBOX_MILLISECONDS);
	if (m->correlation_id && m->correlation_id[0])
		pn_message_set_correlation_id(
			t->message,
			(pn_msgid_t){ .type = PN_STRING,
				      .u.as_bytes = bytes_of(fit_id(t, m->correlation_id, hashed)) });
	if (session && session[0])
		pn_message_set_group_id(t->message, fit_id(t, session, hashed));
	put_ttl(t, m);
}

int amqp1_message(struct amqp1_transport *t, const struct outbox_item *item, size_t *ret_size,
		  struct outbox_error *err)
{
	struct outbox_encoded encoded;
	ssize_t size;
	int r = outbox_encode(t->broker.encoder, item, &encoded, err);

	if (r != OUTBOX_OK)
		return r;
	pn_message_clear(t->message);
	put_fields(t, item->message, &encoded);
	r = put_annotations(t, item->message, &encoded, err);
	if (r != OUTBOX_OK)
		return r;
	put_properties(t, &encoded);
	pn_data_put_binary(pn_message_body(t->message), pn_bytes(encoded.size, encoded.body));
	size = pn_message_encode2(t->message, &t->encoded);
	if (size < 0)
		return outbox_fail_native(err, OUTBOX_EINVAL, (int)size,
					  "the message cannot be encoded for AMQP");
	*ret_size = (size_t)size;
	return OUTBOX_OK;
}

int amqp1_address(struct amqp1_transport *t, const struct outbox_message *message,
		  enum amqp1_capability *ret_capability, struct outbox_error *err)
{
	*ret_capability = t->capability;
	if (t->capability == CAPABILITY_KIND)
		*ret_capability = message && message->kind == OUTBOX_KIND_COMMAND ? CAPABILITY_QUEUE
										  : CAPABILITY_TOPIC;
	buf_clear(&t->text);
	return template_render(&t->address, message, &t->text, err);
}
