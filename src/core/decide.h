/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DECIDE_H
#define CORE_DECIDE_H

/*
 * decide_*(): what becomes of a delivery. Pure: all they know is handed in, all they say is what they return.
 * Retry, back-off, jitter, dead letters, expiry, the order of a key within a claim, unknown outcomes and the
 * search for messages that kill relays or connections live here and nowhere else; the relay executes.
 */

#include <outbox/relay.h>
#include <outbox/store.h>
#include <outbox/transport.h>

struct decide_context {
	const struct outbox_policy *policy;
	outbox_time now;              /* store time of the claim */
	struct outbox_random *random; /* jitter */
	/* Holds the error texts that are put together here; must live until they are settled. Without
	 * it the texts are shorter: the bare reason, "expired". */
	struct outbox_arena *memory;
	bool hold;       /* a failed message holds its key back */
	size_t max_size; /* larger payloads are refused before they are sent; 0: none is */
	/* How long the breaker would wait next, or the broker asked for. A suspect waits twice as long, so that
	 * at the next probe other messages go first: otherwise the one that breaks connections is every probe. */
	outbox_time breaker_delay;
};

struct decision {
	struct outbox_settlement settlement;
	/* What becomes of the rest of its key in this claim: 0: the next one goes on; else OUTBOX_OUT_PARKED or
	 * OUTBOX_OUT_RETURNED. Behind a delivered or deferred message the key goes on, and behind one that failed and
	 * would fail again (rejected, malformed, expired) unless the target holds. Behind one whose attempts are
	 * used up it goes on only when that is written down: if we died before, the message would be tried again,
	 * and might be accepted behind one that has overtaken it. */
	int behind;
};

/* How the messages of a claim go on the wire. */
enum wire_order {
	WIRE_ROUNDS = 1,   /* one message of a key at a time */
	WIRE_TOGETHER = 2, /* all at once: the transport keeps a key's order over failures */
	WIRE_UNORDERED = 3 /* all at once: keys mean nothing */
};

/* With hold, a rejected message must stop its key before the next one leaves: then nothing goes together. */
enum wire_order decide_order(bool ordered, bool hold, bool transport_keeps_order);

/* Straight from the log and not due yet? Then it is deferred, whatever happens to others of its claim. */
bool decide_defer(outbox_time now, const struct outbox_claimed *delivery,
		  struct outbox_settlement *ret_settlement);

/*
 * Before sending: is this delivery to be sent now? True: yes. False: *ret_decision says why not, the
 * first of these that holds:
 * - malformed -> FAILED with that text;
 * - straight from the log and due_at ahead -> DEFERRED: it leaves its key's order, so this goes before
 *   parking. A detour was handed out because its time has come, whatever due_at says;
 * - blocked -> PARKED;
 * - expired -> FAILED "expired at ...";
 * - larger than max_size -> as if REJECTED, with both sizes;
 * - died_alone (it was alone in flight when a relay died) -> charged like RETRY with that error, as a
 *   suspect, or FAILED when used up.
 */
bool decide_send(const struct decide_context *context, const struct outbox_claimed *delivery,
		 bool died_alone, struct decision *ret_decision);

/* Not sent, or not this one's fault: as if it was not claimed (RETURNED), or PARKED behind another one. */
struct decision decide_set_back(const struct outbox_claimed *delivery, int outcome);

struct decide_verdict {
	int verdict;             /* enum outbox_verdict */
	int status;              /* of publish() */
	int native;              /* the broker's code */
	const char *reason;      /* may be NULL */
	const char *answer;      /* what it said in full; may be NULL */
	outbox_time retry_after; /* RETRY: the broker asked for this delay at least; 0: it did not */
	bool alone;              /* it was the only message on the wire */
	bool others_acked; /* since it was last UNKNOWN alone, other messages were acknowledged */
	int held;          /* WIRE_TOGETHER: `behind` of the one before it in its key; 0: nothing */
};

/*
 * What a verdict amounts to, now that publish() has returned. None (UNSET) means not sent; but when publish() failed,
 * UNKNOWN, unless with EFULL, EAUTH or EGONE, which promise that nothing without a verdict was accepted.
 */
int decide_final_verdict(int verdict, int status);

/*
 * After sending. ACKED -> DELIVERED; REJECTED -> FAILED, charged; held and neither of these -> as the one before it;
 * RETRY -> WAITING, charged, or FAILED when used up, with "(attempt 10 of 10)" behind the reason; its delay
 * is the policy's or, when that is longer, what the broker asked for, which uses up no budget; not sent ->
 * RETURNED. UNKNOWN -> RETURNED, but alone on the wire -> WAITING as suspect with the policy's first delay,
 * uncharged; a suspect that is UNKNOWN again while others were acknowledged in between -> charged like RETRY.
 */
void decide_settle(const struct decide_context *context, const struct outbox_claimed *delivery,
		   const struct decide_verdict *verdict, struct decision *ret_decision);

/*
 * The search for a message that makes brokers drop the connection: after an UNKNOWN claims become smaller, until the
 * culprit is alone on the wire, while everything else is delivered.
 */

/* Half of it, at least 1: after an UNKNOWN, of what was claimed. */
size_t decide_smaller_claim(size_t claimed);

/* After a settlement; only a full claim of which nothing was returned shows that this size is safe. */
size_t decide_next_claim(size_t limit, size_t most, size_t claimed, size_t returned);

#define SUSPICIONS 8

/* The last messages that were UNKNOWN while alone on the wire, and how many were acknowledged by then. */
struct suspicions {
	struct {
		int64_t seq;
		uint64_t acked;
	} list[SUSPICIONS];
	size_t count;
};

void decide_suspect(struct suspicions *suspicions, int64_t seq, uint64_t acked);
bool decide_others_acked(const struct suspicions *suspicions, int64_t seq, uint64_t acked);

/* What a lane is about to send. */
struct decide_lane {
	size_t limit, most; /* of its claims */
	bool cautious;      /* relays died there repeatedly */
	bool died_alone;    /* the message that was alone in flight then has not come again yet */
	bool suspect;       /* its claim is a suspect */
	bool probing;       /* the breaker wants one message */
};

/* May its round go in one call with those of other lanes? Not while a culprit is looked for, who must become alone. */
bool decide_may_share(const struct decide_lane *lane);

#endif
