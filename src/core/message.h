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

/* Is the payload stored in the text column? Textual content type, valid UTF-8, no NUL. */
bool message_is_text(const struct outbox_message *message);
bool content_type_is_json(const char *content_type);

/* Headers as stored: a JSON object of strings, in order. NULL/none gives no text (NULL column). */
int headers_format(const struct outbox_header *headers, size_t n, struct buf *out,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* EPROTO when it is not a JSON object of strings (numbers and booleans are taken as their text). */
int headers_parse(const char *json, struct outbox_arena *arena, struct outbox_header **ret_headers,
		  size_t *ret_count, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OK, or EINVAL with the parser's position: text that claims to be JSON must be JSON. */
int json_text_check(const char *data, size_t size, struct outbox_error *err) OUTBOX_MUSTCHECK;

#define DEFAULT_CONTENT_TYPE "application/json"
#define ERROR_TEXT_MAX 2000

#endif
