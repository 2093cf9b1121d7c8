/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base64.h"

#include "base/buf.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(const unsigned char *in, char out[4])
{
	out[0] = alphabet[in[0] >> 2];
	out[1] = alphabet[(in[0] & 3) << 4 | in[1] >> 4];
	out[2] = alphabet[(in[1] & 15) << 2 | in[2] >> 6];
	out[3] = alphabet[in[2] & 63];
}

void base64_append(struct buf *out, const void *data, size_t size)
{
	const unsigned char *in = data;
	char chunk[1024];
	size_t n = 0;

	for (; size >= 3; size -= 3, in += 3) {
		encode(in, chunk + n);
		n += 4;
		if (n == sizeof(chunk)) {
			buf_append(out, chunk, n);
			n = 0;
		}
	}
	if (size > 0) {
		unsigned char tail[3] = { 0 };

		memcpy(tail, in, size);
		encode(tail, chunk + n);
		chunk[n + 3] = '=';
		if (size == 1)
			chunk[n + 2] = '=';
		n += 4;
	}
	buf_append(out, chunk, n);
}
