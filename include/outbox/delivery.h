/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTBOX_DELIVERY_H
#define OUTBOX_DELIVERY_H

/* Deliveries (one message x one target each) as people look at them and act on them. */

#include <outbox/clock.h>
#include <outbox/error.h>
#include <outbox/inbox.h>
#include <outbox/message.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OUTBOX_COUNT_CAP 100000 /* counts stop here: show "> 100,000" */

/* ---- deliveries ---------------------------------------------------------------------------- */

enum outbox_state {
	OUTBOX_STATE_UNSET = 0,
	OUTBOX_PENDING = 1,
	OUTBOX_SENDING = 2,
	OUTBOX_DELIVERED = 3,
	OUTBOX_FAILED = 4,
	OUTBOX_DISCARDED = 5
};

/* Why a pending delivery is pending. */
enum outbox_why {
	OUTBOX_WHY_UNSET = 0,
	OUTBOX_NEW = 1,      /* in the log, not yet read */
	OUTBOX_WAITING = 2,  /* waits for its next attempt (shown as "retry") */
	OUTBOX_DEFERRED = 3, /* not due yet; outside its key's order until it is */
	OUTBOX_PARKED = 4,   /* behind an unfinished message of its key */
	OUTBOX_PAUSED = 5    /* new, and its target is paused. Only in views, never stored */
};

/* "pending", "retry" ...; NULL for an unknown value. Parsing gives 0 for an unknown name. */
const char *outbox_state_name(int state);
const char *outbox_why_name(int why);
int outbox_state_parse(const char *name);
int outbox_why_parse(const char *name);

/* One message x one target, as people look at it. */
struct outbox_delivery {
	int64_t seq;
	const char *id, *target, *type, *key; /* key may be NULL */
	int lane;
	int state;          /* enum outbox_state */
	int why;            /* enum outbox_why when pending, else 0 */
	int attempts;       /* failed tries */
	const char *owner;  /* who sends or sent it; may be NULL */
	const char *error;  /* last error; may be NULL */
	const char *reason; /* operator's reason; may be NULL */
	outbox_time event_time, created_at;
	outbox_time last_status_at;  /* 0: never changed */
	outbox_time next_attempt_at; /* 0: none */
};

/* ---- looking and acting -------------------------------------------------------------------- */

struct outbox_filter {
	size_t struct_size;
	const char *const *ids; /* message ids; none: any */
	size_t n_ids;
	const char *target;         /* NULL: any */
	const char *type;           /* glob; NULL: any */
	const char *key;            /* exact; NULL: any */
	int state;                  /* enum outbox_state; 0: any */
	int why;                    /* enum outbox_why; 0: any */
	outbox_time changed_before; /* last_status_at <=; 0: any */
	outbox_time created_before; /* created_at <=; 0: any. What came later was not meant */
	const char *cursor;         /* from the page before; NULL: from the start */
	size_t limit;               /* 0: 100; at most 1,000 */
};

#define OUTBOX_FILTER_INIT OUTBOX_SIZED(struct outbox_filter)

struct outbox_page {
	size_t count;
	struct outbox_delivery *rows; /* ascending (seq, target) */
	const char *cursor;           /* NULL: this was the last page */
};

enum outbox_action {
	OUTBOX_ACTION_UNSET = 0,
	OUTBOX_REQUEUE = 1, /* failed -> pending: attempts 0, due now, the error kept in the audit */
	OUTBOX_DISCARD = 2, /* pending, failed -> discarded; a reason is required */
	OUTBOX_DEFER = 3    /* pending -> pending (deferred) until `until`, attempts unchanged */
};

struct outbox_act {
	int action;        /* enum outbox_action */
	const char *actor; /* who, for the audit */
	const char *reason;
	outbox_time until; /* DEFER, store time */
	bool dry_run;      /* count only */
	/* At most filter->limit deliveries in one call, in one short transaction; call again while `more`,
	 * with the cursor that came back or, after an interruption, without one: what was done is in
	 * another state and not selected again. A dry run by filter counts all of them, however many, in
	 * one call. With ids, each refusal is reported; with a filter, deliveries in another state are simply
	 * not selected. */
	const struct outbox_filter *filter;
};

