/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line a minute about messages that were refused, however many there are. It says what kind of refusal, never the
 * broker's words: those may quote the payload, and are where only those who may see payloads look.
 */
#include "relay/rejection_log.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define EVERY OUTBOX_MINUTES
#define LOST "the connection was lost while it was alone on the wire"

static bool is_refused(const struct outbox_settlement *outcome)
{
	return (outcome->outcome == OUTBOX_OUT_WAITING || outcome->outcome == OUTBOX_OUT_FAILED) &&
	       outcome->error;
}

static const char *kind_of(const struct flight *f, size_t i)
{
	if (f->claim.items[i].malformed)
		return "what is stored makes no sense";
	switch (f->items[i].verdict) {
	case OUTBOX_REJECTED:
		return "cannot be accepted";
	case OUTBOX_RETRY:
		return f->outcomes[i].outcome == OUTBOX_OUT_FAILED ? "refused, attempts used up"
								   : "refused for now";
	case OUTBOX_ACKED:
	case OUTBOX_UNKNOWN:
		return LOST;
	default:
		break;
	}
	/* nobody asked the broker, or nobody heard what it said */
	if (f->died_seq && f->claim.items[i].seq == f->died_seq)
		return "it was alone in flight when a relay died";
	return f->outcomes[i].outcome == OUTBOX_OUT_FAILED &&
			       f->outcomes[i].attempts == f->claim.items[i].attempts
		       ? "it has expired"
		       : LOST;
}

static void remember(struct refusals *r, const struct flight *f, size_t i)
{
	text_shown(r->id, sizeof(r->id), f->claim.items[i].message.id);
	r->kind = kind_of(f, i);
	r->native = f->items[i].native;
	r->failed = f->outcomes[i].outcome == OUTBOX_OUT_FAILED;
	r->delivered = false;
}

/* What waited for its next try when it was counted may be through when it is told. */
static bool is_over(const struct refusals *r, const struct flight *f, size_t i)
{
	char id[sizeof(r->id)];

	return r->count && !r->failed && f->outcomes[i].outcome == OUTBOX_OUT_DELIVERED &&
	       strcmp(text_shown(id, sizeof(id), f->claim.items[i].message.id), r->id) == 0;
}

void refusals_tell(struct worker *w)
{
	struct refusals *r = &w->refusals;
	char code[40] = "";

	if (!r->count)
		return;
	if (r->native)
		snprintf(code, sizeof(code), " (code %d)", r->native);
	if (r->delivered)
		log_event(&w->plan->log, EVENT_MESSAGE_REFUSED, ABOUT_TARGET(w),
			  "%zu refusal%s, the last of %s, which was delivered since: %s%s",
			  r->count, r->count == 1 ? "" : "s", r->id, r->kind, code);
	else
		log_event(&w->plan->log, EVENT_MESSAGE_REFUSED, ABOUT_TARGET(w),
			  "%zu refusal%s, the last of %s: %s%s; why: outbox list --target %s %s%s%s",
			  r->count, r->count == 1 ? "" : "s", r->id, r->kind, code, w->target->name,
			  r->failed ? "--state failed" : "--why retry",
			  *w->plan->store_option ? " " : "", w->plan->store_option);
	r->count = 0;
}

void refusals_note(struct worker *w, const struct flight *f, outbox_time now)
{
	struct refusals *r = &w->refusals;

	for (size_t i = 0; i < f->claim.count; i++) {
		r->delivered |= is_over(r, f, i);
		if (!is_refused(&f->outcomes[i]))
			continue;
		/* what failed stays where the command finds it */
		if (!r->count || !r->failed || f->outcomes[i].outcome == OUTBOX_OUT_FAILED)
			remember(r, f, i);
		r->count++;
	}
	if (!r->count || now < r->next)
		return;
	refusals_tell(w);
	r->next = now + EVERY;
}
