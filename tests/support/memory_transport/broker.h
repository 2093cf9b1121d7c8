/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_TRANSPORT_BROKER_H
#define MEMORY_TRANSPORT_BROKER_H

/* Between the broker and its transports; tests use memory.h only. */

#include "memory_transport/memory.h"

/* What the broker does with one message. reason lives as long as the rules do. */
struct memory_answer {
	enum memory_fate fate;
	int status; /* of publish() on a drop */
	const char *reason;
	outbox_time wait;
};

/* The plan of one publish() call, fixed at its start. */
struct memory_call {
	uint64_t number;
	size_t lost_at; /* the connection is lost at this item; SIZE_MAX: not */
	bool acks_lost;
};

/* OK with a new connection's number, or the outage's status. */
int broker_connect(struct memory_broker *broker, uint64_t *ret_connection,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/* OK with the plan, or why this connection is no more. */
int broker_begin(struct memory_broker *broker, uint64_t connection, const struct outbox_batch *batch,
		 struct memory_call *ret_call, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* What becomes of the next message; MEMORY_DROP when the connection broke meanwhile. */
struct memory_answer broker_answer(struct memory_broker *broker, uint64_t connection,
				   const struct outbox_item *item);

/* Keep the message. origin says by which connection and call it came and whether it is confirmed. */
int broker_keep(struct memory_broker *broker, const struct outbox_item *item,
		const struct outbox_encoded *encoded, const struct memory_record *origin,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
