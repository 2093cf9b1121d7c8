/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_POSTGRES_H
#define OUTBOX_POSTGRES_H

/* Publish in the PostgreSQL transaction that you own. The schema comes from `outbox init`. */

#include <outbox/error.h>
#include <outbox/events.h>
#include <outbox/message.h>
#include <outbox/published.h>
#include <outbox/publisher.h>

#include <libpq-fe.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Take a lock on each message's key until your transaction ends, so that transactions which publish to
 * one key follow each other. For applications that do not lock the aggregate themselves.
 */
#define OUTBOX_LOCK_KEYS 2u

/*
 * Keep the publisher's statement prepared in the session. Not behind a pooler that gives each transaction another session,
 * such as PgBouncer with pool_mode = transaction.
 */
#define OUTBOX_PREPARE 4u

/*
 * Send messages without waiting for the server's answers (libpq's pipeline mode). ret_published has the ids alone then.
 * Your own statements can go on, and the transaction can be committed, after outbox_publisher_flush(): until then libpq
 * refuses them. A message that the server refuses is told there, and has ended the transaction.
 */
#define OUTBOX_PIPELINE 8u

/*
 * Append one message inside the transaction open on conn, one round trip, in blocking mode. The outbox is
 * found by the connection's search_path. Returns OUTBOX_OK also for an id that was published before.
 * EINVAL when no transaction is open. After an error of the server the transaction is aborted, as after
 * any failed statement: roll it back.
 */
int outbox_publish_pg(PGconn *conn, const struct outbox_message *message,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * All or none of n messages, in order, one round trip. flags: OUTBOX_ALLOW_AUTOCOMMIT,
 * OUTBOX_LOCK_KEYS. ret_published may be NULL, else n entries. The error names the index of the message
 * at fault.
 */
int outbox_publish_pg_batch(PGconn *conn, const struct outbox_message *messages, size_t n,
			    unsigned flags, struct outbox_published *ret_published,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A publisher on conn. flags: those of outbox_publish_pg_batch(), OUTBOX_PREPARE, OUTBOX_PIPELINE. With OUTBOX_PREPARE the
 * outbox is looked for now: the search_path must be set. The statement is prepared again after PQreset(). Whatever
 * deallocates it (DISCARD ALL) fails the next call, and the one after that goes well. The publisher belongs to the thread
 * that uses conn, as conn does, and may be freed after PQfinish(conn); freed inside a transaction it leaves its statement
 * in the session.
 */
int outbox_publisher_new_pg(struct outbox_publisher **ret_publisher, PGconn *conn, unsigned flags,
			    struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Collect events on conn (outbox/events.h); config may be NULL. A COMMIT that forgets events goes through: the next call of
 * outbox_events_begin() or outbox_events_free() tells. Take marks around savepoints. After ROLLBACK AND CHAIN call
 * outbox_events_drop(): the server does not tell it from ROLLBACK TO.
 */
int outbox_events_new_pg(struct outbox_events **ret_events, PGconn *conn,
			 const struct outbox_events_config *config,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Cancel a scheduled message (its due_at lies ahead) in your transaction: it is not sent to any target. It is done when the
 * transaction commits, and a rollback brings the message back. ENOTFOUND, ECONFLICT: it is not scheduled, is due, being
 * sent, or was sent; your transaction has failed then. If it becomes due, or is being read, between this call and your
 * COMMIT, that COMMIT fails. Autocommit is refused, and so is a transaction that is not READ COMMITTED. reason: for
 * people; may be NULL. ret_done (may be NULL): false, it was cancelled before.
 */
int outbox_cancel_pg(PGconn *conn, const char *id, const char *reason, bool *ret_done,
		     struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The inbox, for consumers: in the transaction that does the work of a message, before the work. ret_first: true, nobody
 * has accepted this id for this consumer yet; false, it is a repeat: leave the work out and acknowledge the message. While
 * another transaction accepts the same id it waits for the end of that one: false if it commits, true if it rolls back. A
 * rollback takes it back. consumer, id: text of 1 to 255 characters. Autocommit is refused. ESCHEMA: there is no inbox in
 * the search_path (outbox init --inbox). The database need not have an outbox. EBUSY: roll back and repeat the work, as
 * after any serialization failure.
 */
int outbox_inbox_accept_pg(PGconn *conn, const char *consumer, const char *id, bool *ret_first,
			   struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
