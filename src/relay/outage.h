/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_OUTAGE_H
#define RELAY_OUTAGE_H

/* What a worker does when the store or the broker does not answer: wait, say so once, try again. */

#include "relay/worker.h"

/* Busy and full databases keep their connection; after every other failure it is opened anew. */
bool outage_keeps_connection(int status);

/* A store call failed: back off; closes the store when the connection is gone. call is a literal. */
void outage_store(struct worker *worker, const char *call, const struct outbox_error *err,
		  outbox_time now);
/* A store call succeeded. Only the call that failed ends its outage: a full disk still reads. */
void outage_store_over(struct worker *worker, const char *call, outbox_time now);

/*
 * The same for a call on behalf of a lane. What the store refuses to this lane alone, because its
 * position and the log do not belong together, makes this lane wait, and no other.
 */
void outage_lane(struct worker *worker, struct lane *lane, const char *call,
		 const struct outbox_error *err, outbox_time now);
void outage_lane_over(struct worker *worker, struct lane *lane, const char *call, outbox_time now);

/* The broker is out: open the breaker, drop the connection. asked: it said how long, or 0. */
void outage_broker(struct worker *worker, const struct outbox_error *err, outbox_time asked,
		   outbox_time now);
/* The broker acknowledged something. */
void outage_broker_over(struct worker *worker, outbox_time now);

#endif
