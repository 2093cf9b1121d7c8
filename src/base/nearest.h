/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

/* "Did you mean": the name that a mistyped one most likely stands for. */

#include <stddef.h>

struct nearest {
	const char *word;
	const char *best; /* NULL: nothing is near enough */
	size_t distance;
};

void nearest_init(struct nearest *nearest, const char *word);
void nearest_offer(struct nearest *nearest, const char *name);

#endif
