/* SPDX-License-Identifier: Apache-2.0 */

#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 64

/* Room for size more bytes and a NUL. */
static bool reserve(struct buf *buf, size_t size)
{
	size_t need, capacity;
	char *data;

	if (buf->failed)
		return false;
	if (size > buf->max - buf->size || size > SIZE_MAX / 4 - buf->size) {
		buf->failed = true;
		return false;
	}
	need = buf->size + size + 1;
	if (need <= buf->capacity)
		return true;
	capacity = buf->capacity ? buf->capacity * 2 : CAPACITY_MIN;
	if (capacity > buf->max)
		capacity = buf->max + 1;
	if (capacity < need)
		capacity = need;
	data = realloc(buf->data, capacity);
	if (!data) {
		buf->failed = true;
		return false;
	}
	buf->data = data;
	buf->capacity = capacity;
	return true;
}

void buf_append(struct buf *buf, const void *data, size_t size)
{
	if (size == 0 || !reserve(buf, size))
		return;
	memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	buf->data[buf->size] = '\0';
}

void buf_text(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

void buf_char(struct buf *buf, char c)
{
	buf_append(buf, &c, 1);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		buf->failed = true;
	if (n <= 0 || !reserve(buf, (size_t)n))
		return;
	va_start(args, format);
	vsnprintf(buf->data + buf->size, (size_t)n + 1, format, args);
	va_end(args);
	buf->size += (size_t)n;
}

void buf_shell_word(struct buf *buf, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._:@%+,/-";

	if (*text && *text != '-' && text[strspn(text, plain)] == '\0') {
		buf_text(buf, text);
		return;
	}
	buf_char(buf, '\'');
	for (; *text; text++)
		if (*text == '\'')
			buf_text(buf, "'\\''");
		else
			buf_char(buf, *text);
	buf_char(buf, '\'');
}

const char *buf_str(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

void buf_clear(struct buf *buf)
{
	buf->size = 0;
	buf->failed = false;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_deinit(struct buf *buf)
{
	free(buf->data);
	buf->data = NULL;
	buf->size = buf->capacity = 0;
	buf->failed = false;
}

void buf_number(struct buf *buf, uint64_t number)
{
	char text[20], *at = text + sizeof(text);

	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	buf_append(buf, at, (size_t)(text + sizeof(text) - at));
}
