/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_POSTGRES_PLACE_TEST_H
#define CLIENT_POSTGRES_PLACE_TEST_H

/* An outbox in a schema of its own, in the database that OUTBOX_TEST_POSTGRES names. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <outbox/postgres.h>

struct place {
	PGconn *conn, *other; /* both find the schema */
	char schema[32];
	struct outbox_error err;
};

/* cmocka's setup and teardown; *state is the place. */
int place_setup(void **state);
int place_teardown(void **state);

PGconn *place_connect(const struct place *p);
void place_run(PGconn *conn, const char *sql);
/* The first column of the first row. */
int64_t place_number(PGconn *conn, const char *sql);
int64_t place_messages(struct place *p); /* committed */

/* Wait until somebody waits for a lock. */
void place_wait_for_waiter(PGconn *conn);

struct outbox_message place_message(const char *id);

#endif
