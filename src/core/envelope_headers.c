/* SPDX-License-Identifier: Apache-2.0 */

/* Envelopes whose body is the payload as it is: CloudEvents binary mode, and our native form. */

#include "core/envelope.h"

#include <string.h>
#include <strings.h>

#define TRACE_HEADER "traceparent"

/* hidden: our field goes before a header of this name, two would be ambiguous. */
static size_t append_own(struct outbox_encoder *encoder, const struct outbox_message *message,
			 size_t n, const char *hidden)
{
	for (size_t i = 0; i < message->n_headers && n < ENCODED_HEADERS_MAX; i++) {
		if (hidden && strcasecmp(message->headers[i].name, hidden) == 0)
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
	/* Instrumentation looks for its own header; tracestate is a header of the message already. */
	if (!values[ATTRIBUTE_TRACE] || strcmp(encoder->names[ATTRIBUTE_TRACE], TRACE_HEADER) == 0)
		return append_own(encoder, message, n, NULL);
	encoder->headers[n++] = (struct outbox_header){ TRACE_HEADER, values[ATTRIBUTE_TRACE] };
	return append_own(encoder, message, n, TRACE_HEADER);
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
	return append_own(encoder, message, n, values[ATTRIBUTE_TRACE] ? TRACE_HEADER : NULL);
}
