/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MESSAGE_H
#define CORE_MESSAGE_H

#include <outbox/arena.h>
#include <outbox/message.h>

#include <stdbool.h>

struct buf;

/*
 * A caller's message in today's layout: fields that its header did not know are zero. Call this once
 * at every public entry point, then use the copy only.
 */
struct outbox_message message_view(const struct outbox_message *message);

/* EINVAL naming the field: it is empty, no UTF-8, or has more than max characters. */
int message_text_check(const char *field, const char *text, size_t max,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Is the payload stored in the text column? Textual content type, valid UTF-8, no NUL. */
bool message_is_text(const struct outbox_message *message);
bool content_type_is_json(const char *content_type);

/* EINVAL naming the header and the remedy: names are RFC 9110 tokens, none twice, none reserved; values
 * are UTF-8 without line breaks; count and bytes within OUTBOX_HEADERS_MAX, OUTBOX_HEADER_BYTES_MAX. */
/* EINVAL for a name that no header can have, or that is reserved. */
int header_name_check(const char *name, struct outbox_error *err) OUTBOX_MUSTCHECK;
int headers_check(const struct outbox_header *headers, size_t n,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Those of a message that failed at another target: target, reason, attempts, at. Put there by the relay. */
#define DEAD_LETTER_HEADER "outbox-dead-"

/* Append headers that were checked as a JSON object. */
void headers_append(struct buf *out, const struct outbox_header *headers, size_t n);

/* Headers as stored: a JSON object of strings, in order. NULL/none gives no text (NULL column). */
int headers_format(const struct outbox_header *headers, size_t n, struct buf *out,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* EPROTO when it is not a JSON object of strings (numbers and booleans are taken as their text), or when
 * headers_check() refuses it. NULL and JSON's null give no headers. */
int headers_parse(const char *json, struct outbox_arena *arena, struct outbox_header **ret_headers,
		  size_t *ret_count, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* A W3C trace context as an application gives it: https://www.w3.org/TR/trace-context/ */
struct traceparent {
	unsigned char trace[16], span[8], flags;
};

/* False: it is none. */
bool traceparent_parse(const char *text, struct traceparent *ret_traceparent);

/* OK, or EINVAL with the parser's position: text that claims to be JSON must be JSON. */
int json_text_check(const char *data, size_t size, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The same of one line of a file: the error has the column alone. */
int json_line_check(const char *line, size_t size, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* struct_size of a message as the first version's header had it. */
#define MESSAGE_SIZE_V1 (offsetof(struct outbox_message, expires_at) + sizeof(outbox_time))

/* What headers_format() makes at most: a header's every byte may become six, "\u001f". */
#define HEADERS_TEXT_MAX ((size_t)8 * OUTBOX_HEADER_BYTES_MAX + 8 * OUTBOX_HEADERS_MAX + 64)

#define DEFAULT_CONTENT_TYPE "application/json"
#define DEFAULT_BYTES_TYPE "application/octet-stream" /* of a stored payload that is not text */
#define ERROR_TEXT_MAX 2000

/* Bytes of what a broker answered that the history of failed attempts keeps. */
#define ANSWER_TEXT_MAX 4096
/* Bytes read behind those that are kept: a secret across the end is recognized, and no half of one is kept. */
#define ANSWER_MARGIN ANSWER_TEXT_MAX
#define ANSWER_READ_MAX ((size_t)ANSWER_TEXT_MAX + ANSWER_MARGIN)

#endif
