/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RELAY_LINK_H
#define RELAY_LINK_H

/*
 * What a worker holds between a store and a target: a connection to each, how long it may use them, and what it does
 * when one does not answer: wait, say so once, try again. Its lanes share it; they need to know nothing else of it.
 */

#include "base/random.h"
#include "relay/breaker.h"
#include "relay/metrics.h"
#include "relay/plan.h"
#include "relay/rejection_log.h"
#include "relay/wakeup.h"

#include <stdatomic.h>

struct link {
	const struct relay_plan *plan;
	const struct target_plan *target;
	struct tally *tally;   /* the target's: all its workers count there */
	struct wakeup *wakeup; /* NULL: none */
	char owner[256];
	struct random_state random;

	struct outbox_store *store; /* NULL: to be opened */
	outbox_time store_at;       /* mono: no store call before, after an outage */
	outbox_time store_delay;
	struct outbox_error store_outage;
	outbox_time store_outage_since;
	const char *store_outage_call; /* the store call that failed; NULL: the connection did */
	bool away;                     /* the store could not be opened at the last try */
	size_t n_refused;              /* lanes that it refuses, and no others */
	outbox_time refused_since;     /* mono */

	struct outbox_transport *transport;
	bool connected;
	struct breaker breaker;
	struct outbox_error outage;       /* why the breaker is open */
	uint64_t acked;                   /* acknowledgements seen */
	struct outbox_arena *call_memory; /* of a publish() for several lanes */
	struct rejection_log rejections;

	outbox_time lease_at;    /* mono: next round of lease keeping */
	outbox_time lease_until; /* mono: what we hold is surely ours until then */
	bool stale_route;
	outbox_time open_since; /* store time: nothing could be sent before */

	bool once;                       /* leave when nothing is due */
	_Atomic bool draining;           /* stop reading, finish, settle, release, leave */
	_Atomic outbox_time drain_until; /* mono: what is not sent by then goes back */
};

/* Who paused a target that said that it is gone for good, in the audit and in status. */
#define RELAY_ACTOR "relay"

/* What a log line is about. */
#define ABOUT_TARGET(link_) (&(struct about){ .target = (link_)->target->name })
#define ABOUT_LANE(link_, lane_) \
	(&(struct about){ .target = (link_)->target->name, .lane = &(lane_)->number })

/* Opens the transport (no I/O). plan and tally outlive it. */
int link_init(struct link *link, const struct relay_plan *plan, size_t target, int index,
	      struct tally *tally, struct outbox_error *err) OUTBOX_MUSTCHECK;
void link_deinit(struct link *link);

/* Forget its outages and its lease; the transport was left alone. */
void link_reset(struct link *link);

void link_open_store(struct link *link, outbox_time now);

/* Busy and full databases keep their connection; after every other failure it is opened again. */
bool link_keeps_store(int status);

/* A store call failed: back off; closes the store when the connection is gone. call is a literal. */
void link_store_failed(struct link *link, const char *call, const struct outbox_error *err,
		       outbox_time now);
/* A store call succeeded. Only the call that failed ends its outage: a full disk still reads. */
void link_store_answered(struct link *link, const char *call, outbox_time now);

void link_connect_broker(struct link *link, outbox_time now);
/* The broker is out: open the breaker, drop the connection. asked: it said how long, or 0. */
void link_broker_failed(struct link *link, const struct outbox_error *err, outbox_time asked,
			outbox_time now);
/* publish() succeeded, whatever it said of the messages. */
void link_broker_answered(struct link *link, outbox_time now);

enum wire_order link_wire_order(const struct link *link);

/*
 * Of the target's rate: how many of these may be sent now; if there are some and none may, throttled until ret_at.
 * Permits are taken before a claim, never during one, and given back if there was less to claim: an idle worker must
 * not keep them from others.
 */
size_t link_take_permits(struct link *link, size_t want, outbox_time now, outbox_time *ret_at,
			 bool *ret_throttled);
/* What became of those that were taken. Blocked messages are parked, not sent: they use none. */
void link_use_permits(struct link *link, const struct outbox_claim *claim, size_t taken,
		      outbox_time now);

#endif
