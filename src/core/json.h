/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_JSON_H
#define CORE_JSON_H

/* JSON as text: written without a tree in between, since every delivered message goes through here. */

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>

struct buf;

#define JSON_DEPTH_MAX 1000

/* Append a JSON string with its quotes. text must be valid UTF-8; NULs are escaped. */
void json_append_string(struct buf *out, const char *text, size_t size);
/* "name":"value", with what stands before it: a comma or a brace. */
void json_append_member(struct buf *out, char before, const char *name, const char *value);

/* Append valid JSON without the white space between its parts: one line, nothing else changed. */
void json_append_compact(struct buf *out, const char *json, size_t size);

/* A part of a JSON text: a string has its quotes. */
struct json_piece {
	const char *at;
	size_t size;
};

/* The members of an object, in order, of text that json_text_check() accepted. */
struct json_members {
	const char *at, *end;
};

/* False: the text is something else than an object. */
bool json_members_begin(struct json_members *members, const char *json, size_t size);

/* False: there are no more. */
bool json_members_next(struct json_members *members, struct json_piece *ret_name,
		       struct json_piece *ret_value);

/* The same of an array, whose elements have no names. */
bool json_elements_begin(struct json_members *elements, const char *json, size_t size);
bool json_elements_next(struct json_members *elements, struct json_piece *ret_value);

/*
 * The text of a string, NUL-terminated; out has room for string->size bytes, which is always enough.
 * NULL, or what is in it that no text of ours can have.
 */
const char *json_string_read(const struct json_piece *string, char *out) OUTBOX_MUSTCHECK;

#endif
