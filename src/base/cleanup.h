/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

/*
 * Locals that own something say so: `_cleanup_(buf_deinit) struct buf text = BUF_INIT(max);`.
 * DEFINE_CLEANUP(type, free) makes free##p for pointers: `_cleanup_(thing_freep) struct thing *t`.
 */

#include <stdlib.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

#define DEFINE_CLEANUP(type, function)          \
	static inline void function##p(type *p) \
	{                                       \
		if (*p)                         \
			function(*p);           \
	}

/* For what malloc() gave: `_cleanup_(cleanup_free) char *text`. */
static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#endif
