/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message as a POST. CloudEvents' HTTP binding: structured mode has all in the body; binary mode has the payload there,
 * and the attributes as headers "ce-NAME". A batch is an array of structured events.
 *
 * Values of headers are percent-encoded where a header cannot carry them, so that nothing in a message can end a header
 * or begin another. A header of the message whose name belongs to HTTP or to us goes out as "header-NAME".
 */

#include "transport/http/driver.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BATCH_TYPE "application/cloudevents-batch+json"

/* ---- headers ---------------------------------------------------------------------------------------- */

/* CloudEvents' binding also escapes blanks and quotes; elsewhere only blanks at either end would be lost. */
static void put_value(struct buf *out, const char *value, bool attribute)
{
	size_t size = strlen(value);

	buf_clear(out);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)value[i];
		bool edge = i == 0 || i + 1 == size;

		if (c <= 0x20 ? c < 0x20 || attribute || edge
			      : c >= 0x7f || c == '%' || (attribute && c == '"'))
			buf_printf(out, "%%%02X", (unsigned)c);
		else
			buf_char(out, (char)c);
	}
}

static bool begins_with(const char *text, const char *prefix)
{
	return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

/* Names that mean something to servers, proxies or receivers, so that a message must not say them. */
static bool is_taken(const struct http_transport *t, const char *name)
{
	static const char *const names[] = {
		"accept",         "authorization",
		"connection",     "content-encoding",
		"content-length", "cookie",
		"date",           "expect",
		"forwarded",      "host",
		"keep-alive",     "idempotency-key",
		"origin",         "range",
		"referer",        "te",
		"trailer",        "upgrade",
		"user-agent",     "via",
		"warning",        "transfer-encoding",
	};
	static const char *const prefixes[] = { "proxy-",       "sec-",    "webhook-", "x-webhook-",
						"x-forwarded-", "accept-", "http2-",   "header-" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcasecmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (begins_with(name, prefixes[i]))
			return true;
	for (size_t i = 0; i < t->n_headers; i++)
		if (strcasecmp(name, t->headers[i].name) == 0)
			return true;
	return false;
}

static void put_header(struct http_transport *t, struct web_request *request, const char *name,
		       const char *value)
{
	_cleanup_(buf_deinit) struct buf longer = BUF_INIT(2 * OUTBOX_HEADER_BYTES_MAX);

	put_value(&t->scratch, value, begins_with(name, "ce-"));
	request->failed |= t->scratch.failed;
	if (!is_taken(t, name)) {
		web_header(request, name, buf_str(&t->scratch));
		return;
	}
	buf_printf(&longer, "header-%s", name);
	request->failed |= longer.failed;
	web_header(request, buf_str(&longer), buf_str(&t->scratch));
}

/* ---- bodies ----------------------------------------------------------------------------------------- */

static void add_to_batch(struct web_request *request, const struct outbox_encoded *encoded)
{
	buf_char(&request->buffer, request->buffer.size ? ',' : '[');
	buf_append(&request->buffer, encoded->body, encoded->size);
}

static void add_token(struct http_transport *t, struct web_request *request)
{
	buf_clear(&t->scratch);
	buf_printf(&t->scratch, "Bearer %s", t->token);
	request->failed |= t->scratch.failed;
	web_header(request, "Authorization", buf_str(&t->scratch));
	if (t->scratch.data)
		explicit_bzero(t->scratch.data, t->scratch.capacity);
}

/* What every request has. */
static void add_own(struct http_transport *t, struct web_request *request)
{
	for (size_t i = 0; i < t->n_headers; i++)
		web_header(request, t->headers[i].name, t->headers[i].value);
	if (t->token)
		add_token(t, request);
}

/* Made once: a list of headers costs as much as the rest of a small request. */
static int use_fixed(struct http_transport *t, const char *content_type,
		     struct web_request *request, struct outbox_error *err)
{
	struct web_request all = { 0 };

	if (!t->fixed) {
		web_header(&all, "Content-Type", content_type);
		add_own(t, &all);
		web_headers_end(&all);
		t->fixed = all.headers;
	}
	if (all.failed) {
		curl_slist_free_all(t->fixed);
		t->fixed = NULL;
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	}
	request->fixed = t->fixed;
	return OUTBOX_OK;
}

int http_request_add(struct http_transport *t, const struct outbox_item *item,
		     struct web_request *request, struct outbox_error *err)
{
	bool structured = t->broker.envelope == OUTBOX_ENVELOPE_CE_STRUCTURED ||
			  t->broker.envelope == OUTBOX_ENVELOPE_EXTERNAL;
	struct outbox_encoded encoded;
	int r = outbox_encode(t->broker.encoder, item, &encoded, err);

	if (r)
		return r;
	if (t->batch > 1) {
		add_to_batch(request, &encoded);
		return OUTBOX_OK;
	}
	/* The encoder's memory is the next message's; a payload stays where it is. */
	request->body = encoded.body;
	request->size = encoded.size;
	if (structured)
		buf_append(&request->buffer, encoded.body, encoded.size);
	if (structured && !t->signer.n_keys && !t->idempotency_key)
		return use_fixed(t, encoded.content_type, request, err);
	put_value(&t->scratch, encoded.content_type, false);
	web_header(request, "Content-Type", buf_str(&t->scratch));
	for (size_t i = 0; i < encoded.n_headers; i++)
		put_header(t, request, encoded.headers[i].name, encoded.headers[i].value);
	return OUTBOX_OK;
}

/* ---- what depends on the whole ---------------------------------------------------------------------- */

/*
 * A batch is another one as soon as one of its messages is: a receiver that remembers what it has seen must not take a
 * new batch for an old one because both begin alike.
 */
static void put_batch_id(struct buf *out, const char *ids)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)ids, strlen(ids), digest);
	buf_text(out, "batch_");
	for (size_t i = 0; i < 16; i++)
		buf_printf(out, "%02x", digest[i]);
}

