/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Append data in base64 (RFC 4648, with padding, no line breaks). */
void base64_append(struct buf *out, const void *data, size_t size);

/* The reverse, and nothing but the reverse: no line breaks, padded. out has room for size / 4 * 3 bytes. */
bool base64_decode(const char *text, size_t size, void *out, size_t *ret_size);

#endif
