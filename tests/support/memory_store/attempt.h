/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_ATTEMPT_H
#define MEMORY_STORE_ATTEMPT_H

/* The history of failed attempts: see attempt.c. */

#include <outbox/store.h>

struct memory_detour;
struct memory_store;

void memory_attempt_add(struct memory_detour *detour, const struct outbox_settlement *settlement,
			outbox_time now);
void memory_attempts_redact(struct memory_detour *detour);
void memory_attempts_free(struct memory_detour *detour);
int memory_attempts(struct memory_store *s, const char *id, struct outbox_arena *arena,
		    struct outbox_attempt **ret_rows, size_t *ret_count, struct outbox_error *err);

#endif
