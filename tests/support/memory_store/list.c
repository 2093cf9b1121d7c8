/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "memory_store/select.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

static int no_room(struct outbox_error *err)
{
	return outbox_fail(err, OUTBOX_ENOMEM, "list: the arena is full; ask for fewer rows");
}

static int fill_page(struct memory_select *select, size_t limit, struct outbox_arena *arena,
		     struct outbox_page *page, struct outbox_error *err)
{
	struct memory_target *target;
	struct memory_message *row;

	page->rows = outbox_arena_alloc(arena, limit * sizeof(*page->rows));
	if (!page->rows)
		return no_room(err);
	while (memory_select_next(select, &target, &row)) {
		if (!memory_select_state(select, target, row))
			continue;
		if (page->count == limit) {
			page->cursor = store_cursor_after(&page->rows[limit - 1], arena);
			return page->cursor ? OUTBOX_OK : no_room(err);
		}
		if (!memory_delivery_read(select->db, target, row, arena, &page->rows[page->count]))
			return no_room(err);
		page->rows[page->count].why =
			memory_why_at(row, page->rows[page->count].why, select->now);
		page->count++;
	}
	return OUTBOX_OK;
}

int memory_list(struct memory_store *s, const struct outbox_filter *filter,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	struct outbox_page page = { 0 };
	struct memory_select select;
	int status = memory_select_start(&select, s->db, filter, err);

	if (status)
		return status;
	select.now = memory_now(s);
	status = fill_page(&select, filter->limit, arena, &page, err);
	memory_select_end(&select);
	if (!status)
		*ret_page = page;
	return status;
}

int memory_get(struct memory_store *s, const char *id, struct outbox_arena *arena,
	       struct outbox_claimed *ret_message, struct outbox_error *err)
{
	const struct memory_message *row = memory_log_find(s->db, id);

	if (!row || !row->committed)
		return store_no_message(id, err);
	if (!memory_log_read(s->db, row, true, arena, ret_message))
		return no_room(err);
	return OUTBOX_OK;
}

/* An event as a delivery: what it was then, with what the message says now. */
static bool read_event(const struct memory_db *db, const struct memory_event *event,
		       struct outbox_arena *arena, struct outbox_delivery *ret_row, bool *ret_gone)
{
	const struct memory_target *target = memory_target_find(db, event->target);
	const struct memory_message *row = memory_log_row(db, event->seq);

	*ret_gone = !target || !row;
	if (*ret_gone)
		return true;
	if (!memory_delivery_read(db, target, row, arena, ret_row))
		return false;
	ret_row->state = event->state;
	ret_row->why = event->why;
	ret_row->attempts = event->attempts;
	ret_row->last_status_at = event->at;
	ret_row->owner = outbox_arena_text(arena, event->owner);
	return ret_row->owner != NULL;
}

int memory_tail(struct memory_store *s, const char *cursor, size_t limit,
		struct outbox_arena *arena, struct outbox_page *ret_page, struct outbox_error *err)
{
	const struct memory_db *db = s->db;
	int64_t end = db->first_event + (int64_t)db->n_events, at = end;
	struct outbox_page page = { 0 };
	char text[24];
	int status;

	if (cursor) {
		status = number_parse("cursor", cursor, 0, INT64_MAX, &at, err);
		if (status)
			return status;
	}
	page.rows = outbox_arena_alloc(arena, limit * sizeof(*page.rows));
	if (!page.rows)
		return no_room(err);
	if (at < db->first_event)
		at = db->first_event;
	for (; at < end && page.count < limit; at++) {
		bool gone;

		if (!read_event(db, &db->events[at - db->first_event], arena,
				&page.rows[page.count], &gone))
			return no_room(err);
		page.count += !gone;
	}
	snprintf(text, sizeof(text), "%" PRId64, at);
	page.cursor = outbox_arena_text(arena, text);
	if (!page.cursor)
		return no_room(err);
	*ret_page = page;
	return OUTBOX_OK;
}
