/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_DEAD_H
#define MEMORY_STORE_DEAD_H

/* Dead letters: see dead.c; and some ops: redact.c, keys.c, purge.c. */

#include <outbox/store.h>

struct memory_db;
struct memory_detour;
struct memory_message;
struct memory_store;
struct memory_target;

/* Where it failed before, and what came of it. */
struct memory_dead {
	char *target, *reason;
	int attempts;
	outbox_time at;
};

int memory_dead_check(const struct memory_db *db, const struct outbox_target_def *def,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;
/* ECONFLICT when it is the dead letter of another target. */
int memory_dead_of(const struct memory_db *db, const char *name,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;
/* It has just failed there: on to that target's dead letter, if it has one. */
void memory_dead_send(struct memory_db *db, const struct memory_target *from,
		      const struct memory_detour *failed, outbox_time now);
/* No longer in flight: what arrived meanwhile becomes pending, unless it failed here, too. */
void memory_dead_arrive(struct memory_db *db, struct memory_target *target,
			struct memory_message *row, bool failed, outbox_time now);
void memory_dead_free(struct memory_dead *dead);

int memory_redact(struct memory_store *s, const struct outbox_redact *redact, bool *ret_done,
		  struct outbox_error *err);
int memory_purgeable(struct memory_store *s, const struct outbox_purge *purge, int64_t after_seq,
		     struct outbox_arena *arena, struct outbox_claimed **ret_messages,
		     size_t *ret_count, struct outbox_error *err);
int memory_find_key(struct memory_store *s, const struct outbox_key_search *search,
		    struct outbox_arena *arena, struct outbox_key_found *ret_found,
		    struct outbox_error *err);
int memory_keys(struct memory_store *s, const struct outbox_keys_filter *filter,
		struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		struct outbox_error *err);

#endif
