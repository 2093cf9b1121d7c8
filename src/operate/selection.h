/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPERATE_SELECTION_H
#define OPERATE_SELECTION_H

/* Which deliveries are meant: a filter from the words that a caller gave, checked once for all callers. */

#include <outbox/delivery.h>

/* How the caller writes a field's name, for errors: "delivered_before", or "--delivered-before". */
enum naming { NAMED_AS_FIELD = 0, NAMED_AS_OPTION };

#define FIELD_NAME_MAX 40
const char *field_name(enum naming naming, const char *field, char out[FIELD_NAME_MAX]);

struct selection {
	const char *state, *why, *target, *type, *key;
	outbox_time created_before, changed_before;
};

/* Fill a filter, which borrows the selection's texts. EINVAL: there is no such state or why. */
int selection_filter(const struct selection *selection, enum naming naming,
		     struct outbox_filter *ret_filter, struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * May an action (enum outbox_action) be applied to what this filter selects? EINVAL: it selects nothing in particular, has
 * ids and more, or names a state that does not allow the action. A state that goes without saying is filled in.
 */
int selection_check(int action, enum naming naming, struct outbox_filter *filter,
		    struct outbox_error *err) OUTBOX_MUSTCHECK;

#endif
