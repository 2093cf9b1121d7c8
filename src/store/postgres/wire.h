/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_WIRE_H
#define STORE_POSTGRES_WIRE_H

/* Waiting for the server, never past a deadline: a connection that went silent is broken. */

#include "store/postgres/db.h"

/* When a call that begins now must be over. */
outbox_time pg_deadline(const struct pg_store *s);
/* Everything that was asked is on its way. */
int pg_flush(struct pg_store *s, outbox_time deadline, struct outbox_error *err) OUTBOX_MUSTCHECK;
/* The next result; NULL between two statements of a pipeline. */
int pg_next_result(struct pg_store *s, outbox_time deadline, PGresult **ret_result,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
