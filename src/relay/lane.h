/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_LANE_H
#define RELAY_LANE_H

/* One lane: take it over, then read, send and settle, batch after batch. */

#include "relay/batch.h"
#include "relay/link.h"

enum lane_phase {
	LANE_TAKE = 1, /* leased, not yet taken: somebody may have messages in flight there */
	LANE_LOOK,     /* nothing in flight, nothing to claim: look again at its time */
	LANE_CLAIM,    /* settle what was in flight, claim the next batch */
	LANE_SEND,     /* a batch is in flight: publish its rounds */
	LANE_RELEASE   /* settled and not wanted any more: give it back */
};

struct lane {
	int number;
	enum lane_phase phase;
	bool leaving;   /* finish what is in flight, settle it, then release */
	bool lost;      /* the lease is gone: the fence decides whether settling still counts */
	bool ran_dry;   /* a read found nothing that is due */
	bool throttled; /* the last read was not made: the rate is used up until run_at */
	unsigned read_wakeup; /* number of the last wake-up when the last read began */
	/* read_wakeup of a read that found nothing; 0: it found something, or had no permit to look */
	unsigned dry;
	struct outbox_head head;
	int64_t next_fence; /* of the receipt being appended; the same again until it is known */
	int64_t died_seq;   /* the message that was alone in flight when a relay died */
	int slow_failures;  /* calls in a row whose answer did not come in time */
	size_t limit;       /* the next claim's size: halved by UNKNOWN, doubled by success ... */
	size_t most;        /* ... up to this: the batch, or what came through a slow wire */
	bool alone; /* the last call failed for several lanes: this one makes its next call by itself */
	outbox_time run_at;
	outbox_time found_at;   /* mono: when a claim found something last, or the lane was taken */
	outbox_time read_at;    /* mono: when the claim in flight was read */
	outbox_time permits_at; /* mono: when to ask for permits again */
	struct trip trip;       /* times of the batch in flight */
	struct outbox_error refusal; /* why the store refuses this lane and no other; status 0: it does not */
	outbox_time refusal_delay;
	struct batch batches[2]; /* settling one and reading into the other is one call */
	int current;
	struct suspicions suspicions;
};

/* The lanes of a worker, by number. */
struct lanes {
	struct lane *list[OUTBOX_LANES_MAX];
	size_t count;
};

int lane_new(int number, const struct link *link, struct lane **ret_lane,
	     struct outbox_error *err) OUTBOX_MUSTCHECK;
void lane_free(struct lane *lane);

static inline struct batch *lane_batch(struct lane *lane)
{
	return &lane->batches[lane->current];
}

/* The one that the next claim is read into. */
static inline struct batch *lane_next_batch(struct lane *lane)
{
	return &lane->batches[!lane->current];
}

/*
 * One call of the store: whatever its phase asks for but sending, for which send.h is. Other lanes join in where they
 * look, or settle and claim.
 */
void lane_step(struct link *link, const struct lanes *lanes, struct lane *lane, outbox_time now);

/* Nothing more of the batch in flight is sent; what is known of it is settled next. */
void lane_stop_sending(struct lane *lane);

/* The lease is gone: stop sending, settle what is known, and forget the lane. */
void lane_lose(struct lane *lane);

#endif
