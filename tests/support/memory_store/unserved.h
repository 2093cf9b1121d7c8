/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_UNSERVED_H
#define MEMORY_STORE_UNSERVED_H

/* What relays say of targets that they do not serve. */

#include "memory_store/db.h"

/* The target need not be registered. Kept by target, since, owner. */
struct memory_unserved {
	char *target, *owner, *why;
	outbox_time alive_until, since;
};

/* NULL: any. */
void memory_unserved_forget(struct memory_db *db, const char *target, const char *owner);
int memory_unserved(struct memory_store *s, const struct outbox_unserved *note,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
int memory_wants_start(const struct memory_store *s, const char *target, bool *ret_wants);
/* ECONFLICT while a target that is not registered waits for its start. */
int memory_unstarted(struct memory_store *s, struct outbox_error *err) OUTBOX_MUSTCHECK;
int memory_stats_unserved(const struct memory_db *db, struct outbox_stats *stats,
			  struct outbox_arena *arena, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
