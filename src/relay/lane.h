/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_LANE_H
#define RELAY_LANE_H

/* The steps of one lane. Each makes at most one call of the store or one publish(). */

#include "relay/worker.h"

int lane_new(int number, const struct worker *worker, struct lane **ret_lane,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;
struct lane *lane_free(struct lane *lane);

struct flight *lane_flight(struct lane *lane);

void lane_step(struct worker *worker, struct lane *lane, outbox_time now);

/* Publish the next round of what is in flight, or find that there is none left. */
void lane_send(struct worker *worker, struct lane *lane, outbox_time now);

/* How many of the messages that are wanted the target's rate allows to claim now. */
size_t lane_take_tokens(struct worker *worker, struct lane *lane, size_t want, outbox_time now);
/* What came of it: the claim, empty when there is none. */
void lane_use_tokens(struct worker *worker, const struct outbox_claim *claim, size_t taken,
		     outbox_time now);

/* Nothing more of the batch in flight is sent; what is known of it is settled next. */
void lane_stop_sending(struct lane *lane);

/* The lease is gone: stop sending, settle what is known, and forget the lane. */
void lane_lose(struct lane *lane);

#endif
