/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMORY_STORE_SELECT_H
#define MEMORY_STORE_SELECT_H

/* What a filter selects, in (seq, target) order. */

#include "memory_store/db.h"

struct memory_select {
	const struct memory_db *db;
	const struct outbox_filter *filter;
	int64_t *seqs; /* of the ids given; NULL: all rows */
	size_t n_seqs;
	size_t missing; /* ids given that are not in the log */
	const char *missing_id;
	size_t at;     /* next row, or next of seqs */
	size_t target; /* next target of this row */
	int64_t after_seq;
	const char *after_target;
	char after_name[OUTBOX_TARGET_NAME_MAX + 1];
	outbox_time now; /* set by whoever begins it */
};

int memory_select_start(struct memory_select *select, const struct memory_db *db,
			const struct outbox_filter *filter,
			struct outbox_error *err) OUTBOX_MUSTCHECK;
/* Every delivery that matches all but the state; false at the end. */
bool memory_select_next(struct memory_select *select, struct memory_target **ret_target,
			struct memory_message **ret_row);
/* Is it also in the state that the filter wants? */
bool memory_select_state(const struct memory_select *select, const struct memory_target *target,
			 const struct memory_message *row);
void memory_select_end(struct memory_select *select);

#endif
