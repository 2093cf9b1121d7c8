/* SPDX-License-Identifier: Apache-2.0 */

/* Envelopes whose body is the payload as it is: CloudEvents binary mode, and our native form. */

#include "core/envelope.h"

#include <string.h>
#include <strings.h>

static size_t append_own(struct outbox_encoder *encoder, const struct outbox_message *message,
			 size_t n, const char *shadowed)
{
	size_t i;

	for (i = 0; i < message->n_headers && n < ENCODED_HEADERS_MAX; i++) {
		if (shadowed && strcasecmp(message->headers[i].name, shadowed) == 0)
			continue;
		encoder->headers[n++] = message->headers[i];
	}
	return n;
}

size_t envelope_binary(struct outbox_encoder *encoder, const struct outbox_message *message,
		       const char *const values[ATTRIBUTES])
{
	size_t n = 0, i;

	encoder->headers[n++] = (struct outbox_header){ encoder->names[ATTRIBUTES], "1.0" };
	for (i = 0; i < ATTRIBUTES; i++) {
		if (values[i])
			encoder->headers[n++] =
				(struct outbox_header){ encoder->names[i], values[i] };
	}
	return append_own(encoder, message, n, NULL);
}

size_t envelope_native(struct outbox_encoder *encoder, const struct outbox_message *message,
		       const char *const values[ATTRIBUTES])
{
	size_t n = 0, i;

	for (i = 0; i < ATTRIBUTES; i++) {
		const char *name = attribute_names[i].native;

		if (values[i] && name)
			encoder->headers[n++] = (struct outbox_header){ name, values[i] };
	}
	/* The field goes before a header of the same name: two would be ambiguous. */
	return append_own(encoder, message, n, values[ATTRIBUTE_TRACE] ? "traceparent" : NULL);
}
