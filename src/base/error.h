/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

/*
 * What may be asked of an error besides its status and its detail. Its words are for people: nobody decides by them.
 * Inline, so that a library beside liboutbox needs no copy of its errors.
 */

#include <outbox/error.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* How long the name of the field is that the message begins with (OUTBOX_DETAIL_FIELD); 0: it begins with none. */
static inline size_t error_field_length(const struct outbox_error *err)
{
	const char *end = err->detail == OUTBOX_DETAIL_FIELD ? strchr(err->message, ':') : NULL;

	return end ? (size_t)(end - err->message) : 0;
}

/* The field that is wrong; "": the error does not say. */
static inline const char *error_field(const struct outbox_error *err, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)error_field_length(err), err->message);
	return out;
}

/* The message without it. */
static inline const char *error_rest(const struct outbox_error *err)
{
	size_t length = error_field_length(err);

	return err->message + length + (length ? strspn(err->message + length, ": ") : 0);
}

/* The message without this beginning, if it has it: what a line says anyway need not be said twice. */
static inline const char *error_behind(const struct outbox_error *err, const char *beginning)
{
	size_t length = strlen(beginning);

	if (strncmp(err->message, beginning, length) != 0)
		return err->message;
	return err->message + length + strspn(err->message + length, ": ");
}

/* EINVAL or ECONFIG, whose message begins with the name of a field: note that. Returns status. */
static inline int error_names_field(int status, struct outbox_error *err)
{
	if (err && (status == OUTBOX_EINVAL || status == OUTBOX_ECONFIG))
		err->detail = OUTBOX_DETAIL_FIELD;
	return status;
}

/* The same failure in the same words? Then it is no news. */
static inline bool error_same(const struct outbox_error *one, const struct outbox_error *other)
{
	return one->status == other->status && strcmp(one->message, other->message) == 0;
}

#endif
