/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRANSPORT_CONFIRMS_H
#define TRANSPORT_CONFIRMS_H

#include <outbox/transport.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Publisher confirms: from delivery tags to verdicts. For drivers whose broker numbers what it receives on a
 * channel (1, 2, 3 ...) and answers by number, in any order, one by one or "everything up to this one". No I/O.
 *
 *	confirms_reset()                           a channel was opened
 *	confirms_begin(batch)                      publish() starts
 *	confirms_send(i) ...                       just before message i is written
 *	confirms_ack(), _nack(), _return() ...     as the broker's answers are read, while c->open > 0
 *	confirms_finish()                          all answered, deadline, or connection gone
 */

struct confirm {
	size_t item; /* in the batch: what the driver refused itself has no tag */
	enum { CONFIRM_OPEN, CONFIRM_RETURNED, CONFIRM_ANSWERED } state;
};

struct confirms {
	struct outbox_batch *batch; /* NULL: between finish and begin */
	struct confirm *window;     /* the batch's messages that were sent, by tag - first */
	size_t capacity;
	size_t sent;    /* entries in the window */
	size_t low;     /* all entries below are answered */
	size_t open;    /* entries that are not: read on */
	uint64_t first; /* the tag of the window's first entry */
	bool unclean;   /* something of an earlier batch was never answered on this channel */
};

#define CONFIRMS_INIT      \
	{                  \
		.first = 1 \
	}

void confirms_deinit(struct confirms *confirms);

/* A new channel: its first message has tag 1. */
void confirms_reset(struct confirms *confirms);

/* A new batch on the channel. ENOMEM: nothing was changed and nothing may be sent. */
int confirms_begin(struct confirms *confirms, struct outbox_batch *batch,
		   struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Message i is written next; returns its tag. Call it before the write: a message that was half written
 * counts as sent. Each message once.
 */
uint64_t confirms_send(struct confirms *confirms, size_t i);

/*
 * The broker confirmed, or refused, one message or everything up to it. `multiple` with tag 0 means all that
 * was sent. Answers to earlier batches and repeated ones change nothing. EPROTO: a tag that was never sent;
 * nothing was changed, drop the connection.
 */
int confirms_ack(struct confirms *confirms, uint64_t tag, bool multiple,
		 struct outbox_error *err) OUTBOX_MUSTCHECK;
int confirms_nack(struct confirms *confirms, uint64_t tag, bool multiple,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * The broker returned a message that it can route nowhere. It is refused at once; the acknowledgement that
 * follows does not change that, and is waited for. EPROTO as above.
 */
int confirms_return(struct confirms *confirms, uint64_t tag, int native, const char *text,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * A return carries no tag. A driver that puts its tag in a header of the message knows it; others look for the
 * message's id here. EPROTO: no such message is waiting, or the channel is unclean, where the return of an
 * earlier copy would look the same: drop the connection. Such a driver opens a new channel when c->unclean.
 */
int confirms_find(const struct confirms *confirms, const char *id, uint64_t *ret_tag,
		  struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * No more answers for this batch. What was sent and not answered is UNKNOWN, what was returned stays refused,
 * what was never sent keeps its verdict. Returns how many are UNKNOWN. Legal without a batch.
 */
size_t confirms_finish(struct confirms *confirms);

#endif
