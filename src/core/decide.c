/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rules of what happens to a delivery, in one place and without side effects. Two ideas matter:
 *
 * Charging. Only a try that failed because of the message itself counts: the broker refused it
 * (RETRY, REJECTED), it was alone in flight when the relay died, or it was alone on the wire, lost
 * the connection, and others went through in between. An outage charges nobody, so a broker that is
 * away for a day costs no attempts.
 *
 * Suspects. A message that may be what kills the relay or the connection is marked and claimed alone
 * from then on, which is what makes the next incident a proof rather than a coincidence.
 */

#include "core/decide.h"

#include "base/text.h"
#include "core/message.h"
#include "core/retry.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DIED_ALONE "the relay died while this was the only message in flight"
#define LOST_ALONE \
	"outcome unknown: the connection was lost while this was the only message in flight"

static struct outbox_settlement settlement_of(const struct outbox_claimed *delivery, int outcome)
{
	return (struct outbox_settlement){
		.seq = delivery->seq,
		.outcome = outcome,
		.attempts = delivery->attempts,
		.suspect = delivery->suspect,
	};
}

static int charged(const struct outbox_claimed *delivery)
{
	return delivery->attempts < INT_MAX ? delivery->attempts + 1 : INT_MAX;
}

/* "422: no such order (attempt 10 of 10)": the last error stays readable, whatever its length. */
static const char *final_error(const struct decide_context *context, int attempts, const char *reason)
{
	char suffix[80], budget[DURATION_TEXT_MAX];
	int tries = retry_tries(context->policy);
	size_t length, suffix_length;
	char *text;

	if (tries > 0 && attempts >= tries)
		snprintf(suffix, sizeof(suffix), " (attempt %d of %d)", attempts, tries);
	else
		snprintf(suffix, sizeof(suffix), " (attempt %d, retry budget of %s used up)",
			 attempts, duration_human(context->policy->budget, budget));
	suffix_length = strlen(suffix);
	length = utf8_cut_chars(reason, ERROR_TEXT_MAX - suffix_length);
	text = context->memory ? outbox_arena_alloc(context->memory, length + suffix_length + 1)
			       : NULL;
	if (!text)
		return reason;
	memcpy(text, reason, length);
	memcpy(text + length, suffix, suffix_length + 1);
	return text;
}

static struct outbox_settlement charge(const struct decide_context *context,
				       const struct outbox_claimed *delivery, const char *reason)
{
	struct outbox_settlement settlement = settlement_of(delivery, OUTBOX_OUT_WAITING);

	settlement.attempts = charged(delivery);
	settlement.error = reason;
	if (!retry_delay(context->policy, settlement.attempts, delivery->failing_since,
			 context->now, context->random, &settlement.delay)) {
		settlement.outcome = OUTBOX_OUT_FAILED;
		settlement.error = final_error(context, settlement.attempts, reason);
	}
	return settlement;
}

/* For the history. The number is the one that the message bore on the wire. */
static void note_attempt(struct outbox_settlement *settlement, const struct outbox_claimed *delivery,
			 int final, const struct decide_verdict *verdict)
{
	if (settlement->outcome != OUTBOX_OUT_WAITING && settlement->outcome != OUTBOX_OUT_FAILED)
		return;
	settlement->attempt = charged(delivery);
	settlement->verdict = final;
	settlement->native = verdict ? verdict->native : 0;
	settlement->answer = verdict ? verdict->answer : NULL;
}

static const char *expired_error(const struct decide_context *context, outbox_time expires_at)
{
	char text[TIME_TEXT_MAX + 16], time[TIME_TEXT_MAX];
	const char *copy = NULL;

	snprintf(text, sizeof(text), "expired at %s", time_format(expires_at, time));
	if (context->memory)
		copy = outbox_arena_text(context->memory, text);
	return copy ? copy : "expired";
}

static const char *size_error(const struct decide_context *context, size_t size)
{
	char text[160], is[COUNT_TEXT_MAX], most[COUNT_TEXT_MAX];
	const char *copy = NULL;

	snprintf(text, sizeof(text), "the payload has %s bytes, and max_size is %s: it was not sent",
		 count_human((int64_t)size, is), count_human((int64_t)context->max_size, most));
	if (context->memory)
		copy = outbox_arena_text(context->memory, text);
	return copy ? copy : "the payload is larger than max_size";
}

bool decide_defer(outbox_time now, const struct outbox_claimed *delivery,
		  struct outbox_settlement *ret_settlement)
{
	if (delivery->malformed || delivery->detour || delivery->message.due_at <= now)
		return false;
	*ret_settlement = settlement_of(delivery, OUTBOX_OUT_DEFERRED);
	ret_settlement->due_at = delivery->message.due_at;
	return true;
}

enum wire_order decide_order(bool ordered, bool hold, bool transport_keeps_order)
{
	if (!ordered)
		return WIRE_UNORDERED;
	return transport_keeps_order && !hold ? WIRE_TOGETHER : WIRE_ROUNDS;
}

/* See struct decision; again: it failed and would fail again. */
static int outcome_behind(int outcome, bool again, bool hold)
{
	switch (outcome) {
	case OUTBOX_OUT_DELIVERED:
	case OUTBOX_OUT_DEFERRED:
		return 0;
	case OUTBOX_OUT_RETURNED:
		return OUTBOX_OUT_RETURNED;
	case OUTBOX_OUT_FAILED:
		return hold ? OUTBOX_OUT_PARKED : again ? 0 : OUTBOX_OUT_RETURNED;
	default:
		return OUTBOX_OUT_PARKED;
	}
}

struct decision decide_set_back(const struct outbox_claimed *delivery, int outcome)
{
	return (struct decision){ .settlement = settlement_of(delivery, outcome),
				  .behind = outcome_behind(outcome, false, false) };
}

