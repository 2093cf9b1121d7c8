/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_SQLITE_H
#define OUTBOX_SQLITE_H

/* Publish in the SQLite transaction that you own. The schema comes from `outbox init`. */

#include <outbox/error.h>
#include <outbox/events.h>
#include <outbox/message.h>
#include <outbox/published.h>
#include <outbox/publisher.h>

#include <sqlite3.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Append one message inside the transaction open on db. Returns OUTBOX_OK also for an id that was
 * published before. The connection is not changed otherwise; a failure leaves the transaction as
 * it was before the call: roll it back or go on.
 */
int outbox_publish_sqlite(sqlite3 *db, const struct outbox_message *message,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * All or none of n messages, in order. flags: OUTBOX_ALLOW_AUTOCOMMIT. ret_published may be NULL,
 * else n entries. The error names the index of the message at fault.
 */
int outbox_publish_sqlite_batch(sqlite3 *db, const struct outbox_message *messages, size_t n,
				unsigned flags, struct outbox_published *ret_published,
				struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A publisher whose statement stays prepared on db: several times as fast as outbox_publish_sqlite(), message by message.
 * flags: OUTBOX_ALLOW_AUTOCOMMIT. Free it before the connection: sqlite3_close() refuses as long as it is there
 * (SQLITE_BUSY), and after sqlite3_close_v2() publishing is refused and outbox_publisher_free() ends the connection.
 * Threads that may share the connection (SQLite's serialized mode, the default) may share its publisher.
 */
int outbox_publisher_new_sqlite(struct outbox_publisher **ret_publisher, sqlite3 *db,
				unsigned flags, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Collect events on db (outbox/events.h); config may be NULL. outbox_events_begin() takes the write lock, as BEGIN IMMEDIATE
 * does. COMMIT fails with SQLITE_CONSTRAINT_COMMITHOOK, and rolls back, while there are events that are not written; commit
 * and rollback hooks stay yours. It belongs to the thread that uses db.
 */
int outbox_events_new_sqlite(struct outbox_events **ret_events, sqlite3 *db,
			     const struct outbox_events_config *config,
			     struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Cancel a scheduled message (its due_at lies ahead) in your transaction: it is not sent to any target. A rollback brings
 * it back. ENOTFOUND, ECONFLICT: it is not scheduled, is due, being sent, or was sent; nothing was changed. Autocommit is
 * refused. reason: for people; may be NULL. ret_done (may be NULL): false, it was cancelled before.
 */
int outbox_cancel_sqlite(sqlite3 *db, const char *id, const char *reason, bool *ret_done,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The inbox, for consumers: in the transaction that does the work of a message, before the work. ret_first: true, nobody
 * has accepted this id for this consumer yet; false, it is a repeat: leave the work out and acknowledge the message. A
 * rollback takes it back. consumer, id: text of 1 to 255 characters. Autocommit is refused. ESCHEMA: there is no inbox
 * here (outbox init --inbox). The database need not have an outbox.
 */
int outbox_inbox_accept_sqlite(sqlite3 *db, const char *consumer, const char *id, bool *ret_first,
			       struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
