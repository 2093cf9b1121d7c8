/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks in a list, each twice as large as the one before up to BLOCK_MAX; a larger request gets a
 * block of its own size. reset() keeps the first blocks up to KEEP_MAX and gives the rest back, so a
 * worker whose batches look alike allocates nothing and one huge batch is not remembered for ever.
 * Under gcc's address sanitizer forgotten memory is poisoned: a view that outlives its batch is found.
 */

#include <outbox/arena.h>

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define BLOCK_MIN ((size_t)32 << 10)
#define BLOCK_MAX ((size_t)1 << 20)
#define KEEP_MAX ((size_t)2 << 20)
#define ALIGNMENT (alignof(max_align_t))

struct block {
	struct block *next;
	size_t size;
	size_t used;
	alignas(max_align_t) char data[];
};

struct outbox_arena {
	size_t max;
	size_t used;
	struct block *first;
	struct block *current;
};

struct outbox_arena *outbox_arena_new(size_t max)
{
	struct outbox_arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		return NULL;
	arena->max = max > SIZE_MAX / 2 ? SIZE_MAX / 2 : max;
	/* Sizes are counted rounded up, and max bytes must always fit in one piece. */
	arena->max = (arena->max + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	return arena;
}

static void free_blocks(struct block *block)
{
	while (block) {
		struct block *next = block->next;

		ASAN_UNPOISON_MEMORY_REGION(block->data, block->size);
		free(block);
		block = next;
	}
}

struct outbox_arena *outbox_arena_free(struct outbox_arena *arena)
{
	if (arena)
		free_blocks(arena->first);
	free(arena);
	return NULL;
}

void outbox_arena_reset(struct outbox_arena *arena)
{
	struct block **link = &arena->first;
	size_t kept = 0;

	while (*link && kept + (*link)->size <= KEEP_MAX) {
		kept += (*link)->size;
		(*link)->used = 0;
		ASAN_POISON_MEMORY_REGION((*link)->data, (*link)->size);
		link = &(*link)->next;
	}
	free_blocks(*link);
	*link = NULL;
	arena->current = arena->first;
	arena->used = 0;
}

static bool fits(const struct block *block, size_t size)
{
	return block && size <= block->size - block->used;
}

/* A new block behind the current one: kept blocks behind it stay for smaller requests. */
static struct block *add_block(struct outbox_arena *arena, size_t size)
{
	size_t block_size = arena->current ? arena->current->size * 2 : BLOCK_MIN;
	struct block *block;

	if (block_size > BLOCK_MAX)
		block_size = BLOCK_MAX;
	if (block_size > arena->max)
		block_size = arena->max;
	if (block_size < size)
		block_size = size;
	block = malloc(sizeof(*block) + block_size);
	if (!block)
		return NULL;
	block->size = block_size;
	block->used = 0;
	ASAN_POISON_MEMORY_REGION(block->data, block_size);
	if (arena->current) {
		block->next = arena->current->next;
		arena->current->next = block;
	} else {
		block->next = NULL;
		arena->first = block;
	}
	return block;
}

static void *take_memory(struct outbox_arena *arena, size_t wanted)
{
	size_t size = wanted ? wanted : 1;
	struct block *block = arena->current;
	void *memory;

	if (size > arena->max)
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	if (size > arena->max - arena->used)
		return NULL;
	if (!fits(block, size)) {
		block = block && fits(block->next, size) ? block->next : add_block(arena, size);
		if (!block)
			return NULL;
		arena->current = block;
	}
	memory = block->data + block->used;
	block->used += size;
	arena->used += size;
	ASAN_UNPOISON_MEMORY_REGION(memory, wanted);
	return memory;
}

void *outbox_arena_alloc(struct outbox_arena *arena, size_t size)
{
	void *memory = take_memory(arena, size);

	if (memory)
		memset(memory, 0, size);
	return memory;
}

void *outbox_arena_copy(struct outbox_arena *arena, const void *data, size_t size)
{
	char *copy;

	if (!data || size == SIZE_MAX)
		return NULL;
	copy = take_memory(arena, size + 1);
	if (!copy)
		return NULL;
	memcpy(copy, data, size);
	copy[size] = '\0';
	return copy;
}

char *outbox_arena_text(struct outbox_arena *arena, const char *text)
{
	return text ? outbox_arena_copy(arena, text, strlen(text)) : NULL;
}
