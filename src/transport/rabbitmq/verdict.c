/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the broker's and the library's codes to ours: one table, and docs/transports/rabbitmq.md shows it.
 *
 * `verdict` is for a single message that is known to have caused it; `status` is for the connection, for
 * connect(), and for a channel that was closed for the target's one exchange, where every message would be
 * guilty: a person repairs it, nobody is charged.
 */
#include "transport/rabbitmq/driver.h"

#include "base/text.h"

#include <string.h>

const struct rabbit_code rabbit_codes[] = {
	/* ---- the broker's reply codes */
	{ 311, NULL, OUTBOX_REJECTED, OUTBOX_ECONN, "too large for the broker" },
	{ 312, NULL, OUTBOX_RETRY, OUTBOX_ECONN, "no queue takes it; bind one" },
	{ 313, NULL, OUTBOX_RETRY, OUTBOX_ECONN, NULL },
	{ 320, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONN, NULL },
	{ 402, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONFIG, "name a virtual host that exists" },
	{ 403, NULL, OUTBOX_RETRY, OUTBOX_EAUTH, "check user, password and permissions" },
	{ 404, NULL, OUTBOX_RETRY, OUTBOX_ECONFIG, "create it, or let declare= and queue= do it" },
	{ 405, NULL, OUTBOX_RETRY, OUTBOX_ECONFIG, NULL },
	{ 406, "message size", OUTBOX_REJECTED, OUTBOX_ECONN, "too large for the broker" },
	{ 406, "inequivalent arg", OUTBOX_RETRY, OUTBOX_ECONFIG,
	  "it exists, and is never changed: give queue_type= or declare= as it is, or leave queue= or "
	  "declare= out" },
	{ 406, NULL, OUTBOX_RETRY, OUTBOX_ECONFIG, NULL },
	{ 506, NULL, OUTBOX_UNKNOWN, OUTBOX_EFULL, NULL },
	{ 530, "not found", OUTBOX_UNKNOWN, OUTBOX_ECONFIG, "create the virtual host" },
	{ 530, "limit", OUTBOX_UNKNOWN, OUTBOX_ECONN, NULL },
	{ 530, "is down", OUTBOX_UNKNOWN, OUTBOX_ECONN, NULL },
	{ 530, NULL, OUTBOX_UNKNOWN, OUTBOX_EAUTH, NULL },
	{ 540, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONFIG, NULL },
	{ 541, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONN, NULL },
	/* ---- the library's */
	{ AMQP_STATUS_NO_MEMORY, NULL, OUTBOX_UNKNOWN, OUTBOX_ENOMEM, NULL },
	{ AMQP_STATUS_BAD_AMQP_DATA, NULL, OUTBOX_UNKNOWN, OUTBOX_EPROTO,
	  "is it an AMQP 0-9-1 port?" },
	{ AMQP_STATUS_UNKNOWN_CLASS, NULL, OUTBOX_UNKNOWN, OUTBOX_EPROTO, NULL },
	{ AMQP_STATUS_UNKNOWN_METHOD, NULL, OUTBOX_UNKNOWN, OUTBOX_EPROTO, NULL },
	{ AMQP_STATUS_WRONG_METHOD, NULL, OUTBOX_UNKNOWN, OUTBOX_EPROTO, NULL },
	{ AMQP_STATUS_UNEXPECTED_STATE, NULL, OUTBOX_UNKNOWN, OUTBOX_EPROTO, NULL },
	{ AMQP_STATUS_INCOMPATIBLE_AMQP_VERSION, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONFIG,
	  "it must speak AMQP 0-9-1" },
	{ AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONFIG,
	  "it must offer PLAIN" },
	{ AMQP_STATUS_TIMEOUT, NULL, OUTBOX_UNKNOWN, OUTBOX_ETIMEDOUT, NULL },
	{ AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED, NULL, OUTBOX_UNKNOWN, OUTBOX_EAUTH,
	  "the certificate is for another name" },
	{ AMQP_STATUS_SSL_PEER_VERIFY_FAILED, NULL, OUTBOX_UNKNOWN, OUTBOX_EAUTH,
	  "the certificate is not trusted; name its authority with ca=" },
	{ AMQP_STATUS_SSL_CONNECTION_FAILED, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONN,
	  "is it a TLS port, with TLS 1.2 or later?" },
	/* ---- everything else is a connection that broke */
	{ 0, NULL, OUTBOX_UNKNOWN, OUTBOX_ECONN, NULL },
};

const struct rabbit_code *rabbit_code_find(int code, const char *text)
{
	const struct rabbit_code *row = rabbit_codes;

	while (row->code && (row->code != code || (row->with && !(text && strstr(text, row->with)))))
		row++;
	return row;
}

int rabbit_fail(const struct rabbit *rabbit, int code, const char *text, const char *what,
		struct outbox_error *err)
{
	const struct rabbit_code *row = rabbit_code_find(code, text);

	return outbox_fail_native(err, row->status, code, "%s: %s: %s%s%s", rabbit->broker.shown,
				  what, text ? text : amqp_error_string2(code),
				  row->note ? "; " : "", row->note ? row->note : "");
}

void rabbit_words(amqp_bytes_t bytes, char *out, size_t size)
{
	size_t length = bytes.bytes ? utf8_cut(bytes.bytes, bytes.len, size - 1) : 0;

	if (bytes.bytes)
		memcpy(out, bytes.bytes, length);
	out[length] = '\0';
	text_clean(out);
}
