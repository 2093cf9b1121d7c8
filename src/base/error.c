/* SPDX-License-Identifier: Apache-2.0 */

#include <outbox/error.h>

#include "base/text.h"

#include <stdio.h>
#include <string.h>

/*
 * Formats into memory of its own first, since arguments may point into err->message. Other people's
 * texts (a database's error) can have line breaks or be no UTF-8; a message is one clean line.
 */
OUTBOX_PRINTF(2, 0)
static void format_message(char out[OUTBOX_ERROR_MAX], const char *format, va_list args)
{
	char text[2 * OUTBOX_ERROR_MAX];
	size_t size;
	int n = vsnprintf(text, sizeof(text), format, args);

	size = n < 0 ? 0 : (size_t)n;
	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	size = utf8_cut(text, size, OUTBOX_ERROR_MAX - 1);
	memcpy(out, text, size);
	out[size] = '\0';
	text_clean(out);
}

OUTBOX_PRINTF(5, 0)
static int fill(struct outbox_error *err, int status, int native, int detail, const char *format,
		va_list args)
{
	char message[OUTBOX_ERROR_MAX];

	/* A failure without a status would be taken for success. */
	if (status == OUTBOX_OK)
		status = OUTBOX_EINTERNAL;
	if (!err)
		return status;
	format_message(message, format, args);
	*err = (struct outbox_error){ .status = status, .native = native, .detail = detail };
	memcpy(err->message, message, sizeof(err->message));
	return status;
}

int outbox_fail(struct outbox_error *err, int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	status = fill(err, status, 0, OUTBOX_DETAIL_NONE, format, args);
	va_end(args);
	return status;
}

int outbox_fail_native(struct outbox_error *err, int status, int native, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	status = fill(err, status, native, OUTBOX_DETAIL_NONE, format, args);
	va_end(args);
	return status;
}

int outbox_fail_detail(struct outbox_error *err, int status, int detail, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	status = fill(err, status, 0, detail, format, args);
	va_end(args);
	return status;
}

int outbox_wrap(struct outbox_error *err, const char *format, ...)
{
	char prefix[OUTBOX_ERROR_MAX];
	va_list args;
	int detail, status;

	if (!err)
		return OUTBOX_EINTERNAL;
	va_start(args, format);
	format_message(prefix, format, args);
	va_end(args);
	/* it begins with something else now */
	detail = err->detail == OUTBOX_DETAIL_FIELD ? OUTBOX_DETAIL_NONE : err->detail;
	status = outbox_fail_native(err, err->status, err->native, "%s: %s", prefix, err->message);
	err->detail = detail;
	return status;
}

const char *outbox_status_name(int status)
{
	static const char *const names[] = {
		"ok",       "inval", "nomem",  "config",   "conn",     "auth",
		"timedout", "busy",  "fenced", "conflict", "notfound", "notsup",
		"schema",   "full",  "proto",  "internal", "gone",
	};

	if (status < 0 || (size_t)status >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[status];
}
