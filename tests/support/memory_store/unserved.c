/* SPDX-License-Identifier: Apache-2.0 */
#include "memory_store/unserved.h"

#include "core/retention.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static void remove_row(struct memory_db *db, size_t i)
{
	free(db->unserved[i].target);
	free(db->unserved[i].owner);
	free(db->unserved[i].why);
	memmove(&db->unserved[i], &db->unserved[i + 1],
		(db->n_unserved - i - 1) * sizeof(struct memory_unserved));
	db->n_unserved--;
}

void memory_unserved_forget(struct memory_db *db, const char *target, const char *owner)
{
	for (size_t i = db->n_unserved; i > 0; i--) {
		const struct memory_unserved *row = &db->unserved[i - 1];

		if ((!target || !strcmp(row->target, target)) &&
		    (!owner || !strcmp(row->owner, owner)))
			remove_row(db, i - 1);
	}
}

/* By target, since, owner. */
static bool goes_before(const struct memory_unserved *a, const struct memory_unserved *b)
{
	int order = strcmp(a->target, b->target);

	if (order)
		return order < 0;
	return a->since != b->since ? a->since < b->since : strcmp(a->owner, b->owner) < 0;
}

int memory_unserved(struct memory_store *s, const struct outbox_unserved *note,
		    struct outbox_error *err)
{
	struct memory_db *db = s->db;
	struct memory_unserved row = { .since = memory_now(s) };
	outbox_time now = memory_now(s);
	size_t i;

	(void)err;
	for (i = db->n_unserved; i > 0; i--) {
		const struct memory_unserved *old = &db->unserved[i - 1];

		if (old->alive_until > now &&
		    (strcmp(old->target, note->target) != 0 || strcmp(old->owner, note->owner) != 0))
			continue;
		if (old->alive_until > now)
			row.since = old->since;
		remove_row(db, i - 1);
	}
	if (!note->why)
		return OUTBOX_OK;
	row.target = memory_text(note->target);
	row.owner = memory_text(note->owner);
	row.why = memory_text(note->why);
	row.alive_until = now + note->duration;
	db->unserved = memory_grow(db->unserved, db->n_unserved, &db->cap_unserved, sizeof(row));
	for (i = db->n_unserved; i > 0 && goes_before(&row, &db->unserved[i - 1]); i--)
		db->unserved[i] = db->unserved[i - 1];
	db->unserved[i] = row;
	db->n_unserved++;
	return OUTBOX_OK;
}

int memory_wants_start(const struct memory_store *s, const char *target, bool *ret_wants)
{
	*ret_wants = s->db->ever_settled && !memory_target_find(s->db, target);
	return OUTBOX_OK;
}

int memory_unstarted(struct memory_store *s, struct outbox_error *err)
{
	for (size_t i = 0; i < s->db->n_unserved; i++) {
		const struct memory_unserved *row = &s->db->unserved[i];

		if (row->alive_until > memory_now(s) && !memory_target_find(s->db, row->target))
			return retention_kept_for(row->target, err);
	}
	return OUTBOX_OK;
}

int memory_stats_unserved(const struct memory_db *db, struct outbox_stats *stats,
			  struct outbox_arena *arena, struct outbox_error *err)
{
	int status = OUTBOX_OK;

	for (size_t i = 0; i < db->n_unserved && !status; i++) {
		const struct memory_unserved *row = &db->unserved[i];
		struct outbox_target_stats said = { .unserved_since = row->since };

		if (row->alive_until <= stats->store_now)
			continue;
		said.name = outbox_arena_text(arena, row->target);
		said.unserved = outbox_arena_text(arena, row->why);
		status = said.name && said.unserved
				 ? store_stats_unserved(stats, &said, arena, err)
				 : outbox_fail(err, OUTBOX_ENOMEM, "stats: the arena is full");
	}
	return status;
}
