/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims-based security, Azure's way to log in: a signed token for each address is put to $cbs before its link is attached,
 * and again before it ends. An expired one makes the service drop the links.
 */

#include "transport/amqp1/driver.h"

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include <openssl/hmac.h>
#include <proton/codec.h>

#define TOKEN_MAX 8192

/* "SharedAccessSignature sr=...": for this resource, until then (seconds). */
static int make_sas_token(const char *resource, const char *policy, const char *key, int64_t until,
			  struct buf *out, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf escaped = BUF_INIT(TOKEN_MAX), text = BUF_INIT(TOKEN_MAX),
					 signature = BUF_INIT(TOKEN_MAX);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0;

	url_escape(&escaped, resource, "");
	buf_printf(&text, "%s\n%lld", buf_str(&escaped), (long long)until);
	/* The key as it is written: it is not decoded. */
	if (!HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)buf_str(&text),
		  text.size, digest, &size))
		return outbox_fail(err, OUTBOX_EINTERNAL, "HMAC-SHA256 failed");
	base64_append(&signature, digest, size);
	buf_printf(out, "SharedAccessSignature sr=%s&sig=", buf_str(&escaped));
	url_escape(out, buf_str(&signature), "");
	buf_printf(out, "&se=%lld&skn=", (long long)until);
	url_escape(out, policy, "");
	return escaped.failed || text.failed || signature.failed || out->failed
		       ? outbox_fail(err, OUTBOX_ECONFIG, "the token becomes too long")
		       : OUTBOX_OK;
}

static void put_text(pn_data_t *map, const char *name, const char *value)
{
	pn_data_put_string(map, pn_bytes(strlen(name), name));
	pn_data_put_string(map, pn_bytes(strlen(value), value));
}

static void free_message(pn_message_t **message)
{
	if (*message)
		pn_message_free(*message);
}

static pn_message_t *make_question(const char *resource, const char *token)
{
	pn_message_t *question = pn_message();
	pn_data_t *map = pn_message_properties(question);

	pn_message_set_id(question, (pn_msgid_t){ .type = PN_ULONG, .u.as_ulong = 1 });
	pn_data_put_map(map);
	pn_data_enter(map);
	put_text(map, "operation", "put-token");
	put_text(map, "type", "servicebus.windows.net:sastoken");
	put_text(map, "name", resource);
	pn_data_exit(map);
	pn_data_put_string(pn_message_body(question), pn_bytes(strlen(token), token));
	return question;
}

/* The answer's status-code and status-description. -1: it has none. */
static int read_status(pn_message_t *reply, char *out, size_t size)
{
	pn_data_t *map = pn_message_properties(reply);
	int status = -1;

	out[0] = '\0';
	pn_data_rewind(map);
	if (!pn_data_next(map) || pn_data_type(map) != PN_MAP)
		return -1;
	pn_data_enter(map);
	while (pn_data_next(map)) {
		pn_bytes_t name = pn_data_get_bytes(map);
		bool is_code = name.size == 11 && memcmp(name.start, "status-code", 11) == 0;
		bool is_text = name.size == 18 && memcmp(name.start, "status-description", 18) == 0;

		if (!pn_data_next(map))
			break;
		if (is_code && pn_data_type(map) == PN_INT)
			status = pn_data_get_int(map);
		if (is_text && pn_data_type(map) == PN_STRING) {
			pn_bytes_t text = pn_data_get_string(map);

			snprintf(out, size, "%.*s", (int)(text.size < size ? text.size : size - 1),
				 text.start);
			text_clean(out);
		}
	}
	pn_data_exit(map);
	return status;
}

static int put_token(struct amqp1_transport *t, const char *resource, const char *token,
		     outbox_time deadline, struct outbox_error *err)
{
	_cleanup_(free_message) pn_message_t *question = make_question(resource, token);
	pn_message_t *reply;
	char text[300];
	int status, r = amqp1_request(t, "$cbs", false, question, deadline, &reply, err);

	if (r != OUTBOX_OK)
		return r;
	status = read_status(reply, text, sizeof(text));
	if (status == 200 || status == 202)
		return OUTBOX_OK;
	return outbox_fail_native(err, status >= 500 ? OUTBOX_ECONN : OUTBOX_EAUTH, status,
				  "%s: the token was refused (%d): %s; check the policy and its key",
				  t->broker.shown, status, text);
}

int cbs_refresh(struct amqp1_transport *t, const char *address, outbox_time *token_ends,
		outbox_time deadline, struct outbox_error *err)
{
	_cleanup_(buf_deinit) struct buf resource = BUF_INIT(TOKEN_MAX), token = BUF_INIT(TOKEN_MAX);
	const struct endpoint *e = &t->broker.endpoint;
	outbox_time now = t->broker.clock->wall(t->broker.clock);
	outbox_time ttl = t->token_ttl * OUTBOX_SECONDS;
	int r;

	/* In its last quarter it is renewed: clocks differ, and batches take their time. */
	if (t->auth != AUTH_CBS || *token_ends - now > ttl / 4)
		return OUTBOX_OK;
	buf_printf(&resource, "sb://%s/%s", t->hostname, address);
	r = make_sas_token(buf_str(&resource), e->user, e->password, (now + ttl) / OUTBOX_SECONDS,
			   &token, err);
	if (r == OUTBOX_OK)
		r = put_token(t, buf_str(&resource), buf_str(&token), deadline, err);
	if (token.data)
		explicit_bzero(token.data, token.size);
	if (r == OUTBOX_OK)
		*token_ends = now + ttl;
	return r;
}
