/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_MESSAGE_H
#define OUTBOX_MESSAGE_H

#include <outbox/clock.h>
#include <outbox/error.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum outbox_kind {
	OUTBOX_KIND_UNSET = 0, /* means event */
	OUTBOX_KIND_EVENT = 1,
	OUTBOX_KIND_COMMAND = 2
};

/* Names are kept as given and compared without regard to case; values are UTF-8 without NUL. */
struct outbox_header {
	const char *name;
	const char *value;
};

/*
 * A message as an application publishes it and as a transport receives it. Everything but `type` may
 * be left unset: NULL strings and zero times mean the default. All pointers are borrowed.
 *
 * Start from OUTBOX_MESSAGE_INIT; struct_size tells the library which fields your header knew, so an
 * application built against an older header goes on working. 0 means the first version's size.
 */
struct outbox_message {
	size_t struct_size;
	const char *type; /* required: "order.placed", 1 to 500 characters */
	const char *key;  /* messages of one key are delivered in order; up to 255 characters */
	const void *data; /* the payload, opaque bytes; NULL only with size 0 */
	size_t size;
	const char *content_type; /* default application/json */
	const char *id;           /* default a new UUIDv7; your own makes a repeat harmless */
	int kind;                 /* enum outbox_kind */
	int published;            /* not 0: `external` targets get it, too */
	const char *source;       /* CloudEvents source; default /outbox/<store's name> */
	const char *subject;      /* CloudEvents subject */
	const char *topic;        /* for targets whose route is a template with {topic} */
	const char *correlation_id;
	const char *causation_id;
	const char *traceparent; /* W3C trace context */
	const struct outbox_header *headers;
	size_t n_headers;
	int priority;           /* -100 to 100; 0 is normal */
	outbox_time event_time; /* when it happened; default: when it is published */
	outbox_time due_at;     /* do not deliver it before this time */
	outbox_time expires_at; /* after this time it fails as expired */
};

#define OUTBOX_MESSAGE_INIT OUTBOX_SIZED(struct outbox_message)

/* Limits that validation enforces. The payload's limit can be changed with each call of validate. */
#define OUTBOX_TYPE_MAX 500
#define OUTBOX_KEY_MAX 255
#define OUTBOX_ID_MAX 255
#define OUTBOX_TEXT_MAX 2048 /* source, subject, topic, content type, correlation ... each */
#define OUTBOX_PAYLOAD_MAX ((size_t)16 << 20)
#define OUTBOX_HEADERS_MAX 64
#define OUTBOX_HEADER_BYTES_MAX 32768 /* names and values together */

/*
 * Check every field of a message against the limits above. The error names the field, the value (cut
 * and escaped) and the remedy. payload_max 0 means OUTBOX_PAYLOAD_MAX.
 */
int outbox_message_validate(const struct outbox_message *message, size_t payload_max,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Record that child was caused by parent, for example by a message that a handler has received. causation_id becomes
 * the parent's id, correlation_id the parent's or, if it has none, its id, so that all that follows from one message has
 * the same correlation_id. The parent's traceparent is inherited unless the child has one. child borrows the parent's
 * texts: publish it while they are valid. EINVAL: the parent has no id.
 */
int outbox_message_caused_by(struct outbox_message *child, const struct outbox_message *parent,
			     struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Write a new UUIDv7 in its text form, 36 characters and a NUL. */
void outbox_uuid(struct outbox_clock *clock, struct outbox_random *random, char ret_text[37]);

#ifdef __cplusplus
}
#endif

#endif
