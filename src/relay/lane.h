/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_LANE_H
#define RELAY_LANE_H

/* The steps of one lane. Each makes at most one call of the store or one publish(). */

#include "relay/worker.h"

int lane_new(int number, const struct worker *worker, struct lane **ret_lane,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;
struct lane *lane_free(struct lane *lane);

struct batch *lane_batch(struct lane *lane);

void lane_step(struct worker *worker, struct lane *lane, outbox_time now);

/* Publish the next round of what is in flight, or find that there is none left. */
void lane_send(struct worker *worker, struct lane *lane, outbox_time now);

/* Nothing more of the batch in flight is sent; what is known of it is settled next. */
void lane_stop_sending(struct lane *lane);

/* The lease is gone: stop sending, settle what is known, and forget the lane. */
void lane_lose(struct lane *lane);

#endif
