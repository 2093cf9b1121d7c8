/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"
#include "fault.h"

#include <string.h>

#define STEP 16 /* of sizes that have a list of their own */
#define LISTS 513
#define CHUNK ((size_t)1 << 20)

/* In front of the memory. In a free block the memory begins with the next one's address. */
struct block {
	int size;       /* asked for */
	unsigned steps; /* that there are; 0: larger than any list has */
};

static struct block *lists[LISTS];
static char *chunk, *chunk_end;

static struct block *of(void *memory)
{
	return (struct block *)memory - 1;
}

/* Where a free block has the address of the next. */
static void *link_of(struct block *b)
{
	return b + 1;
}

static struct block *cut(unsigned steps)
{
	size_t size = sizeof(struct block) + (size_t)steps * STEP;
	char *block;

	if ((size_t)(chunk_end - chunk) < size) {
		chunk = memory_keep(NULL, CHUNK); /* never given back: the lists have it */
		chunk_end = chunk ? chunk + CHUNK : NULL;
	}
	if (!chunk)
		return NULL;
	block = chunk;
	chunk += size;
	return (struct block *)(void *)block;
}

static void *pool_malloc(int size)
{
	unsigned steps = ((unsigned)size + STEP - 1) / STEP;
	struct block *b;

	if (steps >= LISTS) {
		b = memory_keep(NULL, sizeof(*b) + (size_t)size);
		steps = 0;
	} else if (lists[steps]) {
		b = lists[steps];
		memcpy(&lists[steps], link_of(b), sizeof(lists[steps]));
	} else {
		b = cut(steps);
	}
	if (!b)
		return NULL;
	b->size = size;
	b->steps = steps;
	return b + 1;
}

static void pool_free(void *memory)
{
	struct block *b = of(memory);
	unsigned steps = b->steps;

	if (!steps) {
		memory_drop(b);
		return;
	}
	memset(memory, 0x5a, (size_t)steps * STEP < 64 ? (size_t)steps * STEP : 64);
	memcpy(link_of(b), &lists[steps], sizeof(lists[steps]));
	lists[steps] = b;
}

static int pool_size(void *memory)
{
	return memory ? of(memory)->size : 0;
}

static void *pool_realloc(void *old, int size)
{
	void *new;
	int had = pool_size(old);

	if (of(old)->steps * STEP >= (unsigned)size) {
		of(old)->size = size;
		return old;
	}
	new = pool_malloc(size);
	if (!new)
		return NULL;
	memcpy(new, old, (size_t)(had < size ? had : size));
	pool_free(old);
	return new;
}

static int pool_roundup(int size)
{
	return (size + 7) & ~7;
}

static int pool_init(void *context)
{
	(void)context;
	return SQLITE_OK;
}

static void pool_shutdown(void *context)
{
	(void)context;
}

const sqlite3_mem_methods pool_methods = {
	.xMalloc = pool_malloc,
	.xFree = pool_free,
	.xRealloc = pool_realloc,
	.xSize = pool_size,
	.xRoundup = pool_roundup,
	.xInit = pool_init,
	.xShutdown = pool_shutdown,
};

/* ---- mutexes ------------------------------------------------------------------------------- */

static int mutex_init(void)
{
	return SQLITE_OK;
}

static sqlite3_mutex *mutex_alloc(int kind)
{
	static long fixed[16];

	/* SQLite's own mutexes are static; those of connections are allocated, and that may fail. */
	if (kind != SQLITE_MUTEX_FAST && kind != SQLITE_MUTEX_RECURSIVE)
		return (sqlite3_mutex *)(void *)&fixed[kind & 15];
	return fault_memory() ? NULL : pool_malloc(48);
}

static void mutex_free(sqlite3_mutex *mutex)
{
	pool_free(mutex);
}

static void mutex_pass(sqlite3_mutex *mutex)
{
	(void)mutex;
}

static int mutex_try(sqlite3_mutex *mutex)
{
	(void)mutex;
	return SQLITE_OK;
}

static int mutex_held(sqlite3_mutex *mutex)
{
	(void)mutex;
	return 1;
}

const sqlite3_mutex_methods pool_mutexes = {
	.xMutexInit = mutex_init,
	.xMutexEnd = mutex_init,
	.xMutexAlloc = mutex_alloc,
	.xMutexFree = mutex_free,
	.xMutexEnter = mutex_pass,
	.xMutexTry = mutex_try,
	.xMutexLeave = mutex_pass,
	.xMutexHeld = mutex_held,
	.xMutexNotheld = mutex_held,
};
