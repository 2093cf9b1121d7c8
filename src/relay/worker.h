/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_WORKER_H
#define RELAY_WORKER_H

/*
 * A worker serves one target over a link of its own. It holds lanes by lease and takes each through the same
 * straight line: read -> publish -> decide -> settle.
 *
 * worker_step() does one step (one call of the store or of the transport) and returns. It never sleeps,
 * starts nothing and knows no clock but the one handed in: a thread, a test or a simulator drives it.
 */

#include "relay/lane.h"
#include "relay/lease.h"
#include "relay/link.h"
#include "relay/retention.h"

struct worker {
	struct link link;
	struct lanes lanes;
	size_t turn; /* the lane that comes next */
	struct lease lease;
	struct retention retention;
	struct outbox_error gave_up; /* why it left before everything due was delivered */
	_Atomic bool left;
	_Atomic unsigned dry; /* the wake-up after which all lanes were dry; 0: there is work */
	_Atomic int shown_breaker, shown_lanes,
		shown_refused; /* what others see of it, as of the last step */
};

/* Opens the transport (no I/O); the store is opened by the first step. plan and tally outlive the worker. */
int worker_new(const struct relay_plan *plan, size_t target, int index, struct tally *tally,
	       struct worker **ret_worker, struct outbox_error *err) OUTBOX_MUSTCHECK;
struct worker *worker_free(struct worker *worker);

/* One step. Returns the mono time at which it wants to be stepped again: now when it is busy. */
outbox_time worker_step(struct worker *worker);

/* Stop reading, finish until the mono time, settle, release. Safe from any thread. */
void worker_drain(struct worker *worker, outbox_time until);

/* Lanes with a claim that is not settled. */
size_t worker_unsettled(const struct worker *worker);

/* It has released its lanes, or cannot, and wants no more steps. */
bool worker_is_gone(const struct worker *worker);

/* It has left and nobody steps it: make it as it was at the beginning, for another run. */
void worker_again(struct worker *worker);

#endif
