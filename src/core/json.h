/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_JSON_H
#define CORE_JSON_H

/* JSON as text: written without a tree in between, since every delivered message goes through here. */

#include <outbox/error.h>

#include <stddef.h>

struct buf;

#define JSON_DEPTH_MAX 1000

/* Append a JSON string with its quotes. text must be valid UTF-8; NULs are escaped. */
void json_append_string(struct buf *out, const char *text, size_t size);

/* Append valid JSON without the white space between its parts: one line, nothing else changed. */
void json_append_compact(struct buf *out, const char *json, size_t size);

#endif
