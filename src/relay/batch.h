/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_BATCH_H
#define RELAY_BATCH_H

/*
 * A claim in flight: which of its messages go on the wire next, and how each of them ended.
 *
 * Order is kept in rounds. A round holds at most one message of each key; the next one of a key becomes
 * ready when the one before it is finished. When one is not (it waits, it was returned), the rest of
 * its key in this claim is parked or returned with it, so nothing overtakes. Which of these happens is decide's to
 * say; here it is done.
 */

#include "core/decide.h"

#include <outbox/arena.h>
#include <outbox/store.h>
#include <outbox/transport.h>

struct batch {
	struct outbox_arena *arena; /* owns everything below; reset with the next claim */
	struct outbox_claim claim;
	enum wire_order order;
	struct outbox_item *items;
	struct outbox_settlement *outcomes; /* outcome 0: not decided yet */
	int32_t *next;                      /* the next message of the same key, or -1 */
	int *held;       /* WIRE_TOGETHER: what the one before it in its key left behind */
	uint32_t *ready; /* queue of messages whose turn has come */
	size_t ready_head, ready_tail;
	uint32_t *in_round;        /* for each message of the round: which of the items it is */
	struct outbox_batch round; /* on the wire */
	bool shared;               /* with the rounds of other lanes */
	size_t undecided;
	int64_t died_seq; /* as batch_next_round() was told */
};

struct batch_outcomes {
	size_t delivered, failed, waiting, parked, deferred, returned;
};

/* What publish() said of a round. */
struct batch_verdicts {
	size_t acked;
	size_t duplicates; /* of these: the broker had them already */
	size_t unknown;    /* the outcome is not known */
};

int batch_init(struct batch *batch, size_t max_bytes, struct outbox_error *err) OUTBOX_MUSTCHECK;
void batch_deinit(struct batch *batch);

/* Forget the last claim and its memory. */
void batch_reset(struct batch *batch);

/* batch->claim was filled by the store: make ready. ENOMEM. */
int batch_begin(struct batch *batch, enum wire_order order,
		struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Put the next round together in batch->round. Messages that are not to be sent (parked, deferred,
 * expired ...) are decided on the way; died_seq is the message that was alone in flight when a relay
 * died, or 0. Returns the number of messages to publish: 0 when every message is decided.
 */
size_t batch_next_round(struct batch *batch, const struct decide_context *context, int64_t died_seq);

/* Decide the round after publish() returned status. others_acked as in decide.h. */
struct batch_verdicts batch_judge(struct batch *batch, const struct decide_context *context,
				  int status, bool others_acked);

/* Everything undecided goes back as if never claimed. */
void batch_return_rest(struct batch *batch);

struct batch_outcomes batch_count(const struct batch *batch);

#endif
