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

static int digit(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (int)(at - alphabet) : -1;
}

/* One group of four; returns how many bytes it stands for, 0: it stands for none. */
static size_t decode(const char *text, unsigned char out[3])
{
	int a = digit(text[0]), b = digit(text[1]), c = digit(text[2]), d = digit(text[3]);
	size_t n = text[3] != '=' ? 3 : text[2] != '=' ? 2 : 1;

	if (a < 0 || b < 0 || (n > 1 && c < 0) || (n > 2 && d < 0))
		return 0;
	c = n > 1 ? c : 0;
	d = n > 2 ? d : 0;
	out[0] = (unsigned char)(a << 2 | b >> 4);
	out[1] = (unsigned char)((b & 15) << 4 | c >> 2);
	out[2] = (unsigned char)((c & 3) << 6 | d);
	/* bits behind the end are 0, else two texts would stand for the same bytes */
	if ((n == 1 && (b & 15)) || (n == 2 && (c & 3)))
		return 0;
	return n;
}

bool base64_decode(const char *text, size_t size, void *out, size_t *ret_size)
{
	unsigned char *to = out;

	if (size % 4)
		return false;
	for (size_t at = 0; at < size; at += 4) {
		unsigned char bytes[3];
		size_t n = decode(text + at, bytes);

		if (n == 0 || (n < 3 && at + 4 < size))
			return false;
		memcpy(to, bytes, n);
		to += n;
	}
	*ret_size = (size_t)(to - (unsigned char *)out);
	return true;
}
