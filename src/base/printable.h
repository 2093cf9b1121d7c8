/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

/*
 * Foreign text on a terminal. Types, keys, errors and payloads come from anywhere: nothing in them may
 * move the cursor, set a title or turn the writing direction. Unlike text_display(), which escapes quotes
 * for error messages, this keeps them and measures in columns, since it fills table cells.
 */

#include <outbox/error.h>

#include <stddef.h>
#include <stdio.h>

struct buf;

#define UNCUT ((size_t)-1)

/* Append text of size bytes, control and direction characters escaped, at most columns wide; what is
 * cut ends in "...". */
void printable_append(struct buf *out, const char *text, size_t size, size_t columns);

/* Columns that an already printable text takes. */
size_t printable_width(const char *text);

/* Write a line for a person: escaped, not cut. */
void printable_line(FILE *stream, const char *prefix, const char *text);

/* printf for a person: foreign text in the arguments is escaped, the line is wrapped at 80 columns. */
void printable_printf(FILE *stream, const char *format, ...) OUTBOX_PRINTF(2, 3);

/* Write text from column `at` on, wrapped at words so that it fits width, with later lines indented to
 * `indent`; a word that is longer than a line is broken. A command (outbox ..., at the beginning or behind a colon) can be
 * pasted: it gets a line of its own, or backslashes. Ends with a newline. text is escaped first. */
struct wrap {
	size_t at, indent, width;
};
void printable_wrap(FILE *stream, const struct wrap *wrap, const char *text);

#endif