struct outbox_acted {
	size_t done;    /* changed, or would be */
	size_t refused; /* named by id and not allowed */
	bool more;
	outbox_time oldest; /* created_at of the oldest one done; 0: none */
	char why[512];      /* why the first one was refused */
	char cursor[96];    /* for the next call while `more`; empty: none */
	/* Wait so long before the next call: where one writes at a time, others look for their turn only now
	 * and then, and a caller without a pause would keep them out. 0: no need */
	outbox_time rest;
};

struct outbox_audit {
	int64_t number;
	outbox_time at;
	const char *actor, *action, *target, *id, *reason, *detail; /* may be NULL but for action */
};

/*
 * The payload, the headers and the subject of a message are replaced (the payload by
 * OUTBOX_REDACTED, the others empty), its key by one that says nothing and has the same hash, so that every
 * lane still finds the message where it was. Errors that were noted for it go, too: they may quote it. Who
 * did it, when and why is audited. id, type and times stay.
 */
#define OUTBOX_REDACTED "{\"redacted\":true}"

struct outbox_redact {
	size_t struct_size;
	const char *id;
	const char *actor;
	const char *reason; /* wanted */
};

/*
 * A message that is scheduled (due_at lies ahead), not due at any target and sent nowhere is not sent at all: its deliveries
 * are discarded, and targets that are registered later do not send it either.
 */
struct outbox_cancel {
	size_t struct_size;
	const char *id;
	const char *actor;
	const char *reason; /* wanted */
};

/*
 * Another payload, content type and headers for a message that was delivered nowhere and still is to be. It keeps its id,
 * its key and its place in the log; what it was is kept until the message goes, or is redacted.
 */
struct outbox_amend {
	size_t struct_size;
	const char *id;
	const char *actor;
	const char *reason; /* wanted */
	/* its data, content_type (NULL: the default) and headers are what the message gets; validated. Nothing else
	 * of it is looked at */
	const struct outbox_message *message;
};

struct outbox_amended {
	int64_t requeued; /* deliveries that had failed or waited for a retry: due at once, attempts 0 */
	int64_t parked; /* deliveries that follow it in its key; stops at OUTBOX_COUNT_CAP + 1 */
};

/* What a message was before it was amended. */
struct outbox_amendment {
	outbox_time at;
	const char *actor, *reason; /* actor may be NULL */
	const char *content_type;   /* as it was given; NULL: the default */
	const char *headers;        /* JSON; NULL: none */
	const void *data;           /* NULL: there was no room for it in the arena */
	size_t size;
	bool bytes; /* data is not text */
};

/* A try to deliver that failed. */
struct outbox_attempt {
	const char *target;
	outbox_time at;
	int attempt;        /* which one it was, from 1 on; counting starts again with a requeue */
	int verdict;        /* enum outbox_verdict: REJECTED, RETRY or UNKNOWN */
	int native;         /* the broker's code; 0: it gave none */
	const char *reason; /* NULL: redacted */
	const char *answer; /* what the broker said in full, up to 4 KiB; NULL: the reason is all */
};

#define OUTBOX_ATTEMPTS_KEPT 20 /* of each delivery: the first one and the last 19 */

/* ---- keys that wait ------------------------------------------------------------------------ */

struct outbox_keys_filter {
	size_t struct_size;
	const char *target; /* NULL: any */
	const char *cursor; /* from the page before; NULL: from the start */
	size_t limit;       /* 0: 100; at most 1,000 */
};

#define OUTBOX_KEYS_FILTER_INIT OUTBOX_SIZED(struct outbox_keys_filter)

