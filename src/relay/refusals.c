/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line a minute about messages that were refused, however many there are. It says what kind of refusal, never the
 * broker's words: those may quote the payload, and are where only those who may see payloads look.
 */
#include "relay/refusals.h"

#include "base/text.h"

#include <stdio.h>

#define EVERY OUTBOX_MINUTES

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
	case OUTBOX_UNKNOWN:
		return "the connection was lost while it was alone on the wire";
	default:
		return "expired, or alone in flight when a relay died";
	}
}

static void remember(struct refusals *r, const struct flight *f, size_t i)
{
	text_shown(r->id, sizeof(r->id), f->claim.items[i].message.id);
	r->kind = kind_of(f, i);
	r->native = f->items[i].native;
	r->failed = f->outcomes[i].outcome == OUTBOX_OUT_FAILED;
}

void refusals_tell(struct worker *w)
{
	struct refusals *r = &w->refusals;
	char code[40] = "";

	if (!r->count)
		return;
	if (r->native)
		snprintf(code, sizeof(code), " (code %d)", r->native);
	log_event(&w->plan->log, EVENT_MESSAGE_REFUSED, ABOUT_TARGET(w),
		  "%zu message%s refused; the first is %s: %s%s; why: outbox list --target %s %s%s%s",
		  r->count, r->count == 1 ? "" : "s", r->id, r->kind, code, w->target->name,
		  r->failed ? "--state failed" : "--why retry", *w->plan->store_option ? " " : "",
		  w->plan->store_option);
	r->count = 0;
}

void refusals_note(struct worker *w, const struct flight *f, outbox_time now)
{
	struct refusals *r = &w->refusals;

	for (size_t i = 0; i < f->claim.count; i++) {
		if (!is_refused(&f->outcomes[i]))
			continue;
		if (!r->count)
			remember(r, f, i);
		r->count++;
	}
	if (!r->count || now < r->next)
		return;
	refusals_tell(w);
	r->next = now + EVERY;
}
