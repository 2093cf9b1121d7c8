/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Five states. A claimed delivery that turns out to be deferred or parked is returned first and then
 * put aside, so neither has a rule from `sending`: that keeps an operator's defer from taking a
 * message out of a relay's hands.
 */

#include "core/lifecycle.h"

#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static const struct lifecycle_rule rules[] = {
	{ OUTBOX_PENDING, LIFE_CLAIM, OUTBOX_SENDING, "a lane's owner claims it in a batch" },
	{ OUTBOX_SENDING, LIFE_ACK, OUTBOX_DELIVERED, "the broker acknowledged it" },
	{ OUTBOX_SENDING, LIFE_RETRY, OUTBOX_PENDING, "transient failure: attempts + 1, tried again" },
	{ OUTBOX_SENDING, LIFE_RETURN, OUTBOX_PENDING, "outage, release or take-over: not charged" },
	{ OUTBOX_SENDING, LIFE_FAIL, OUTBOX_FAILED, "attempts used up, rejected, or expired" },
	{ OUTBOX_PENDING, LIFE_DEFER, OUTBOX_PENDING, "due time set, attempts unchanged" },
	{ OUTBOX_PENDING, LIFE_PARK, OUTBOX_PENDING, "behind an unfinished message of its key" },
	{ OUTBOX_FAILED, LIFE_REQUEUE, OUTBOX_PENDING, "requeued: attempts 0, due now" },
	{ OUTBOX_PENDING, LIFE_DISCARD, OUTBOX_DISCARDED, "an operator gave it up, with a reason" },
	{ OUTBOX_FAILED, LIFE_DISCARD, OUTBOX_DISCARDED, "an operator gave it up, with a reason" },
};

const char *const state_names[] = { NULL,     "pending",   "sending", "delivered",
				    "failed", "discarded", NULL };
const char *const kind_names[] = { NULL, KIND_EVENT_NAME, KIND_COMMAND_NAME, NULL };
const char *const why_names[] = { NULL, "new", "retry", "deferred", "parked", "paused", NULL };
const char *const verdict_names[] = { NULL, "acked", "rejected", "retry", "unknown", NULL };
const char *const action_names[] = { NULL, "requeue", "discard", "defer", NULL };
const char *const action_past[] = { NULL, "requeued", "discarded", "deferred", NULL };
static const char *const events[] = { NULL,   "claim", "acknowledge", "retry",   "return",
				      "fail", "defer", "park",        "requeue", "discard" };

static const char *name_of(const char *const *names, size_t count, int value)
{
	return value > 0 && (size_t)value < count ? names[value] : NULL;
}

static int value_of(const char *const *names, const char *name)
{
	for (int i = 1; name && names[i]; i++) {
		if (strcmp(names[i], name) == 0)
			return i;
	}
	return 0;
}

const char *verdict_name(int verdict)
{
	return name_of(verdict_names, ARRAY_SIZE(verdict_names), verdict);
}

int verdict_parse(const char *name)
{
	return value_of(verdict_names, name);
}

const char *outbox_state_name(int state)
{
	return name_of(state_names, ARRAY_SIZE(state_names), state);
}

const char *outbox_why_name(int why)
{
	return name_of(why_names, ARRAY_SIZE(why_names), why);
}

int outbox_state_parse(const char *name)
{
	return value_of(state_names, name);
}

int outbox_why_parse(const char *name)
{
	/* what `outbox status` and the metrics call it */
	if (name && strcmp(name, "waiting") == 0)
		return OUTBOX_WAITING;
	return value_of(why_names, name);
}

int kind_parse(const char *name, int otherwise)
{
	int kind = value_of(kind_names, name);

	return kind ? kind : otherwise;
}

int lifecycle_of_action(int action)
{
	static const int events_of[] = { 0, LIFE_REQUEUE, LIFE_DISCARD, LIFE_DEFER };

	return action > 0 && (size_t)action < ARRAY_SIZE(events_of) ? events_of[action] : 0;
}

const struct lifecycle_rule *lifecycle_rules(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(rules);
	return rules;
}

int lifecycle_next(int from, int event)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		if (rules[i].from == from && rules[i].event == event)
			return rules[i].to;
	}
	return 0;
}

/* "only pending or failed ones". No allocation: an error must be told also without memory. */
static const char *allowed_from(int event, char *out, size_t size)
{
	const char *separator = "only ";
	size_t i, used = 0;

	for (i = 0; i < ARRAY_SIZE(rules) && used < size; i++) {
		if (rules[i].event != event)
			continue;
		used += (size_t)snprintf(out + used, size - used, "%s%s", separator,
					 outbox_state_name(rules[i].from));
		separator = " or ";
	}
	if (used < size)
		snprintf(out + used, size - used, " ones");
	return out;
}

int lifecycle_check(int from, int event, struct outbox_error *err)
{
	char allowed[128];
	const char *verb = name_of(events, ARRAY_SIZE(events), event);
	const char *state = outbox_state_name(from);

	if (!verb || !state)
		return outbox_fail(err, OUTBOX_EINTERNAL, "no event %d from state %d", event, from);
	if (lifecycle_next(from, event))
		return OUTBOX_OK;
	if (from == OUTBOX_SENDING && lifecycle_next(OUTBOX_PENDING, event))
		return outbox_fail(err, OUTBOX_ECONFLICT,
				   "cannot %s it: it is being sent right now; try again", verb);
	return outbox_fail(err, OUTBOX_ECONFLICT, "cannot %s a %s delivery: %s", verb, state,
			   allowed_from(event, allowed, sizeof(allowed)));
}
