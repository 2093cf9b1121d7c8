/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as a signed request. Structured mode has all in the body; two attributes tell what it is, since subscribers
 * filter by attributes. In the other modes the attributes are the message's headers, of which there may be ten: what does
 * not fit is refused, and never left out.
 */

#include "transport/aws/driver.h"
#include "transport/aws/sigv4.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#define ID_TEXT_MAX 200
#define TYPE_BYTES (sizeof("String") - 1)
#define REMEDY "; use the structured envelope"

/* ---- what they take --------------------------------------------------------------------------------- */

/* A character that the services refuse; UINT32_MAX: none. */
static uint32_t find_bad_character(const char *text, size_t size)
{
	struct text_piece piece;

	for (size_t i = 0; i < size; i += piece.size) {
		unsigned char c = (unsigned char)text[i];

		piece.size = 1;
		if (c >= 0x20 && c < 0x80)
			continue;
		if (c < 0x20 && !(c && strchr("\t\n\r", c)))
			return c;
		/* U+FFFE and U+FFFF */
		if (c == 0xef && size - i >= 3 && (unsigned char)text[i + 1] == 0xbf &&
		    (unsigned char)text[i + 2] >= 0xbe)
			return 0xfffe;
	}
	return UINT32_MAX;
}

static int check_text(const char *what, const char *name, const char *text, size_t size,
		      struct outbox_error *err)
{
	uint32_t bad = find_bad_character(text, size);
	char shown[80];

	text_shown(shown, sizeof(shown), name);
	if (!size)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s%s is empty, which SQS and SNS do not take" REMEDY, what,
				   shown);
	if (!utf8_valid(text, size))
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s%s is not UTF-8, which SQS and SNS do not take" REMEDY, what,
				   shown);
	if (bad != UINT32_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s%s has the character U+%04X, which SQS and SNS do not take",
				   what, shown, (unsigned)bad);
	return OUTBOX_OK;
}

/* Letters, digits, _ - and single dots inside; not AWS' own. */
static bool is_attribute_name(const char *name)
{
	size_t size = strlen(name);

	if (!size || size > 256 || name[0] == '.' || name[size - 1] == '.' || strstr(name, "..") ||
	    strncasecmp(name, "aws.", 4) == 0 || strncasecmp(name, "amazon.", 7) == 0)
		return false;
	for (size_t i = 0; i < size; i++)
		if (!text_is_token(name + i, 1) || strchr("!#$%&'*+^`|~", name[i]))
			return false;
	return true;
}

static int check_attributes(const struct aws_entry *entry, size_t *ret_size, struct outbox_error *err)
{
	int r = OUTBOX_OK;

	if (entry->n_attributes > AWS_ATTRIBUTES_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%zu attributes; SQS takes %d at the most" REMEDY,
				   entry->n_attributes, AWS_ATTRIBUTES_MAX);
	for (size_t i = 0; !r && i < entry->n_attributes; i++) {
		const struct outbox_header *header = &entry->attributes[i];
		char shown[80];

		*ret_size += strlen(header->name) + strlen(header->value) + TYPE_BYTES;
		if (!is_attribute_name(header->name))
			return outbox_fail(err, OUTBOX_EINVAL,
					   "\"%s\" cannot be the name of an attribute in SQS" REMEDY,
					   text_shown(shown, sizeof(shown), header->name));
		r = check_text("the header ", header->name, header->value, strlen(header->value),
			       err);
	}
	return r;
}

/* ---- entries ---------------------------------------------------------------------------------------- */

/* As it is, if it may be a group's or a message's id there; else its hash. */
static const char *make_id(const char *text, char out[ID_TEXT_MAX])
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	size_t size = strlen(text), plain = 0;

	while (text[plain] > 0x20 && text[plain] < 0x7f)
		plain++;
	if (size && size <= AWS_ID_MAX && plain == size) {
		memcpy(out, text, size + 1);
		return out;
	}
	SHA256((const unsigned char *)text, size, digest);
	memcpy(out, "sha256:", 8);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(out + 7 + 2 * i, 3, "%02x", digest[i]);
	return out;
}