static int add_signature(struct http_transport *t, const struct outbox_message *first,
			 const char *id, struct web_request *request, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf signature = BUF_INIT(4096);
	struct sign_input input = {
		.id = id,
		.timestamp = t->broker.clock->wall(t->broker.clock) / OUTBOX_SECONDS,
		.body = request->body,
		.size = request->size,
	};
	char timestamp[24];
	int r = signer_sign(&t->signer, &input, &signature, err);

	if (r)
		return r;
	snprintf(timestamp, sizeof(timestamp), "%" PRId64, input.timestamp);
	if (t->signer.preset == SIGN_STANDARD) {
		web_header(request, "webhook-id", id);
		web_header(request, "webhook-timestamp", timestamp);
		web_header(request, "webhook-signature", buf_str(&signature));
		return OUTBOX_OK;
	}
	web_header(request, "X-Webhook-Delivery", id);
	web_header(request, "X-Webhook-Timestamp", timestamp);
	web_header(request, "X-Webhook-Signature", buf_str(&signature));
	web_header(request, "X-Webhook-Signature-Algorithm", "hmac-sha256");
	if (t->batch == 1) {
		put_value(&t->scratch, first->type, false);
		web_header(request, "X-Webhook-Event", buf_str(&t->scratch));
	}
	return OUTBOX_OK;
}

int http_request_end(struct http_transport *t, const struct outbox_message *first, const char *ids,
		     struct web_request *request, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf id = BUF_INIT(4096);

	request->url = t->url;
	if (t->batch > 1) {
		buf_char(&request->buffer, ']');
		web_header(request, "Content-Type", BATCH_TYPE);
		put_batch_id(&id, ids);
	} else {
		sign_id(&id, ids);
	}
	if (request->buffer.size) {
		request->body = request->buffer.data;
		request->size = request->buffer.size;
	}
	if (!request->fixed)
		add_own(t, request);
	if (t->idempotency_key)
		web_header(request, "Idempotency-Key", buf_str(&id));
	if (id.failed || request->buffer.failed)
		return outbox_fail(err, OUTBOX_ENOMEM, "out of memory");
	return t->signer.n_keys ? add_signature(t, first, buf_str(&id), request, err) : OUTBOX_OK;
}
