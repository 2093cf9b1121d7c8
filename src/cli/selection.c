/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selection.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/table.h"

#define STATES_END (OUTBOX_DISCARDED + 1)
#define WHYS_END (OUTBOX_PAUSED + 1)

bool selection_empty(const struct selection *s)
{
	return !s->state && !s->why && !s->target && !s->type && !s->key && !s->created_before &&
	       !s->changed_before;
}

static int unknown(const char *option, const char *text, const char *best, const char *known,
		   struct outbox_error *err)
{
	char shown[80];

	text_shown(shown, sizeof(shown), text);
	if (best)
		return outbox_fail(err, OUTBOX_EINVAL, "--%s: there is no \"%s\"; did you mean %s?",
				   option, shown, best);
	return outbox_fail(err, OUTBOX_EINVAL, "--%s: there is no \"%s\"; write %s", option, shown,
			   known);
}

static int parse_state(const char *text, struct outbox_filter *filter, struct outbox_error *err)
{
	struct nearest nearest;

	filter->state = outbox_state_parse(text);
	if (filter->state)
		return OUTBOX_OK;
	filter->why = outbox_why_parse(text);
	if (filter->why) { /* what list shows in its STATE column works as a state, too */
		filter->state = OUTBOX_PENDING;
		return OUTBOX_OK;
	}
	nearest_init(&nearest, text);
	for (int i = 1; i < STATES_END; i++)
		nearest_offer(&nearest, outbox_state_name(i));
	for (int i = 1; i < WHYS_END; i++)
		nearest_offer(&nearest, outbox_why_name(i));
	return unknown("state", text, nearest.best,
		       "pending, sending, delivered, failed or discarded, or why it is pending: new, "
		       "retry, deferred, parked or paused",
		       err);
}

static int parse_why(const char *text, struct outbox_filter *filter, struct outbox_error *err)
{
	struct nearest nearest;

	filter->why = outbox_why_parse(text);
	if (filter->why && (!filter->state || filter->state == OUTBOX_PENDING)) {
		filter->state = OUTBOX_PENDING;
		return OUTBOX_OK;
	}
	if (filter->why)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "--why is for pending deliveries; leave it out with --state %s",
				   outbox_state_name(filter->state));
	nearest_init(&nearest, text);
	for (int i = 1; i < WHYS_END; i++)
		nearest_offer(&nearest, outbox_why_name(i));
	return unknown("why", text, nearest.best, "new, retry, deferred, parked or paused", err);
}

int selection_filter(const struct selection *selection, struct outbox_filter *ret_filter,
		     struct outbox_error *err)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter),
					.target = selection->target,
					.type = selection->type,
					.key = selection->key,
					.created_before = selection->created_before,
					.changed_before = selection->changed_before };
	int r = OUTBOX_OK;

	if (selection->state)
		r = parse_state(selection->state, &filter, err);
	if (r == OUTBOX_OK && selection->why)
		r = parse_why(selection->why, &filter, err);
	if (r == OUTBOX_OK)
		*ret_filter = filter;
	return r;
}

const char *delivery_word(const struct outbox_delivery *row)
{
	const char *word = NULL;

	if (row->state == OUTBOX_PENDING)
		word = outbox_why_name(row->why);
	if (!word)
		word = outbox_state_name(row->state);
	return word ? word : "?";
}

int delivery_colour(const struct outbox_delivery *row)
{
	switch (row->state) {
	case OUTBOX_FAILED:
		return RED;
	case OUTBOX_DELIVERED:
		return GREEN;
	case OUTBOX_DISCARDED:
		return DIM;
	default:
		return row->state == OUTBOX_PENDING && row->why != OUTBOX_NEW ? YELLOW : PLAIN;
	}
}
