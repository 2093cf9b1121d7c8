/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line a minute about messages that were refused, however many there are. It says what kind of refusal it was,
 * never the broker's words: these may quote the payload, and are kept where only people who may see payloads can read
 * them.
 */
#include "relay/rejection_log.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define EVERY OUTBOX_MINUTES
#define LOST "the connection was lost while it was the only message in flight"

static bool is_refused(const struct outbox_settlement *outcome)
{
	return (outcome->outcome == OUTBOX_OUT_WAITING || outcome->outcome == OUTBOX_OUT_FAILED) &&
	       outcome->error;
}

static const char *kind_of(const struct rejection_log *r, const struct batch *b, size_t i)
{
	const struct outbox_claimed *claimed = &b->claim.items[i];
	const struct outbox_settlement *outcome = &b->outcomes[i];

	if (claimed->malformed)
		return "what is stored is not a valid message";
	switch (b->items[i].verdict) {
	case OUTBOX_REJECTED:
		return "cannot be accepted";
	case OUTBOX_RETRY:
		return outcome->outcome == OUTBOX_OUT_FAILED ? "refused, attempts used up"
							     : "refused for now";
	case OUTBOX_ACKED:
	case OUTBOX_UNKNOWN:
		return LOST;
	default:
		break;
	}
	/* nobody asked the broker, or nobody heard what it said */
	if (outcome->outcome == OUTBOX_OUT_FAILED && outcome->attempts == claimed->attempts)
		return "it has expired";
	if (r->target->max_size && claimed->message.size > r->target->max_size)
		return "its payload is larger than max_size";
	return b->died_seq && claimed->seq == b->died_seq
		       ? "it was the only message in flight when a relay died"
		       : LOST;
}

static void remember_rejection(struct rejection_log *r, const struct batch *b, size_t i)
{
	text_shown(r->id, sizeof(r->id), b->claim.items[i].message.id);
	r->kind = kind_of(r, b, i);
	r->native = b->items[i].native;
	r->failed = b->outcomes[i].outcome == OUTBOX_OUT_FAILED;
	r->delivered = false;
}

/* A message that waited when it was counted may have been delivered by the time it is reported. */
static bool is_over(const struct rejection_log *r, const struct batch *b, size_t i)
{
	char id[sizeof(r->id)];

	return r->count && !r->failed && b->outcomes[i].outcome == OUTBOX_OUT_DELIVERED &&
	       strcmp(text_shown(id, sizeof(id), b->claim.items[i].message.id), r->id) == 0;
}

void rejection_log_init(struct rejection_log *r, const struct relay_plan *plan,
			const struct target_plan *target)
{
	*r = (struct rejection_log){ .plan = plan, .target = target };
}

void rejection_log_flush(struct rejection_log *r)
{
	const struct about *about = &(struct about){ .target = r->target->name };
	char code[40] = "";

	if (!r->count)
		return;
	if (r->native)
		snprintf(code, sizeof(code), " (code %d)", r->native);
	if (r->delivered)
		log_event(&r->plan->log, EVENT_MESSAGE_REFUSED, about,
			  "%zu refusal%s, the last one of message %s, which has been delivered since: %s%s",
			  r->count, r->count == 1 ? "" : "s", r->id, r->kind, code);
	else
		log_event(&r->plan->log, EVENT_MESSAGE_REFUSED, about,
			  "%zu refusal%s, the last one of message %s: %s%s; details: outbox list --target %s %s%s%s",
			  r->count, r->count == 1 ? "" : "s", r->id, r->kind, code, r->target->name,
			  r->failed ? "--state failed" : "--why retry",
			  *r->plan->store_option ? " " : "", r->plan->store_option);
	r->count = 0;
}

void rejection_log_add(struct rejection_log *r, const struct batch *b, outbox_time now)
{
	for (size_t i = 0; i < b->claim.count; i++) {
		r->delivered |= is_over(r, b, i);
		if (!is_refused(&b->outcomes[i]))
			continue;
		/* what failed stays where the command finds it */
		if (!r->count || !r->failed || b->outcomes[i].outcome == OUTBOX_OUT_FAILED)
			remember_rejection(r, b, i);
		r->count++;
	}
	if (!r->count || now < r->next)
		return;
	rejection_log_flush(r);
	r->next = now + EVERY;
}
