/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

/*
 * A growable byte buffer that is made with its maximum. Once an append fails (out of memory, past the
 * maximum) the buffer is `failed` and stays so until buf_clear(): build first, check once at the end.
 * data is always NUL-terminated behind size, except that it is NULL while nothing was appended.
 */

#include <outbox/error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t size;
	size_t capacity;
	size_t max;
	bool failed;
};

#define BUF_INIT(maximum)        \
	{                        \
		.max = (maximum) \
	}

void buf_append(struct buf *buf, const void *data, size_t size);
void buf_text(struct buf *buf, const char *text);
void buf_printf(struct buf *buf, const char *format, ...) OUTBOX_PRINTF(2, 3);
void buf_char(struct buf *buf, char c);
/* In decimal; for hot paths, where printf would be half the cost of a message. */
void buf_number(struct buf *buf, uint64_t number);
/* As one word of a shell command: quoted when it needs to be. */
void buf_shell_word(struct buf *buf, const char *text);

/* The text so far, never NULL: "" while empty. */
const char *buf_str(const struct buf *buf);

/* Forget the content and the failure, keep the memory. */
void buf_clear(struct buf *buf);
void buf_deinit(struct buf *buf);

#endif
