/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_DECIDE_H
#define CORE_DECIDE_H

/*
 * decide(): what becomes of a delivery. Pure: all it knows is handed in, all it says is the settlement.
 * Retry, back-off, jitter, dead letters, expiry and the poison guard live here and nowhere else.
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
	/* A suspect waits at least this long: longer than the breaker, so that at its next probe other
	 * messages go first. Otherwise the one that breaks the connection would be every probe. */
	outbox_time suspect_delay;
};

/* Straight from the log and not due yet? Then it is deferred, whatever happens to others of its claim. */
bool decide_defer(outbox_time now, const struct outbox_claimed *delivery,
		  struct outbox_settlement *ret_settlement);

/*
 * Before sending: is this delivery to be sent now? True: yes. False: *ret_settlement says why not, the
 * first of these that holds:
 * - malformed -> FAILED with that text;
 * - straight from the log and due_at ahead -> DEFERRED: it leaves its key's order, so this goes before
 *   parking. A detour was handed out because its time has come, whatever due_at says;
 * - blocked -> PARKED;
 * - expired -> FAILED "expired at ...";
 * - died_alone (it was alone in flight when a relay died) -> charged like RETRY with that error, as a
 *   suspect, or FAILED when used up.
 */
bool decide_send(const struct decide_context *context, const struct outbox_claimed *delivery,
		 bool died_alone, struct outbox_settlement *ret_settlement);

struct decide_verdict {
	int verdict;             /* enum outbox_verdict; UNSET counts as not sent */
	const char *reason;      /* may be NULL */
	outbox_time retry_after; /* RETRY: the broker asked for this delay at least; 0: it did not */
	bool connection_lost;    /* publish() failed: outage; UNSET then counts as UNKNOWN */
	bool alone;              /* it was the only message on the wire */
	bool others_acked; /* since it was last UNKNOWN alone, other messages were acknowledged */
};

/*
 * After sending. ACKED -> DELIVERED; REJECTED -> FAILED, charged; RETRY -> WAITING, charged, or FAILED
 * when used up, with "(attempt 10 of 10)" behind the reason; its delay is the policy's or, when that is
 * longer, what the broker asked for, which uses up no budget; not sent -> RETURNED. UNKNOWN -> RETURNED,
 * but alone on the wire -> WAITING as suspect with the policy's first delay, uncharged; a suspect that
 * is UNKNOWN again while others were acknowledged in between -> charged like RETRY.
 */
void decide_settle(const struct decide_context *context, const struct outbox_claimed *delivery,
		   const struct decide_verdict *verdict, struct outbox_settlement *ret_settlement);

#endif
