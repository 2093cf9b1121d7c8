/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker sends every allocation of our code here (--wrap). Blocks are counted, so that a leak is
 * told with the point that caused it, also in builds without a sanitizer.
 */

#include "fault.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long live;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t size);
void __wrap_free(void *block);
int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

long memory_live(void)
{
	return live;
}

void *memory_keep(void *old, size_t size)
{
	return __real_realloc(old, size);
}

void memory_drop(void *block)
{
	__real_free(block);
}

static bool refused(void)
{
	if (!fault_memory())
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *block)
{
	live += block != NULL;
	return block;
}

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : counted(__real_calloc(n, size));
}

/* A new block counts; a grown one is the same. */
static void *grown(const void *old, void *block)
{
	live += block && !old;
	return block;
}

void *__wrap_realloc(void *old, size_t size)
{
	return refused() ? NULL : grown(old, __real_realloc(old, size));
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
	return refused() ? NULL : grown(old, __real_reallocarray(old, n, size));
}

char *__wrap_strdup(const char *text)
{
	return refused() ? NULL : counted(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t size)
{
	return refused() ? NULL : counted(__real_strndup(text, size));
}

static int print(char **ret, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static int print(char **ret, const char *format, va_list args)
{
	int n = refused() ? -1 : vasprintf(ret, format, args);

	live += n >= 0;
	return n;
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = print(ret, format, args);
	va_end(args);
	return n;
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
	va_list args;
	int n;

	(void)flag;
	va_start(args, format);
	n = print(ret, format, args);
	va_end(args);
	return n;
}

void __wrap_free(void *block)
{
	live -= block != NULL;
	__real_free(block);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Jansson is a shared library: the linker cannot reach into it, but it takes an allocator. */
void memory_install_jansson(void)
{
	json_set_alloc_funcs(__wrap_malloc, __wrap_free);
}
