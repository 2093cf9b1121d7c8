/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_PLACE_TEST_H
#define STORE_POSTGRES_PLACE_TEST_H

/* A schema of its own in the database of OUTBOX_TEST_POSTGRES, with a clock that stands still. */

#include "base/random.h"
#include "frozen_clock.h"
#include "store/postgres/db.h"
#include "store/postgres/ops.h"

#define TEST_START ((outbox_time)1700000000 * OUTBOX_SECONDS)

struct place {
	PGconn *db; /* a plain connection, search_path set */
	char schema[64], url[512];
	struct frozen_clock clock;
	struct random_state random;
	struct outbox_store *store;
	struct outbox_arena *arena;
	struct outbox_error err;
	int64_t token;
};

/* cmocka's setup and teardown; *state is the place, with a schema, one lane, and a target "events". */
int place_setup(void **state);
int place_setup_partitioned(void **state); /* of ten messages each */
int place_teardown(void **state);

PGconn *place_connect(const struct place *p);
struct outbox_store *place_open(struct place *p, const char *url);
/* printf; fails the test when the server does. */
void place_sql(struct place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t place_number(struct place *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

void place_target(struct place *p, const char *name);
/* One that gets this type alone. */
void place_target_of(struct place *p, const char *name, const char *type);
void place_publish(struct place *p, int n);                       /* without a key */
void place_publish_now(struct place *p, const char *type, int n); /* by the clock that stands still */
/* Take lane 0, settle everything there is with this outcome; how many, and their seqs if wanted. */
size_t place_settle(struct place *p, const char *target, int outcome, int64_t *ret_seqs, size_t max);
size_t place_drain(struct place *p, const char *target);
/* All that is older than age, in as many calls as it takes. */
struct outbox_purged place_purge(struct place *p, outbox_time age);

#endif
