/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLIENT_EVENTS_H
#define CLIENT_EVENTS_H

/* Units of work on any database: what is collected, and how much of it is written. */

#include <outbox/arena.h>
#include <outbox/events.h>
#include <outbox/publisher.h>

#include <stdbool.h>

/* A unit that is over holds events whose transaction has ended without them. */
enum unit_state { UNIT_NONE, UNIT_OPEN, UNIT_OVER };

struct events_ops {
	/* Is a transaction open? EINVAL: no, or the connection was closed. */
	int (*check)(struct outbox_events *events, struct outbox_error *err);
	/* Hear what becomes of the transaction that is open. */
	int (*join)(struct outbox_events *events, struct outbox_error *err);
	/* Has it ended since? */
	void (*settle)(struct outbox_events *events);
	/* Must written events be held, because a rollback to a savepoint may undo them? */
	bool (*holds)(const struct outbox_events *events);
	bool savepoints; /* the database tells of rollbacks to them */
	void (*free)(struct outbox_events *events);
};

struct outbox_events {
	const struct events_ops *ops;
	struct outbox_publisher *publisher;
	size_t max_messages, max_bytes;
	struct outbox_arena *arena;      /* what the messages point to */
	struct outbox_message *messages; /* in the order of collection */
	size_t count, capacity, bytes;
	size_t written; /* of them, the first so many */
	struct outbox_message context;
	struct outbox_arena *context_arena;
	enum unit_state state;
	bool marked, harvesting;
	bool committed; /* of a unit that is over: without its events */
	uint64_t unit;  /* which one it is, from 1 on */
};

/* The database's part is the caller's, and ops->free() frees all. The publisher is taken for good. */
int events_init(struct outbox_events *events, const struct events_ops *ops,
		struct outbox_publisher *publisher, const struct outbox_events_config *config,
		struct outbox_error *err) OUTBOX_MUSTCHECK;
void events_deinit(struct outbox_events *events);

struct outbox_events_config events_config(const struct outbox_events_config *config);

static inline size_t events_unwritten(const struct outbox_events *events)
{
	return events->count - events->written;
}

/* As they were at an earlier moment of the unit. What they occupied is free when none is left. */
void events_rewind(struct outbox_events *events, size_t collected, size_t written);
/* The transaction has ended, and all is well. */
void events_end(struct outbox_events *events);
/* It has ended otherwise: what was not written is held until it is dropped, or the next unit begins. */
void events_over(struct outbox_events *events, bool committed);

#endif
