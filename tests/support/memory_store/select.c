/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/select.h"
#include "base/text.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static int compare_seq(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void find_ids(struct memory_select *select)
{
	const struct outbox_filter *filter = select->filter;
	size_t unique = 0;

	select->seqs = memory_alloc(filter->n_ids * sizeof(int64_t));
	for (size_t i = 0; i < filter->n_ids; i++) {
		const struct memory_message *row = memory_log_find(select->db, filter->ids[i]);

		if (row && row->committed) {
			select->seqs[select->n_seqs++] = row->seq;
		} else {
			if (!select->missing++)
				select->missing_id = filter->ids[i];
		}
	}
	qsort(select->seqs, select->n_seqs, sizeof(int64_t), compare_seq);
	for (size_t i = 0; i < select->n_seqs; i++) {
		if (!unique || select->seqs[unique - 1] != select->seqs[i])
			select->seqs[unique++] = select->seqs[i];
	}
	select->n_seqs = unique;
}

int memory_select_start(struct memory_select *select, const struct memory_db *db,
			const struct outbox_filter *filter, struct outbox_error *err)
{
	*select = (struct memory_select){ .db = db, .filter = filter };
	if (filter->cursor) {
		int status = store_cursor_parse(filter->cursor, &select->after_seq,
						select->after_name, err);

		if (status)
			return status;
		select->after_target = select->after_name;
	}
	if (filter->n_ids)
		find_ids(select);
	else if (select->after_seq > db->base)
		select->at = (size_t)(select->after_seq - db->base);
	return OUTBOX_OK;
}

void memory_select_end(struct memory_select *select)
{
	free(select->seqs);
}

static bool row_matches(const struct memory_select *select, const struct memory_message *row)
{
	const struct outbox_filter *filter = select->filter;

	if (!row || !row->committed || row->seq < select->after_seq)
		return false;
	if (filter->type && !glob_match(filter->type, row->m.type))
		return false;
	return !filter->key || (row->m.key && !strcmp(filter->key, row->m.key));
}

static bool target_matches(const struct memory_select *select, const struct memory_target *target,
			   const struct memory_message *row)
{
	const struct outbox_filter *filter = select->filter;
	int why;

	if (filter->target && strcmp(filter->target, target->name) != 0)
		return false;
	if (select->after_target && row->seq == select->after_seq &&
	    strcmp(target->name, select->after_target) <= 0)
		return false;
	if (filter->created_before && row->created_at > filter->created_before)
		return false;
	if (filter->changed_before &&
	    memory_delivery_at(select->db, target, row) > filter->changed_before)
		return false;
	return memory_delivery_state(select->db, target, row, &why) != 0;
}

bool memory_select_state(const struct memory_select *select, const struct memory_target *target,
			 const struct memory_message *row)
{
	const struct outbox_filter *filter = select->filter;
	int why, state = memory_delivery_state(select->db, target, row, &why);

	return (!filter->state || filter->state == state) &&
	       (!filter->why || filter->why == memory_why_at(row, why, select->now));
}

bool memory_select_next(struct memory_select *select, struct memory_target **ret_target,
			struct memory_message **ret_row)
{
	const struct memory_db *db = select->db;

	for (;; select->at++, select->target = 0) {
		struct memory_message *row;

		if (select->at >= (select->seqs ? select->n_seqs : db->n_rows))
			return false;
		row = select->seqs ? memory_log_row(db, select->seqs[select->at])
				   : db->rows[select->at];
		if (!row_matches(select, row))
			continue;
		while (select->target < db->n_targets) {
			struct memory_target *target = db->targets[select->target++];

			if (target_matches(select, target, row)) {
				*ret_target = target;
				*ret_row = row;
				return true;
			}
		}
	}
}
