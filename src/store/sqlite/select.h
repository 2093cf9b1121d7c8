/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQLITE_SELECT_H
#define STORE_SQLITE_SELECT_H

/* Deliveries by filter: what list() shows and act() changes. */

#include "store/sqlite/delivery.h"

struct selected {
	struct outbox_delivery d;
	bool detour; /* it has a row of its own */
};

struct selection {
	struct targets *targets;
	const struct outbox_filter *filter;
	struct outbox_arena *arena; /* of the rows */
	unsigned states;            /* bit (1 << state) for each that is wanted */
	size_t limit;
	bool count_only;                /* all of them, however many, and no rows */
	outbox_time not_deferred_until; /* pass over what is deferred to this very time; 0: nothing */
	int64_t after_seq;              /* from the filter's cursor */
	char after_target[OUTBOX_TARGET_NAME_MAX + 1];
	/* ---- the result: ascending (seq, target), at most limit and one more */
	struct selected *rows;
	size_t count, capacity;
	size_t missing;         /* ids that are not in the log */
	const char *missing_id; /* the first of them */
	outbox_time oldest;     /* with count_only: created_at of the oldest */
};

#define SELECT_ALL_STATES 0x3eu

/*
 * Everything but the result must be zero or filled in; states is narrowed by the filter. Named ids
 * come in whatever state they are unless `states` says less, and all of them at once.
 */
int select_deliveries(struct selection *selection, struct outbox_error *err) OUTBOX_MUSTCHECK;

/* Append one row, copied to the arena. For selections of another kind. */
int select_add(struct selection *selection, const struct outbox_delivery *delivery, bool detour,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

/*
 * Do it to one delivery: an audit row, the change, and the next of its key may go on. state is its own, or
 * PENDING once its lane was taken over.
 */
int select_act(const struct targets *targets, const struct target_info *target,
	       const struct outbox_act *act, const struct selected *row, int state,
	       struct outbox_error *err) OUTBOX_MUSTCHECK;

void select_sort(struct selection *selection);
void select_deinit(struct selection *selection);

#endif