static bool may_send(const struct decide_context *context, const struct outbox_claimed *delivery,
		     bool died_alone, struct outbox_settlement *ret_settlement)
{
	const struct outbox_message *message = &delivery->message;

	if (decide_defer(context->now, delivery, ret_settlement))
		return false;
	if (delivery->malformed) {
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_FAILED);
		ret_settlement->error = delivery->malformed;
	} else if (delivery->blocked) {
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_PARKED);
	} else if (message->expires_at != 0 && message->expires_at <= context->now) {
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_FAILED);
		ret_settlement->error = expired_error(context, message->expires_at);
	} else if (context->max_size && message->size > context->max_size) {
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_FAILED);
		ret_settlement->error = size_error(context, message->size);
		ret_settlement->attempts = charged(delivery);
		note_attempt(ret_settlement, delivery, OUTBOX_REJECTED, NULL);
	} else if (died_alone) {
		*ret_settlement = charge(context, delivery, DIED_ALONE);
		ret_settlement->suspect = true;
		note_attempt(ret_settlement, delivery, OUTBOX_UNKNOWN, NULL);
	} else {
		return true;
	}
	return false;
}

bool decide_send(const struct decide_context *context, const struct outbox_claimed *delivery,
		 bool died_alone, struct decision *ret_decision)
{
	if (may_send(context, delivery, died_alone, &ret_decision->settlement))
		return true;
	ret_decision->behind =
		outcome_behind(ret_decision->settlement.outcome, !died_alone, context->hold);
	return false;
}

static struct outbox_settlement settle_unknown(const struct decide_context *context,
					       const struct outbox_claimed *delivery,
					       const struct decide_verdict *verdict)
{
	const char *reason = verdict->reason ? verdict->reason : LOST_ALONE;
	struct outbox_settlement settlement;

	if (!verdict->alone)
		return settlement_of(delivery, OUTBOX_OUT_RETURNED);
	if (delivery->suspect && verdict->others_acked) {
		settlement = charge(context, delivery, reason);
	} else {
		settlement = settlement_of(delivery, OUTBOX_OUT_WAITING);
		settlement.delay = retry_first_delay(context->policy, context->random);
		settlement.error = reason;
	}
	if (settlement.delay < 2 * context->breaker_delay)
		settlement.delay = 2 * context->breaker_delay;
	settlement.suspect = true;
	return settlement;
}

int decide_final_verdict(int verdict, int status)
{
	if (verdict != OUTBOX_VERDICT_UNSET || !status || status == OUTBOX_EFULL ||
	    status == OUTBOX_EAUTH || status == OUTBOX_EGONE)
		return verdict;
	return OUTBOX_UNKNOWN;
}

void decide_settle(const struct decide_context *context, const struct outbox_claimed *delivery,
		   const struct decide_verdict *verdict, struct decision *ret_decision)
{
	struct outbox_settlement *ret_settlement = &ret_decision->settlement;
	int final = decide_final_verdict(verdict->verdict, verdict->status);

	if (verdict->held && final != OUTBOX_ACKED && final != OUTBOX_REJECTED) {
		*ret_decision = decide_set_back(delivery, verdict->held);
		return;
	}
	switch (final) {
	case OUTBOX_ACKED:
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_DELIVERED);
		ret_settlement->suspect = false;
		break;
	case OUTBOX_REJECTED:
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_FAILED);
		ret_settlement->attempts = charged(delivery);
		ret_settlement->error = verdict->reason ? verdict->reason : "rejected by the broker";
		break;
	case OUTBOX_RETRY:
		*ret_settlement =
			charge(context, delivery,
			       verdict->reason ? verdict->reason : "refused by the broker");
		if (ret_settlement->outcome == OUTBOX_OUT_WAITING &&
		    ret_settlement->delay < verdict->retry_after)
			ret_settlement->delay = verdict->retry_after;
		/* It got an answer: not what breaks connections. */
		ret_settlement->suspect = false;
		break;
	case OUTBOX_UNKNOWN:
		*ret_settlement = settle_unknown(context, delivery, verdict);
		break;
	default:
		*ret_settlement = settlement_of(delivery, OUTBOX_OUT_RETURNED);
		break;
	}
	note_attempt(ret_settlement, delivery, final, verdict);
	ret_decision->behind =
		outcome_behind(ret_settlement->outcome, final == OUTBOX_REJECTED, context->hold);
}

size_t decide_smaller_claim(size_t claimed)
{
	return claimed > 1 ? claimed / 2 : 1;
}

size_t decide_next_claim(size_t limit, size_t most, size_t claimed, size_t returned)
{
	if (returned || claimed < limit)
		return limit;
	return limit > most / 2 ? most : limit * 2;
}

static size_t find_suspicion(const struct suspicions *suspicions, int64_t seq)
{
	size_t i = 0;

	while (i < SUSPICIONS && suspicions->list[i].seq != seq)
		i++;
	return i;
}

void decide_suspect(struct suspicions *suspicions, int64_t seq, uint64_t acked)
{
	size_t i = find_suspicion(suspicions, seq);

	if (i == SUSPICIONS)
		i = suspicions->count++ % SUSPICIONS;
	suspicions->list[i].seq = seq;
	suspicions->list[i].acked = acked;
}

bool decide_others_acked(const struct suspicions *suspicions, int64_t seq, uint64_t acked)
{
	size_t i = find_suspicion(suspicions, seq);

	return seq && i < SUSPICIONS && acked > suspicions->list[i].acked;
}

bool decide_may_share(const struct decide_lane *lane)
{
	return lane->limit == lane->most && !lane->cautious && !lane->died_alone &&
	       !lane->suspect && !lane->probing;
}
