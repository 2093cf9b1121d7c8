/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_POSTGRES_LOOK_H
#define STORE_POSTGRES_LOOK_H

/* Deliveries as list and tail read them. */

#include "store/postgres/db.h"

/* The columns of a row of type outbox_look, sql/postgres/look.sql. */
#define LOOK_COLUMNS                                                                         \
	"seq, id, target, type, key, lane, state, why, attempts, owner, last_error, reason," \
	" event_time, created_at, last_status_at, next_attempt_at"

/* Row `row`, whose seq is column `first`; its texts are copied to the arena. */
int pg_look_load(const PGresult *result, int row, int first, struct outbox_arena *arena,
		 struct outbox_delivery *ret_delivery, struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
