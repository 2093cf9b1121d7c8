/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/db.h"

#include <string.h>

/* Takes the texts over. */
void memory_audit_add(struct memory_db *db, const struct memory_audit *row)
{
	db->audit = memory_grow(db->audit, db->n_audit, &db->cap_audit, sizeof(*row));
	db->audit[db->n_audit] = *row;
	db->audit[db->n_audit++].number = ++db->last_audit;
}

static bool copy(struct outbox_arena *arena, const struct memory_audit *from, struct outbox_audit *to)
{
	*to = (struct outbox_audit){
		.number = from->number,
		.at = from->at,
		.actor = outbox_arena_text(arena, from->actor),
		.action = outbox_arena_text(arena, from->action),
		.target = outbox_arena_text(arena, from->target),
		.id = outbox_arena_text(arena, from->id),
		.reason = outbox_arena_text(arena, from->reason),
		.detail = outbox_arena_text(arena, from->detail),
	};
	return !from->actor == !to->actor && !from->action == !to->action &&
	       !from->target == !to->target && !from->id == !to->id &&
	       !from->reason == !to->reason && !from->detail == !to->detail;
}

int memory_audit(struct memory_store *s, const char *id, size_t limit, struct outbox_arena *arena,
		 struct outbox_audit **ret_rows, size_t *ret_count, struct outbox_error *err)
{
	const struct memory_db *db = s->db;
	struct outbox_audit *rows;
	size_t count = 0;

	if (limit > db->n_audit)
		limit = db->n_audit;
	rows = outbox_arena_alloc(arena, limit * sizeof(*rows));
	if (!rows)
		return outbox_fail(err, OUTBOX_ENOMEM,
				   "audit: the arena is full; ask for fewer rows");
	for (size_t i = db->n_audit; i > 0 && count < limit; i--) {
		const struct memory_audit *row = &db->audit[i - 1];

		if (id && (!row->id || strcmp(row->id, id) != 0))
			continue;
		if (!copy(arena, row, &rows[count++]))
			return outbox_fail(err, OUTBOX_ENOMEM,
					   "audit: the arena is full; ask for fewer rows");
	}
	*ret_rows = rows;
	*ret_count = count;
	return OUTBOX_OK;
}
