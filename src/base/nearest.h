/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* "Did you mean": the name that a mistyped one most likely stands for. */

#include <outbox/error.h>

#include <stddef.h>

struct nearest {
	const char *word;
	const char *best; /* NULL: nothing is near enough */
	size_t distance;
	char names[300]; /* "a, b, c": all that were offered, as far as they fit */
};

void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *name);

/* The status, and the text: there is no `what` of this name; which one was meant, or all there are. */
int nearest_fail(const struct nearest *nearest, int status, const char *what,
		 struct outbox_error *err);

#endif