/* Of structured mode, where the encoder has none. */
static size_t put_own(const struct outbox_message *message, const struct outbox_encoded *encoded,
		      struct outbox_header *out)
{
	size_t n = 0;

	out[n++] = (struct outbox_header){ "content-type", encoded->content_type };
	if (encoded->n_headers)
		return n;
	/* a type with another character is in the body */
	if (message->type[0] && utf8_valid(message->type, strlen(message->type)) &&
	    find_bad_character(message->type, strlen(message->type)) == UINT32_MAX)
		out[n++] = (struct outbox_header){ "ce-type", message->type };
	return n;
}

int aws_request_add(struct aws_transport *t, const struct outbox_item *item, size_t id,
		    struct web_request *request, size_t *ret_size, struct outbox_error *err)
{
	const struct outbox_message *message = item->message;
	struct outbox_header attributes[AWS_ATTRIBUTES_MAX + 1];
	struct aws_entry entry = { .id = id, .attributes = attributes };
	char group[ID_TEXT_MAX], duplicate[ID_TEXT_MAX];
	struct outbox_encoded encoded;
	size_t size = 0;
	int r = outbox_encode(t->broker.encoder, item, &encoded, err);

	if (r)
		return r;
	entry.body = encoded.body;
	entry.size = encoded.size;
	entry.n_attributes = put_own(message, &encoded, attributes) + encoded.n_headers;
	for (size_t i = 0; i < encoded.n_headers && i < AWS_ATTRIBUTES_MAX; i++)
		attributes[i + 1] = encoded.headers[i];
	r = check_attributes(&entry, &size, err);
	if (!r)
		r = check_text("the payload", "", entry.body, entry.size, err);
	if (r)
		return r;
	if (t->fifo) {
		entry.group = make_id(message->key ? message->key : message->id, group);
		entry.duplicate = make_id(message->id, duplicate);
	}
	if (id == 0)
		t->service->put_begin(t, &request->buffer);
	t->service->put_entry(&request->buffer, &entry);
	*ret_size = size + entry.size;
	return request->buffer.failed ? outbox_fail(err, OUTBOX_ENOMEM, "out of memory") : OUTBOX_OK;
}

/* ---- the whole -------------------------------------------------------------------------------------- */

int aws_request_sign(struct aws_transport *t, const char *target, struct web_request *request,
		     struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf authorization = BUF_INIT((size_t)64 << 10);
	const struct aws_credentials *c = &t->credentials;
	char time[SIGV4_TIME_MAX];
	struct sigv4_header headers[5];
	struct sigv4_request signing = { .id = c->id,
					 .secret = c->secret,
					 .region = t->region,
					 .service = t->service->name,
					 .headers = headers,
					 .body = buf_str(&request->buffer),
					 .size = request->buffer.size };
	size_t n = 0;
	int r;

	signing.time = sigv4_time(t->broker.clock->wall(t->broker.clock), time);
	headers[n++] = (struct sigv4_header){ "content-type", t->service->content_type };
	headers[n++] = (struct sigv4_header){ "host", t->host };
	headers[n++] = (struct sigv4_header){ "x-amz-date", time };
	if (c->token)
		headers[n++] = (struct sigv4_header){ "x-amz-security-token", c->token };
	if (target)
		headers[n++] = (struct sigv4_header){ "x-amz-target", target };
	signing.n_headers = n;
	r = sigv4_sign(&signing, &authorization, err);
	if (r)
		return r;
	for (size_t i = 0; i < n; i++)
		web_header(request, headers[i].name, headers[i].value);
	web_header(request, "authorization", buf_str(&authorization));
	request->url = t->url;
	request->body = signing.body;
	request->size = signing.size;
	return OUTBOX_OK;
}
