/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_TARGET_START_H
#define STORE_SQLITE_TARGET_START_H

/* Where a new target begins, and its dead letter. */

#include "store/sqlite/db.h"

/* What was found of OUTBOX_START_TIME before the write transaction. */
struct start {
	int64_t first;  /* the first message of that time; 0: none so far */
	int64_t looked; /* up to here */
};

/* In a read transaction of its own. ECONFIG for a time that lies ahead. */
int start_look(struct sqlite_store *s, const struct outbox_target_def *def, struct start *ret_start,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;
/* In the write transaction: messages up to ret_seq are not for the new target. */
int start_of(struct sqlite_store *s, const struct outbox_target_def *def, struct start *start,
	     int64_t *ret_seq, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* ECONFIG for one that is not registered or that leads back. */
int dead_letter_put(struct sqlite_store *s, const struct outbox_target_def *def,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;
/* ECONFLICT when it is the dead letter of another target. */
int dead_letter_free(struct sqlite_store *s, const char *target,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
