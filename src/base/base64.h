/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

struct buf;

/* Append data in base64 (RFC 4648, with padding, no line breaks). */
void base64_append(struct buf *out, const void *data, size_t size);

#endif
