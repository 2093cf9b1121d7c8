/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "memory_store/db.h"
#include "store/store.h"

#include <string.h>

/* Keys that wait for the first of their deliveries that is not finished; messages by their key. */

static bool in_the_way(const struct memory_target *target, const struct memory_detour *d,
		       outbox_time now)
{
	for (const struct memory_detour *before = d->key_prev; before; before = before->key_prev) {
		if (memory_detour_blocks(target, before, now))
			return false;
	}
	if (d->state == OUTBOX_FAILED)
		return target->hold;
	return d->state == OUTBOX_SENDING ||
	       (d->state == OUTBOX_PENDING && d->why == OUTBOX_WAITING);
}

static int64_t parked_behind(const struct memory_detour *d)
{
	int64_t parked = 0;

	for (d = d->key_next; d && parked <= OUTBOX_COUNT_CAP; d = d->key_next)
		parked += d->state == OUTBOX_PENDING && d->why == OUTBOX_PARKED;
	return parked;
}

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "keys: the arena is full; ask for fewer");
}

/* One more of the page, or, when it is full, its cursor. */
static int add(const struct memory_db *db, const struct memory_target *target,
	       const struct memory_detour *d, size_t limit, struct outbox_arena *arena,
	       struct outbox_keys_page *page)
{
	struct outbox_blocked_key *row = &page->rows[page->count];

	if (page->count == limit) {
		page->cursor = store_cursor_after(&page->rows[limit - 1].front, arena);
		return page->cursor ? OUTBOX_OK : OUTBOX_ENOMEM;
	}
	if (!memory_delivery_read(db, target, d->message, arena, &row->front))
		return OUTBOX_ENOMEM;
	row->since = d->failing_since ? d->failing_since : d->last_status_at;
	row->parked = parked_behind(d);
	page->count++;
	return OUTBOX_OK;
}

/* Does the page that is asked for begin behind it, or is it of another target? */
static bool left_out(const struct outbox_keys_filter *filter, const struct memory_target *target,
		     int64_t seq, int64_t after_seq, const char *after)
{
	if (filter->target && strcmp(filter->target, target->name) != 0)
		return true;
	return seq < after_seq || (seq == after_seq && strcmp(target->name, after) <= 0);
}

int memory_keys(struct memory_store *s, const struct outbox_keys_filter *filter,
		struct outbox_arena *arena, struct outbox_keys_page *ret_page,
		struct outbox_error *err)
{
	const struct memory_db *db = s->db;
	size_t limit = filter->limit, n = db->n_rows * db->n_targets;
	char after[OUTBOX_TARGET_NAME_MAX + 1] = "";
	struct outbox_keys_page page = { 0 };
	int64_t after_seq = 0;
	int status = OUTBOX_OK;

	if (filter->cursor)
		status = store_cursor_parse(filter->cursor, &after_seq, after, err);
	if (status)
		return status;
	page.rows = outbox_arena_alloc(arena, limit * sizeof(*page.rows));
	if (!page.rows)
		return no_room(err);
	for (size_t i = 0; i < n && !page.cursor; i++) {
		const struct memory_target *target = db->targets[i % db->n_targets];
		int64_t seq = db->base + (int64_t)(i / db->n_targets);
		const struct memory_detour *d = memory_delivery(db, target, seq)->detour;

		if (!d || !d->key || target->unordered ||
		    left_out(filter, target, seq, after_seq, after) ||
		    !in_the_way(target, d, memory_now(s)))
			continue;
		if (add(db, target, d, limit, arena, &page))
			return no_room(err);
	}
	*ret_page = page;
	return OUTBOX_OK;
}

static bool is_wanted(const struct outbox_key_search *search, const char *key)
{
	return key &&
	       (search->key ? strcmp(search->key, key) == 0 : glob_match(search->key_like, key));
}

int memory_find_key(struct memory_store *s, const struct outbox_key_search *search,
		    struct outbox_arena *arena, struct outbox_key_found *ret_found,
		    struct outbox_error *err)
{
	const struct memory_db *db = s->db;
	struct outbox_key_found found = { 0 };

	found.ids = outbox_arena_alloc(arena, search->limit * sizeof(*found.ids));
	if (!found.ids)
		return no_room(err);
	for (size_t i = db->n_gone; i < db->n_rows && found.looked < search->limit; i++) {
		const struct memory_message *row = db->rows[i];

		if (!row || !row->committed || row->seq <= search->after_seq)
			continue;
		found.looked++;
		found.last_seq = row->seq;
		if (!is_wanted(search, row->m.key))
			continue;
		found.ids[found.count] = outbox_arena_text(arena, row->m.id);
		if (!found.ids[found.count++])
			return no_room(err);
	}
	found.more = found.looked == search->limit;
	*ret_found = found;
	return OUTBOX_OK;
}
