/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_PLACE_TEST_H
#define STORE_SQLITE_PLACE_TEST_H

/* A database in a folder of its own, with a clock that stands still, for this driver's tests. */

#include "base/random.h"
#include "frozen_clock.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ops.h"

#define TEST_START ((outbox_time)1700000000 * OUTBOX_SECONDS)

struct place {
	char folder[64], file[96], url[128];
	struct frozen_clock clock;
	struct random_state random;
	struct outbox_store *store; /* open, without a schema at first */
	struct outbox_arena *arena;
	struct outbox_error err;
	int64_t token; /* the last one used */
};

/* cmocka's setup and teardown; *state is the place. place_setup_ready has a schema and a target. */
int place_setup(void **state);
int place_setup_ready(void **state);
int place_teardown(void **state);

/* Another connection of the store's kind, and a plain one. The caller closes them. */
struct outbox_store *place_open(struct place *p, const char *options);
sqlite3 *place_connect(const struct place *p);

/* Run SQL on a connection of its own; the result code. */
int place_sql(const struct place *p, const char *sql);
/* The first column of the first row as a number, -1 without a row. */
int64_t place_number(const struct place *p, const char *sql);

/* Publish one message; its seq. NULL key and id are legal. */
int64_t place_publish(struct place *p, const char *type, const char *key, const char *id);
void place_target(struct place *p, const char *name, bool hold);

/* Take lane 0 of a target. */
struct outbox_head place_take(struct place *p, const char *target);

/*
 * Settle the claim of `claim` (count 0: nothing), all of it with this outcome, and claim up to max.
 * The claim's n and token are those of the head before.
 */
int place_advance(struct place *p, const char *target, struct outbox_claim *claim, int outcome,
		  size_t max);
/* Take, then deliver everything there is. How many. */
size_t place_drain(struct place *p, const char *target);

#endif
