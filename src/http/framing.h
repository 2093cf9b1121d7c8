/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_FRAMING_H
#define HTTP_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this a library that accepts anything? Later ones are strict when asked to be. */
bool framing_is_needed(void);

/* Where the parts of a request's head lie in memory. */
struct framing {
	uintptr_t begin, target, target_end;
	uintptr_t at; /* where the next part must begin */
	bool loose;
};

/* The target as it was sent, the line around it, each header in turn: all as libmicrohttpd gives them. */
void framing_begin(struct framing *framing, const char *target);
void framing_line(struct framing *framing, const char *method, const char *version);
void framing_header(struct framing *framing, const char *name, size_t name_size, const char *value,
		    size_t value_size);

/* One space in the request line, CRLF behind each line, nothing folded, no NUL. size: of the whole head. */
bool framing_is_strict(const struct framing *framing, size_t size);

#endif
