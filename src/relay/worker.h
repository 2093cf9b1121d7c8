/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_WORKER_H
#define RELAY_WORKER_H

/*
 * A worker serves one target with a store connection and a transport connection of its own. It holds
 * lanes by lease and takes each through the same straight line: read -> publish -> decide -> settle.
 *
 * worker_step() does one step (one call of the store or of the transport) and returns. It never sleeps,
 * starts nothing and knows no clock but the one handed in: a thread, a test or a simulator drives it.
 */

#include "base/random.h"
#include "relay/archiver.h"
#include "relay/batch.h"
#include "relay/breaker.h"
#include "relay/plan.h"
#include "relay/tally.h"
#include "relay/wakeup.h"

#include <stdatomic.h>

enum lane_phase {
	LANE_TAKE = 1, /* leased, not yet taken: somebody may have messages in flight there */
	LANE_READ,     /* settle what was in flight, claim the next batch */
	LANE_SEND,     /* a batch is in flight: publish its rounds */
	LANE_RELEASE   /* settled and not wanted any more: give it back */
};

/* Does a worker serve its target? */
enum unserved {
	UNSERVED_NOT = 0, /* it does */
	UNSERVED_FOR_NOW, /* somebody is in the way, who may be dead and go by himself */
	UNSERVED          /* until somebody repairs it */
};

struct lane {
	int number;
	enum lane_phase phase;
	bool leaving;   /* finish what is in flight, settle it, then release */
	bool lost;      /* the lease is gone: the fence decides whether settling still counts */
	bool ran_dry;   /* a read found nothing that is due */
	bool throttled; /* the last read was not made: the rate is used up until run_at */
	unsigned read_wakeup; /* wake-ups seen when the last read began */
	unsigned dry;         /* and after which wake-up that was; 0: it found something */
	struct outbox_head head;
	int64_t next_fence; /* of the receipt being appended; the same again until it is known */
	int64_t died_seq;   /* the message that was alone in flight when a relay died */
	int slow_failures;  /* calls in a row whose answer did not come in time */
	size_t limit;       /* the next claim's size: halved by UNKNOWN, doubled by success ... */
	size_t most;        /* ... up to this: the batch, or what came through a slow wire */
	outbox_time run_at, poll;
	outbox_time read_at;    /* mono: when the claim in flight was read */
	outbox_time permits_at; /* mono: when to ask for tokens again */
	struct trip trip;       /* what is known of it so far */
	struct outbox_error refusal; /* why the store refuses this lane and no other; status 0: it does not */
	outbox_time refusal_delay;
	struct batch batches[2]; /* settling one and reading into the other is one call */
	int current;
	struct suspicions suspicions;
};

/* Messages that were refused and not yet told of; rejection_log.c. */
struct rejection_log {
	size_t count;
	outbox_time next; /* mono: the next line may be written then */
	char id[80];      /* of the last one that failed, else of the last one */
	const char *kind;
	int native;
	bool failed;
	bool delivered; /* since */
};

struct worker {
	const struct relay_plan *plan;
	const struct target_plan *target;
	struct tally *tally;   /* the target's: all its workers count there */
	struct wakeup *wakeup; /* NULL: none */
	_Atomic unsigned dry;  /* the wake-up after which all lanes were dry; 0: there is work */
	char owner[256];
	struct random_state random;
	struct outbox_store *store;
	struct outbox_transport *transport;
	bool connected;
	struct breaker breaker;
	struct outbox_error outage;       /* why the breaker is open */
	uint64_t acked;                   /* acknowledgements seen by this worker */
	struct outbox_arena *wire_memory; /* of a call for several lanes */

	struct lane *lanes[OUTBOX_LANES_MAX];
	size_t n_lanes, turn;
	outbox_time lease_at;    /* mono: next round of lease keeping */
	outbox_time lease_until; /* mono: what we hold is surely ours until then */
	bool leased, stale_route;
	outbox_time open_since;       /* store time: nothing could be sent before */
	char place[OUTBOX_PLACE_MAX]; /* where it sends to; "": not known */
	struct outbox_error unserved; /* why it serves nothing; status 0: it does */
	outbox_time unserved_since;
	_Atomic int shown_unserved; /* enum unserved */

	outbox_time store_at; /* mono: no store call before, after an outage */
	outbox_time store_delay;
	outbox_time store_outage_since;
	const char *store_outage_call; /* the store call that failed; NULL: the connection did */
	struct outbox_error store_outage;
	bool away;                 /* the store could not be opened at the last try */
	outbox_time refused_since; /* mono: since when it refuses some lane */
	struct rejection_log rejections;

	bool keeper; /* one worker of a relay also purges and checkpoints */
	outbox_time purge_at, tend_at;
	struct outbox_purge purge; /* of the round under way: its times stay until it is done */
	struct archiver *archiver; /* NULL: not needed yet */
	const char *untidy;        /* the clean-up that failed and was told */

	struct outbox_error gave_up;     /* why it left before everything due was delivered */
	bool once;                       /* leave when nothing is due */
	_Atomic bool draining;           /* stop reading, finish, settle, release, leave */
	_Atomic outbox_time drain_until; /* mono: what is not sent by then goes back */
	_Atomic bool left;
	_Atomic int shown_breaker, shown_lanes; /* what people see of it, as of the last step */
};

/* What a log line is about. */
#define ABOUT_TARGET(worker_) (&(struct about){ .target = (worker_)->target->name })
#define ABOUT_LANE(worker_, lane_) \
	(&(struct about){ .target = (worker_)->target->name, .lane = &(lane_)->number })

/* Opens the transport (no I/O); the store is opened by the first step. plan outlives the worker. */
int worker_new(const struct relay_plan *plan, size_t target, int index, struct tally *tally,
	       struct worker **ret_worker, struct outbox_error *err) OUTBOX_MUSTCHECK;
struct worker *worker_free(struct worker *worker);

/* How often publishers have woken the relay so far; always 1 where they cannot. */
unsigned worker_wakeups(const struct worker *worker);

/* One step. Returns the mono time at which it wants to be stepped again: now when it is busy. */
outbox_time worker_step(struct worker *worker);

/* Stop reading, finish until the mono time, settle, release. Safe from any thread. */
void worker_drain(struct worker *worker, outbox_time until);

/* Lanes with a claim that is not settled. */
size_t worker_unsettled(const struct worker *worker);

/* It has released its lanes, or cannot, and wants no more steps. */
bool worker_left(const struct worker *worker);

/* It has left and nobody steps it: make it as it was at the beginning, for another run. */
void worker_again(struct worker *worker);

#endif
