/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SIZED_H
#define BASE_SIZED_H

#include <string.h>

/* An application built against an older header has a smaller struct: what it did not know is 0. A size of 0 is taken
 * as the first version's, which every later one begins with. */
static inline void sized_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
	memset(to, 0, to_size);
	memcpy(to, from, from_size && from_size < to_size ? from_size : to_size);
}

#endif
