/* SPDX-License-Identifier: Apache-2.0 */
#include "operate/selection.h"

#include "base/nearest.h"
#include "base/text.h"
#include "core/lifecycle.h"

#include <stdio.h>

#define IDS_MAX 1000
#define WORDS_MAX 100

const char *field_name(enum naming naming, const char *field, char out[FIELD_NAME_MAX])
{
	snprintf(out, FIELD_NAME_MAX, "%s%s", naming == NAMED_AS_OPTION ? "--" : "", field);
	for (char *at = out; naming == NAMED_AS_OPTION && *at; at++)
		*at = *at == '_' ? '-' : *at;
	return out;
}

/* ---- from words ---------------------------------------------------------------------------- */

/* "a, b or c" */
static const char *list_words(const char *const *names, char out[WORDS_MAX])
{
	size_t used = 0;

	for (size_t i = 0; names[i] && used < WORDS_MAX; i++)
		used += (size_t)snprintf(out + used, WORDS_MAX - used, "%s%s",
					 i == 0         ? ""
					 : names[i + 1] ? ", "
							: " or ",
					 names[i]);
	return out;
}

static int unknown_word(const char *field, const char *text, bool states, struct outbox_error *err)
{
	char shown[80], state_list[WORDS_MAX], why_list[WORDS_MAX];
	struct nearest nearest;

	text_shown(shown, sizeof(shown), text);
	nearest_init(&nearest, text);
	for (int i = 1; states && state_names[i]; i++)
		nearest_offer(&nearest, state_names[i]);
	for (int i = 1; why_names[i]; i++)
		nearest_offer(&nearest, why_names[i]);
	list_words(why_names + 1, why_list);
	if (nearest.best)
		return outbox_fail(err, OUTBOX_EINVAL, "%s: \"%s\" is not valid; did you mean %s?",
				   field, shown, nearest.best);
	if (!states)
		return outbox_fail(err, OUTBOX_EINVAL, "%s: \"%s\" is not valid; use %s", field,
				   shown, why_list);
	return outbox_fail(err, OUTBOX_EINVAL,
			   "%s: \"%s\" is not valid; use %s, or a reason why it is pending: %s",
			   field, shown, list_words(state_names + 1, state_list), why_list);
}

static int parse_state(const char *text, enum naming naming, struct outbox_filter *filter,
		       struct outbox_error *err)
{
	char name[FIELD_NAME_MAX];

	filter->state = outbox_state_parse(text);
	if (filter->state)
		return OUTBOX_OK;
	/* what a table shows as the state of a pending delivery selects it, too */
	filter->why = outbox_why_parse(text);
	filter->state = OUTBOX_PENDING;
	return filter->why ? OUTBOX_OK
			   : unknown_word(field_name(naming, "state", name), text, true, err);
}

static int parse_why(const char *text, enum naming naming, struct outbox_filter *filter,
		     struct outbox_error *err)
{
	char why[FIELD_NAME_MAX], state[FIELD_NAME_MAX];

	field_name(naming, "why", why);
	filter->why = outbox_why_parse(text);
	if (!filter->why)
		return unknown_word(why, text, false, err);
	if (filter->state && filter->state != OUTBOX_PENDING)
		return outbox_fail(
			err, OUTBOX_EINVAL,
			"%s applies only to pending deliveries; it cannot be combined with %s %s",
			why, field_name(naming, "state", state), state_names[filter->state]);
	filter->state = OUTBOX_PENDING;
	return OUTBOX_OK;
}

int selection_filter(const struct selection *selection, enum naming naming,
		     struct outbox_filter *ret_filter, struct outbox_error *err)
{
	struct outbox_filter filter = { .struct_size = sizeof(filter),
					.target = selection->target,
					.type = selection->type,
					.key = selection->key,
					.created_before = selection->created_before,
					.changed_before = selection->changed_before };
	int r = OUTBOX_OK;

	if (selection->state)
		r = parse_state(selection->state, naming, &filter, err);
	if (r == OUTBOX_OK && selection->why)
		r = parse_why(selection->why, naming, &filter, err);
	if (r == OUTBOX_OK)
		*ret_filter = filter;
	return r;
}

/* ---- for an action ------------------------------------------------------------------------- */

/* The states that allow the action, as words; *ret_only: the only one, 0 when there are several. */
static const char *states_for(int action, int *ret_only, char out[WORDS_MAX])
{
	const char *names[8] = { 0 };
	size_t n = 0;

	for (int i = 1; state_names[i]; i++) {
		if (!lifecycle_next(i, lifecycle_of_action(action)))
			continue;
		*ret_only = n ? 0 : i;
		names[n++] = state_names[i];
	}
	return list_words(names, out);
}

static int check_state(int action, enum naming naming, struct outbox_filter *filter,
		       struct outbox_error *err)
{
	char allowed[WORDS_MAX], name[FIELD_NAME_MAX];
	int only = 0;

	states_for(action, &only, allowed);
	field_name(naming, "state", name);
	if (!filter->state && filter->why)
		filter->state = OUTBOX_PENDING;
	if (!filter->state)
		filter->state = only;
	if (!filter->state)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "%s is missing: say which deliveries to %s: %s", name,
				   action_names[action], allowed);
	if (lifecycle_next(filter->state, lifecycle_of_action(action)))
		return OUTBOX_OK;
	return outbox_fail(err, OUTBOX_EINVAL, "%s: only %s deliveries can be %s", name, allowed,
			   action_past[action]);
}

int selection_check(int action, enum naming naming, struct outbox_filter *filter,
		    struct outbox_error *err)
{
	const struct outbox_filter *f = filter;
	bool more =
		f->state || f->why || f->type || f->key || f->created_before || f->changed_before;
	char state[FIELD_NAME_MAX], target[FIELD_NAME_MAX], type[FIELD_NAME_MAX],
		key[FIELD_NAME_MAX];

	field_name(naming, "target", target);
	if (f->n_ids && more)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "give ids or a filter, not both (only %s can be combined with ids)",
				   target);
	if (f->n_ids > IDS_MAX)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "ids: %zu are too many, at most %d in a call", f->n_ids, IDS_MAX);
	if (f->n_ids)
		return OUTBOX_OK;
	if (!more && !f->target)
		return outbox_fail(err, OUTBOX_EINVAL,
				   "nothing is selected: give ids, or filter by %s, %s, %s, %s",
				   field_name(naming, "state", state), target,
				   field_name(naming, "type", type), field_name(naming, "key", key));
	return check_state(action, naming, filter, err);
}
