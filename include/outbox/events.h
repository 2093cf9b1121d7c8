/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_EVENTS_H
#define OUTBOX_EVENTS_H

/*
 * A unit of work: events are collected while the work of a transaction goes on, and are written all at once just before
 * its commit. outbox_events_new_sqlite() (outbox/sqlite.h) and outbox_events_new_pg() (outbox/postgres.h) make an object
 * for a connection that you own; it serves one transaction after another and, like the transaction, one thread at a time.
 *
 *     BEGIN;  outbox_events_begin();  ... outbox_events_add() ...  outbox_events_flush();  COMMIT;
 *
 * A rollback drops what was collected. On SQLite the database tells the object of commits, rollbacks and savepoints: a
 * COMMIT while events are not written fails, and rolls back. On PostgreSQL, where a COMMIT cannot be held, it is told by
 * the next call.
 */

#include <outbox/error.h>
#include <outbox/message.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct outbox_events;

#define OUTBOX_EVENTS_MAX 10000
#define OUTBOX_EVENTS_BYTES_MAX ((size_t)64 << 20)

struct outbox_events_config {
	size_t struct_size;
	size_t max_messages; /* that are held at a time; 0: OUTBOX_EVENTS_MAX */
	size_t max_bytes;    /* of them; 0: OUTBOX_EVENTS_BYTES_MAX */
	unsigned flags;      /* of the publisher: OUTBOX_LOCK_KEYS, OUTBOX_PREPARE on PostgreSQL */
};

#define OUTBOX_EVENTS_CONFIG_INIT OUTBOX_SIZED(struct outbox_events_config)

/*
 * The unit of the transaction that is open begins. context (may be NULL): events that have no correlation_id, causation_id
 * or traceparent of their own get that of the context; outbox_message_caused_by() fills one in from the message that is
 * being handled. Its texts are copied. ECONFLICT: the unit before has events that were neither written nor dropped; or it is
 * one of this transaction, and a savepoint may still undo events of it.
 */
int outbox_events_begin(struct outbox_events *events, const struct outbox_message *context,
			struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Collect one event, behind those that are there. It is checked and copied now, and happened now unless it has an
 * event_time. EFULL: the limit is reached, and nothing was changed; outbox_events_flush() makes room.
 */
int outbox_events_add(struct outbox_events *events, const struct outbox_message *event,
		      struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Hands over the events of an aggregate, in order, with outbox_events_add(). Returns a status. */
typedef int (*outbox_harvester)(struct outbox_events *events, void *aggregate,
				struct outbox_error *err);

/* Collect the events of one aggregate: all of them, or none if harvest() fails. */
int outbox_events_harvest(struct outbox_events *events, void *aggregate, outbox_harvester harvest,
			  struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What was collected and written at a moment. Only for outbox_events_rewind(), in the same unit. */
struct outbox_events_mark {
	uint64_t unit;
	size_t collected;
	size_t written;
};

/*
 * On PostgreSQL, for savepoints: take a mark right after SAVEPOINT, and rewind to it right after ROLLBACK TO. Events that
 * were collected since are dropped, and those that were collected before it and written since are unwritten again. SQLite
 * does this by itself, and there both calls are harmless. From the first mark on, events are held until the unit ends,
 * also when they are written.
 */
int outbox_events_mark(struct outbox_events *events, struct outbox_events_mark *ret_mark,
		       struct outbox_error *err) OUTBOX_MUSTCHECK;
int outbox_events_rewind(struct outbox_events *events, const struct outbox_events_mark *mark,
			 struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Write what is not written yet, in the order in which it was collected: all or none. It may be called again. */
int outbox_events_flush(struct outbox_events *events, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* How many events are not written yet. */
size_t outbox_events_unwritten(struct outbox_events *events);

/* End the unit; what is not written is forgotten. For after a rollback, which this makes sure of on PostgreSQL. */
void outbox_events_drop(struct outbox_events *events);

/*
 * ECONFLICT: there are events that are not written, of a transaction that is open or was committed. Nothing was freed then:
 * flush or drop them first. NULL is nothing. Free it before the connection, as a publisher.
 */
int outbox_events_free(struct outbox_events *events, struct outbox_error *err) OUTBOX_MUSTCHECK;

#ifdef __cplusplus
}
#endif

#endif
