/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_CHANNEL_H
#define TESTS_SIM_CHANNEL_H

/*
 * The broker's end of a channel with publisher confirms. It numbers what it receives and answers by number: in
 * any order, several at once, a return before its acknowledgement, or after the sender's deadline. What it said
 * of a message is written down here, and the relay's settlements are held against that; the driver's
 * end is src/transport/confirms.c, and neither knows the other's books.
 */

#include "sim.h"

#include "transport/confirms.h"

#define CHANNEL_MAX 64

struct channel_message {
	int64_t seq;
	uint64_t tag;
	enum { ACKS, NACKS, RETURNS, NEVER } fate; /* what the broker will say */
	bool stored;                               /* it made a new copy */
	bool returned;                             /* and its acknowledgement comes later */
	bool late;                                 /* its sender no longer waits */
};

enum answer_kind { ANSWER_ACK, ANSWER_NACK, ANSWER_RETURN };

struct channel_answer {
	enum answer_kind kind;
	uint64_t tag;
	bool multiple;
	int64_t seq; /* of a return: it carries the message, not its tag */
};

struct channel {
	uint64_t received;
	struct channel_message waiting[CHANNEL_MAX]; /* not answered yet, by tag */
	size_t n_waiting;
	int refusing; /* so many more messages: the queue is full */
	struct channel_answer last;
};

/* A driver's connection to a simulated broker. */
struct sim_transport {
	struct outbox_transport base;
	struct sim *sim;
	int target;
	int epoch; /* of the broker it is connected to */
	struct confirms confirms;
	struct channel channel;
};

/* The broker gets a message and decides what becomes of it. */
void channel_receive(struct sim_transport *transport, const struct outbox_item *item);
/* Its next answer. False: it has nothing to say, ever. */
bool channel_next(struct sim_transport *transport, struct channel_answer *ret_answer);
/* The sender waits no longer. */
void channel_give_up(struct sim_transport *transport);

/* publish() to a broker with confirms. */
int confirm_publish(struct sim_transport *transport, struct outbox_batch *batch,
		    outbox_time deadline, struct outbox_error *err);

/* The broker keeps a message, unless it knows that it has it already: false. */
bool brokers_keep(struct sim *sim, int target, const struct outbox_item *item);
/* The sender is told that the broker has it. */
void brokers_confirm(struct sim *sim, int target, int64_t seq);
/* What the broker said of a message, for the checks. */
void brokers_said(struct sim *sim, int target, int64_t seq, int verdict);

#endif
