/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_ARENA_H
#define OUTBOX_ARENA_H

/*
 * An arena owns everything a batch or a page of results points to: drivers allocate from it and
 * never free a field; the caller resets or frees the whole at once. Every arena has a maximum.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_arena;

/* NULL when out of memory. max is the most bytes it will ever hand out between two resets. */
struct outbox_arena *outbox_arena_new(size_t max);
struct outbox_arena *outbox_arena_free(struct outbox_arena *arena);

/* Forget everything handed out; keeps its first blocks, so a steady user allocates nothing. */
void outbox_arena_reset(struct outbox_arena *arena);

/* Aligned for any type, zeroed. NULL when out of memory or past the maximum. */
void *outbox_arena_alloc(struct outbox_arena *arena, size_t size);

/* size bytes of data and a NUL behind them. NULL data gives NULL. */
void *outbox_arena_copy(struct outbox_arena *arena, const void *data, size_t size);
char *outbox_arena_text(struct outbox_arena *arena, const char *text);

#ifdef __cplusplus
}
#endif

#endif
