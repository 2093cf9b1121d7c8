/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_INSERT_H
#define STORE_SQLITE_INSERT_H

/*
 * The one INSERT into the log, for the store's append() and for the client library. It works on any
 * connection, keeps nothing there and takes part in whatever transaction is open.
 */

#include <outbox/message.h>

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct sqlite_insert {
	sqlite3 *db;
	sqlite3_stmt *insert;
	sqlite3_stmt *find; /* for repeats: prepared at the first of them */
};

struct sqlite_inserted {
	int64_t seq;
	bool repeated; /* the id was in the log already: nothing was written */
};

/* Prepare. ESCHEMA when db has no outbox, or one that does not take this INSERT. */
int sqlite_insert_init(struct sqlite_insert *insert, sqlite3 *db,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
void sqlite_insert_deinit(struct sqlite_insert *insert);

/*
 * Insert one validated message. id is the message's own or a new one, never NULL; now becomes
 * created_at, and event_time where the message has none.
 */
int sqlite_insert_message(struct sqlite_insert *insert, const struct outbox_message *message,
			  const char *id, outbox_time now, struct sqlite_inserted *ret_inserted,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
