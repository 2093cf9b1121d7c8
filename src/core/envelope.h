/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ENVELOPE_H
#define CORE_ENVELOPE_H

/* Shared by the files of the encoder; everybody else uses outbox_encode(). */

#include <outbox/transport.h>

#include "base/buf.h"
#include "base/text.h"

#include <stdbool.h>

/* Where an attribute's value comes from. */
enum attribute {
	ATTRIBUTE_ID,
	ATTRIBUTE_SOURCE,
	ATTRIBUTE_TYPE,
	ATTRIBUTE_SUBJECT,
	ATTRIBUTE_TIME,
	ATTRIBUTE_KEY,
	ATTRIBUTE_CORRELATION,
	ATTRIBUTE_CAUSATION,
	ATTRIBUTE_TRACE,
	ATTRIBUTE_KIND,
	ATTRIBUTE_TOPIC,
	ATTRIBUTE_SEQUENCE,
	ATTRIBUTE_ATTEMPT,
	ATTRIBUTES /* their number */
};

struct attribute_name {
	const char *cloudevents;
	const char *native; /* NULL: not in the native envelope */
	bool internal;      /* not in the external envelope */
};

extern const struct attribute_name attribute_names[ATTRIBUTES];

/* and specversion, and traceparent under its own name */
#define ENCODED_HEADERS_MAX (OUTBOX_HEADERS_MAX + ATTRIBUTES + 2)

struct outbox_encoder {
	int envelope;
	struct buf body;
	struct buf scratch;
	char time[TIME_TEXT_MAX];
	char sequence[24];
	char attempt[16];
	char *names[ATTRIBUTES + 1]; /* prefixed, binary mode; the last is specversion */
	struct outbox_header headers[ENCODED_HEADERS_MAX];
};

/* CloudEvents JSON into encoder->body. The payload was checked. */
void envelope_structured(struct outbox_encoder *encoder, const struct outbox_message *message,
			 const char *const values[ATTRIBUTES]);

/* Attributes and the message's headers into encoder->headers; returns their number. */
size_t envelope_binary(struct outbox_encoder *encoder, const struct outbox_message *message,
		       const char *const values[ATTRIBUTES]);
size_t envelope_native(struct outbox_encoder *encoder, const struct outbox_message *message,
		       const char *const values[ATTRIBUTES]);

#endif