/* A key whose messages are held back by the first of them that is not finished. */
struct outbox_blocked_key {
	struct outbox_delivery front; /* in the way: waiting for a retry, being sent, or failed with hold */
	outbox_time since;            /* its first failed try; else its last change */
	int64_t parked;               /* behind it; stops at OUTBOX_COUNT_CAP + 1 */
};

struct outbox_keys_page {
	size_t count;
	struct outbox_blocked_key *rows; /* ascending (front.seq, front.target) */
	const char *cursor;              /* NULL: this was the last page */
};

/* ---- messages by their key ------------------------------------------------------------------ */

struct outbox_key_search {
	size_t struct_size;
	const char *key;      /* this one; NULL: by key_like */
	const char *key_like; /* a glob: * any run, ? any one character */
	int64_t after_seq;    /* 0: from the start */
	size_t limit;         /* messages to look at, found or not; 0: 10,000, which is the most */
};

#define OUTBOX_KEY_SEARCH_INIT OUTBOX_SIZED(struct outbox_key_search)

struct outbox_key_found {
	size_t count;
	const char **ids; /* ascending seq */
	size_t looked;    /* messages that were looked at */
	int64_t last_seq; /* of the last of them: for the next call; 0: there was none */
	bool more;        /* there may be others behind it */
};

struct outbox_lane_stats {
	int lane;
	const char *owner; /* NULL: nobody */
	outbox_time lease_until;
	int64_t receipts;  /* number of the last receipt */
	int64_t takeovers; /* ever */
	/* Why relays refuse this lane until somebody repairs it; NULL: they do not */
	const char *refused;
};

/* Counts stop at OUTBOX_COUNT_CAP + 1. */
struct outbox_target_stats {
	const char *name;
	bool paused;
	const char *paused_by, *paused_reason;
	const char *outage; /* why a live worker cannot reach it; NULL: none says so */
	outbox_time outage_since;
	int64_t pending; /* new: in the log, unread */
	int64_t sending, waiting, deferred, parked, failed, discarded;
	int64_t delivered_ever;   /* from the receipts' running totals */
	int64_t delivered_minute; /* in the last 60 s of store time */
	/* Since when the delivery can be sent that waits longest, of those not finished (failed ones and those
	 * that are due later aside): since its commit, the time it was due, was deferred to or requeued, arrived as a
	 * dead letter, or since the target was registered or resumed. A retry does not count. 0: none */
	outbox_time oldest;
	int64_t retries_minute;
	size_t n_lanes; /* 0: a target that is not registered, and unserved says why */
	struct outbox_lane_stats *lanes;
	/* Why a living relay that is configured for it does not serve it, and since when; NULL: none says so */
	const char *unserved;
	outbox_time unserved_since;
};

struct outbox_stats {
	outbox_time store_now;
	int64_t messages;         /* in the log, capped */
	int64_t unrouted_targets; /* 0 targets registered: messages wait for one */
	size_t n_targets;
	struct outbox_target_stats *targets;
	struct outbox_inbox_stats inbox; /* beside the outbox, if there is one */
};

/* Delivered: settled for every registered target before delivered_before. A message with a failed
 * delivery stays until failed_before, if given. 0: never. */
struct outbox_purge {
	size_t struct_size;
	outbox_time delivered_before;
	outbox_time failed_before;
	int64_t through_seq; /* only messages up to here; 0: no bound. What an archive has written */
	size_t limit;        /* messages in this call; 0: 5,000 */
	const char *actor; /* an operator, for the audit; NULL: a relay's own retention, which leaves none */
	/* Of those that may go, no others than these, ascending: what an archive has, whatever else has become
	 * old by now. NULL: all */
	const int64_t *only;
	size_t n_only;
};

#define OUTBOX_PURGE_INIT OUTBOX_SIZED(struct outbox_purge)

struct outbox_purged {
	int64_t messages, failed; /* removed; failed: how many of them had a failed delivery */
	int64_t receipts, detours;
	bool more;
};

#ifdef __cplusplus
}
#endif

#endif
