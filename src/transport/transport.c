/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include <stdbool.h>
#include <stddef.h>

/* Everything up to and including close() must be there; what comes behind it is optional. */
#define OPS_SIZE_MIN (offsetof(struct outbox_transport_ops, check))

static bool scheme_valid(const char *scheme)
{
	if (!scheme || scheme[0] < 'a' || scheme[0] > 'z')
		return false;
	for (const char *c = scheme; *c; c++) {
		bool legal = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '+' ||
			     *c == '-' || *c == '.';

		if (!legal)
			return false;
	}
	return true;
}

static int check_schemes(const struct outbox_transport_ops *ops, struct outbox_error *err)
{
	if (!ops->schemes || !ops->schemes[0])
		return outbox_fail(err, OUTBOX_EINVAL, "transport \"%.40s\" has no scheme",
				   ops->name);
	for (const char *const *scheme = ops->schemes; *scheme; scheme++)
		if (!scheme_valid(*scheme))
			return outbox_fail(err, OUTBOX_EINVAL,
					   "transport \"%.40s\": \"%.40s\" is not a scheme; use "
					   "lower case letters, digits, + - .",
					   ops->name, *scheme);
	return OUTBOX_OK;
}

int transport_ops_check(const struct outbox_transport_ops *ops, struct outbox_error *err)
{
	const char *missing = NULL;

	if (!ops)
		return outbox_fail(err, OUTBOX_EINVAL, "no transport was given");
	if (ops->struct_size < OPS_SIZE_MIN)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "transport: struct_size %zu is too small; set it to "
				   "sizeof(struct outbox_transport_ops)",
				   ops->struct_size);
	if (!ops->name || !ops->name[0])
		return outbox_fail(err, OUTBOX_EINVAL, "transport has no name");

	if (!ops->open)
		missing = "open";
	else if (!ops->connect)
		missing = "connect";
	else if (!ops->publish)
		missing = "publish";
	else if (!ops->disconnect)
		missing = "disconnect";
	else if (!ops->close)
		missing = "close";
	if (missing)
		return outbox_fail(err, OUTBOX_EINVAL, "transport \"%.40s\" lacks %s()", ops->name,
				   missing);
	return check_schemes(ops, err);
}

struct outbox_transport *transport_close(struct outbox_transport *transport)
{
	if (transport)
		transport->ops->close(transport);
	return NULL;
}

int transport_check(struct outbox_transport *transport, outbox_time deadline, char *text, size_t size)
{
	const struct outbox_transport_ops *ops = transport->ops;

	if (size > 0)
		text[0] = '\0';
	if (ops->struct_size < OPS_SIZE_MIN + sizeof(ops->check) || !ops->check)
		return 0;
	return ops->check(transport, deadline, text, size);
}
